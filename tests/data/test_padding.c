/* Sources filled up with padding (text.source.pad_to): rows, counts, capacity, what the report and the warnings say,
 * and what goes with it. Figures by hand. */
#include "data_test.h"

#include "base/memory.h"

static const char text[] = "a b c d e\tx y\na\ty\nb a\tx\n";

static cpl_dataset *padded(char path[512], const char *const *settings, cpl_config **c)
{
    write_file(path, "padded.tsv", text, sizeof text - 1);
    *c = config_of(path, settings);
    return dataset_of(*c, NULL);
}

/* Five words and one: 7 stays, 3 becomes 6. Targets have no padding. Vocabularies count words alone. */
static void rows_are_filled_up(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c;
    const char *const settings[] = {"model.encoder.mask", "false", "text.source.pad_to", "6", "data.valid", path, NULL};
    cpl_dataset *d = padded(path, settings, &c);
    const cpl_rows *rows = &d->train;
    assert_int_equal(rows->items[0].source, 7);
    assert_int_equal(rows->items[1].source, 6);
    assert_int_equal(rows->items[2].source, 6);
    const int32_t *row = cpl_row_source(rows, 1);
    int32_t a = cpl_vocabulary_id(d->source, "a", 1);
    const int32_t want[] = {CPL_ID_START, a, CPL_ID_END, 0, 0, 0};
    assert_memory_equal(row, want, sizeof want);
    assert_int_equal(cpl_source_real(row, 6), 3);
    assert_int_equal(cpl_source_real(cpl_row_source(rows, 0), 7), 7);
    assert_int_equal(rows->items[1].target, 3);
    assert_int_equal(cpl_row_target(rows, 1)[0], CPL_ID_START);
    assert_int_equal(cpl_vocabulary_size(d->source), 4 + 5);
    assert_int_equal(d->report.source.tokens, 8);
    assert_int_equal(d->report.source.longest, 5);
    assert_int_equal(d->report.source.over_pad_to, 2); /* in training and in validation */
    assert_int_equal(d->report.target.over_pad_to, 0);
    cpl_batch_capacity most; /* what is planned for are rows with their padding */
    assert_int_equal(cpl_rows_capacity(rows, 2, 0, &most, NULL), CPL_OK);
    assert_int_equal(most.source_tokens, 7 + 6);
    assert_int_equal(most.longest_source, 7);
    assert_int_equal(most.products, 7 * 3 + 6 * 2);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

static void the_report_tells(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c;
    cpl_str report = {0};
    const char *const settings[] = {"model.encoder.mask", "false", "text.source.pad_to", "6", "data.valid", path, NULL};
    cpl_dataset *d = padded(path, settings, &c);
    cpl_dataset_describe(d, &report);
    assert_non_null(strstr(report.data, "longest 5, padded to 6 with START and END, 2 longer than that\n"));
    assert_non_null(strstr(report.data, "[START] a [END] + 3 padding\n"));
    assert_non_null(strstr(report.data, "[START] a b c d e [END]\n"));
    assert_null(strstr(strstr(report.data, "target: "), "padded to"));
    cpl_json *json = cpl_dataset_report_json(d);
    assert_int_equal(cpl_json_int(cpl_json_get(cpl_json_get(json, "source"), "pad_to"), 0), 6);
    assert_int_equal(cpl_json_int(cpl_json_get(cpl_json_get(json, "source"), "longer_than_pad_to"), 0), 2);
    assert_null(cpl_json_get(cpl_json_get(json, "target"), "pad_to"));
    cpl_json_free(json);
    cpl_str_free(&report);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

/* The checksum that a resumed run compares knows the padding. */
static void other_padding_is_other_data(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c;
    uint64_t sums[3];
    static const char *const lengths[] = {"0", "6", "7"};
    for (int i = 0; i < 3; i++) {
        const char *const settings[] = {"model.encoder.mask", "false", "text.source.pad_to", lengths[i], "data.valid",
                                        path, NULL};
        cpl_dataset *d = padded(path, settings, &c);
        sums[i] = d->checksum;
        cpl_dataset_free(d);
        cpl_config_free(c);
        remove_file(path);
    }
    assert_true(sums[0] != sums[1] && sums[1] != sums[2] && sums[0] != sums[2]);
}

typedef struct heard {
    int warnings;
    char text[600];
} heard;

static void hear(void *user, cpl_log_level level, const char *said)
{
    heard *h = user;
    h->warnings += level == CPL_LOG_WARNING;
    snprintf(h->text, sizeof h->text, "%s", said);
}

/* mask false without pad_to is told; pad_to with masking, or with what points at words, is refused. */
static void keys_that_need_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *set[3], *error; /* NULL: allowed */
        int warned;
    } cases[] = {
        {{"model.encoder.mask=false"}, NULL, 1},
        {{"model.encoder.mask=false", "text.source.pad_to=9"}, NULL, 0},
        {{NULL}, NULL, 0},
        {{"text.source.pad_to=9"}, "'text.source.pad_to' is 9, but 'model.encoder.mask' is true", 0},
        {{"text.source.pad_to=9", "model.encoder.mask=true"}, "'model.encoder.mask' is true", 0},
        {{"model.encoder.mask=false", "text.source.pad_to=9", "model.copy=true"}, "'model.copy' is set", 0},
        {{"model.encoder.mask=false", "model.coverage=1"}, "'model.coverage' is set", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cpl_config *c;
        cpl_error err = CPL_ERROR_INIT;
        heard h = {0};
        cpl_log log = {.sink = hear, .user = &h};
        assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
        for (int k = 0; k < 3 && cases[i].set[k]; k++)
            assert_int_equal(cpl_config_set_pair(c, cases[i].set[k], NULL), CPL_OK);
        assert_int_equal(cpl_config_check(c, 0, &err), cases[i].error ? CPL_USAGE : CPL_OK);
        if (cases[i].error)
            assert_non_null(strstr(err.line[0], cases[i].error));
        else
            cpl_config_warn(c, &log);
        assert_int_equal(h.warnings, cases[i].warned);
        if (h.warnings)
            assert_non_null(strstr(h.text, "set text.source.pad_to"));
        cpl_config_free(c);
    }
    cpl_config *c;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    assert_int_equal(cpl_config_set_pair(c, "text.target.pad_to=9", &err), CPL_USAGE); /* targets have no padding */
    assert_non_null(strstr(err.hint, "text.source.pad_to"));
    cpl_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_filled_up),
        cmocka_unit_test(the_report_tells),
        cmocka_unit_test(other_padding_is_other_data),
        cmocka_unit_test(keys_that_need_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
