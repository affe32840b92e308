/* text.shared: one vocabulary, from the tokens of both sides together. Figures by hand. */
#include "data_test.h"
#include "support/run.h"

static cpl_dataset *shared(char path[512], cpl_config **c, const char *tokens, const char *size)
{
    static const char text[] = "a b b\tc a\nb\td d d\na\tb\n";
    write_file(path, "s.tsv", text, sizeof text - 1);
    const char *const settings[] = {"text.source.tokens", tokens, "text.target.tokens", tokens, "data.valid", path,
                                    "text.shared", "true", "text.source.vocabulary_size", size, NULL};
    *c = config_of(path, settings);
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_config_check(*c, 1, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    return dataset_of(*c, NULL);
}

static void counts_of_both_sides(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c;
    cpl_dataset *d = shared(path, &c, "space", "32000");
    assert_ptr_equal(d->source, d->target);
    /* b 4 (3 + 1), d 3, a 3 (2 + 1), c 1 */
    static const char *const words[] = {"b", "d", "a", "c"};
    assert_int_equal(cpl_vocabulary_size(d->source), 8);
    for (int i = 0; i < 4; i++)
        assert_string_equal(cpl_vocabulary_token(d->source, 4 + i, NULL), words[i]);
    const int32_t source[] = {2, 6, 4, 4, 3}, target[] = {2, 7, 6, 3};
    assert_memory_equal(cpl_row_source(&d->train, 0), source, sizeof source);
    assert_memory_equal(cpl_row_target(&d->train, 0), target, sizeof target);
    assert_int_equal(d->report.source.types, 2); /* of each side, still */
    assert_int_equal(d->report.target.types, 4);
    assert_int_equal(cpl_dataset_bytes(d), d->report.bytes);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
    d = shared(path, &c, "space", "6"); /* the two most frequent of both together */
    assert_int_equal(d->report.source.unknown, 2);
    assert_int_equal(d->report.target.unknown, 2);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

static void other_kinds(void **state)
{
    (void)state;
    static const char *const kinds[] = {"byte", "bpe", "unigram"};
    for (int i = 0; i < (cpl_subwords_available() ? 3 : 1); i++) {
        char path[512];
        cpl_config *c;
        cpl_dataset *d = shared(path, &c, kinds[i], "32000");
        assert_ptr_equal(d->source, d->target);
        assert_int_equal(d->report.source.unknown + d->report.target.unknown, 0);
        if (i) /* learned from both: a letter of the target alone is no piece of a side's own model */
            assert_true(cpl_vocabulary_id(d->source, "d", 1) >= CPL_ID_WORDS ||
                        cpl_vocabulary_id(d->source, "\xE2\x96\x81" "d", 4) >= CPL_ID_WORDS);
        cpl_dataset_free(d);
        cpl_config_free(c);
        remove_file(path);
    }
}

/* Its two sides are one text, so that a 2 and b 3, not twice as many. */
static void an_autoencoders_text_counts_once(void **state)
{
    (void)state;
    static const char *const kinds[] = {"space", "bpe"};
    static const char text[] = "a b b\nb\na\n";
    for (int i = 0; i < (cpl_subwords_available() ? 2 : 1); i++) {
        char path[512];
        write_file(path, "a.tsv", text, sizeof text - 1);
        const char *const settings[] = {"model.type", "autoencoder", "text.source.tokens", kinds[i],
                                        "text.target.tokens", kinds[i], "text.source.min_count", "3", "data.valid",
                                        path, NULL};
        cpl_config *c = config_of(path, settings);
        cpl_dataset *d = dataset_of(c, NULL);
        assert_ptr_equal(d->source, d->target);
        assert_int_equal(d->report.source.unknown, 2);
        cpl_dataset_free(d);
        cpl_config_free(c);
        remove_file(path);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_autoencoders_text_counts_once),
    cmocka_unit_test(counts_of_both_sides),
    cmocka_unit_test(other_kinds),
};

CPL_TEST_MAIN(tests)
