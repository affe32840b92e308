/* Data sets of bytes and subwords: limits count their tokens, and subwords are learned from training pairs alone. */
#include "data_test.h"
#include "support/run.h"

#define NEEDS_SUBWORDS()                                                                                               \
    do {                                                                                                               \
        if (!cpl_subwords_available())                                                                                 \
            skip();                                                                                                    \
    } while (0)

static void limits_count_bytes(void **state)
{
    (void)state;
#define E "\xC3\xA9"
    static const char text[] = "abc\tuvw\n" E E "\tx\n" E " " E "\tuvwxyz\nab\t" E E E "\n";
    char path[512];
    write_file(path, "b.tsv", text, sizeof text - 1);
    const char *const settings[] = {"text.source.tokens", "byte", "text.target.tokens", "byte", "data.valid", path,
                                    "text.source.max_length", "4", "text.target.max_length", "5",
                                    "text.target.too_long", "cut", NULL};
    cpl_config *c = config_of(path, settings);
    assert_int_equal(cpl_config_check(c, 1, NULL), CPL_OK);
    cpl_dataset *d = dataset_of(c, NULL);
    assert_int_equal(d->report.too_long, 2); /* "é é" is 5 bytes, in both splits */
    assert_int_equal(d->train.count, 3);
    assert_int_equal(d->report.target.cut, 2); /* "ééé" is 6 */
    const int32_t source[] = {2, 4 + 0xC3, 4 + 0xA9, 4 + 0xC3, 4 + 0xA9, 3};
    assert_int_equal(d->train.items[1].source, 6);
    assert_memory_equal(cpl_row_source(&d->train, 1), source, sizeof source);
    const int32_t target[] = {2, 4 + 0xC3, 4 + 0xA9, 4 + 0xC3, 4 + 0xA9, 4 + 0xC3}; /* no END: it was cut */
    assert_int_equal(d->train.items[2].target, 6);
    assert_memory_equal(cpl_row_target(&d->train, 2), target, sizeof target);
    assert_int_equal(cpl_vocabulary_size(d->source), 260);
    assert_int_equal(d->report.source.unknown, 0);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

static void what_bytes_do_not_have(void **state)
{
    (void)state;
    static const char *const refused[][2] = {{"text.source.vocabulary_size", "100"}, {"text.target.min_count", "2"}};
    for (int i = 0; i < 2; i++) {
        const char *const settings[] = {"text.source.tokens", "byte", "text.target.tokens", "byte", refused[i][0],
                                        refused[i][1], NULL};
        cpl_error err = CPL_ERROR_INIT;
        cpl_config *c = config_of("x.tsv", settings);
        assert_int_equal(cpl_config_check(c, 1, &err), CPL_USAGE);
        assert_holds(err.line[0], refused[i][0]);
        cpl_config_free(c);
    }
    const char *const settings[] = {"text.target.tokens", "unigram", "text.target.vocabulary_size", "0", NULL};
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = config_of("x.tsv", settings);
    assert_int_equal(cpl_config_check(c, 1, &err), CPL_USAGE);
    assert_holds(err.line[0], "'text.target.vocabulary_size' is 0");
    cpl_config_free(c);
}

/* The sample's first lines, as a file of the test's own. */
static void sample(char path[512], int lines)
{
    char from[512], *text;
    size_t length, end = 0;
    snprintf(from, sizeof from, "%s/../data/sample/train.tsv", CPL_TEST_DATA);
    assert_int_equal(cpl_file_read(from, &text, &length, NULL), CPL_OK);
    for (; lines > 0; end++)
        lines -= text[end] == '\n';
    write_file(path, "s.tsv", text, end);
    cpl_release(text);
}

/* The row's text comes back, whatever its subwords are. */
static void assert_back(cpl_codec *codec, const int32_t *ids, int32_t n, cpl_slice text)
{
    cpl_str out = {0};
    cpl_codec_decode(codec, ids + 1, (size_t)n - 1, 0, &out);
    assert_slice((cpl_slice){out.data, out.length}, text.text, text.length);
    cpl_str_free(&out);
}

static void rows_of_subwords(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    char path[512];
    sample(path, 300);
    const char *const settings[] = {"text.source.tokens", "unigram", "text.target.tokens", "bpe",
                                    "text.source.vocabulary_size", "200", "text.target.vocabulary_size", "150",
                                    "text.target.max_length", "7", "data.valid", "10%", NULL};
    cpl_config *c = config_of(path, settings);
    cpl_str log_text = {0};
    const cpl_log log = {.sink = keep_message, .user = &log_text};
    cpl_dataset *d = dataset_of(c, &log), *again = dataset_of(c, NULL);
    assert_true(d->checksum == again->checksum);
    cpl_dataset_free(again);
    const cpl_data_report *r = &d->report;
    assert_true(r->too_long > 0 && r->train > 100 && r->valid > 5);
    assert_int_equal(r->train + r->valid + r->too_long, 300);
    assert_true(r->target.longest == 7 && r->source.longest > 7);
    assert_true(cpl_vocabulary_size(d->target) == 150 && cpl_vocabulary_size(d->source) <= 200);
    assert_int_equal(r->source.unknown + r->target.unknown, 0);
    cpl_codec *source, *target;
    assert_int_equal(cpl_codec_new(&source, d->source_rules, d->source, NULL), CPL_OK);
    assert_int_equal(cpl_codec_new(&target, d->target_rules, d->target, NULL), CPL_OK);
    assert_int_equal(d->text_count, 2);
    int64_t words = 0;
    for (int64_t i = 0; i < d->text_count; i++) {
        assert_back(source, cpl_row_source(&d->valid, i), d->valid.items[i].source, d->texts[i].source);
        assert_back(target, cpl_row_target(&d->valid, i), d->valid.items[i].target, d->texts[i].target);
    }
    for (int64_t i = 0; i < d->train.count; i++)
        words += d->train.items[i].target - 2;
    assert_int_equal(words, r->target.tokens);
    cpl_codec_free(source);
    cpl_codec_free(target);
    cpl_dataset_free(d);
    cpl_config_free(c);
    cpl_str_free(&log_text);
    remove_file(path);
}

/* A character that only validation has is unknown; the side that is no subword is limited as ever. */
static void learned_from_training_alone(void **state)
{
    (void)state;
    NEEDS_SUBWORDS();
    static const char train[] = "aa bb\tcc dd\naa cc\tdd ee ff\nbb\tee\n \xE2\x96\x81 \tx\n";
    static const char valid[] = "aa q\tcc\naa cc\tdd ee ff\n";
    char path[512], other[512];
    write_file(path, "t.tsv", train, sizeof train - 1);
    write_file(other, "v.tsv", valid, sizeof valid - 1);
    const char *const settings[] = {"text.source.tokens", "bpe", "data.valid", other, "text.target.max_length", "2",
                                    NULL};
    cpl_config *c = config_of(path, settings);
    cpl_str log_text = {0};
    const cpl_log log = {.sink = keep_message, .user = &log_text};
    cpl_dataset *d = dataset_of(c, &log);
    assert_int_equal(d->train.count, 2); /* of 4: one too long, one a mark that SentencePiece takes for a space */
    assert_int_equal(d->valid.count, 1);
    assert_int_equal(d->report.too_long, 2);
    assert_int_equal(d->report.emptied, 1);
    assert_int_equal(d->report.duplicates, 0); /* of the pairs that are left */
    assert_int_equal(d->report.source.unknown, 0);
    assert_int_equal(d->report.source.valid_unknown, 1);
    assert_holds(log_text.data, "the source text gives");
    assert_holds(log_text.data, "vocabulary_size is 32000");
    cpl_dataset_free(d);
    cpl_config_free(c);
    cpl_str_free(&log_text);
    remove_file(path);
    remove_file(other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(limits_count_bytes),
    cmocka_unit_test(what_bytes_do_not_have),
    cmocka_unit_test(rows_of_subwords),
    cmocka_unit_test(learned_from_training_alone),
};

CPL_TEST_MAIN(tests)
