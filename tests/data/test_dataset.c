/* Data sets: shift of the target, splits, vocabularies, limits, counts, warnings, checksum. Figures by hand. */
#include "data_test.h"

static void assert_ids(const int32_t *got, int32_t n, const int32_t *expected, int32_t length)
{
    assert_int_equal(n, length);
    assert_memory_equal(got, expected, (size_t)length * sizeof *got);
}

/* Words of the target get the ids 7, 8, 9: three frequent words stand before them. */
static void case_C13_input_and_labels_are_shifted(void **state)
{
    (void)state;
    static const char text[] = "s t\tx x x x x x x x x y y y y y y y y z z z z z z z\ns\tc c c b b a\nu\tc b a\n";
    char path[512];
    write_file(path, "c13.tsv", text, sizeof text - 1);
    const char *const settings[] = {"data.valid", path, NULL};
    cpl_config *c = config_of(path, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    static const int32_t target[] = {2, 7, 8, 9, 3};
    assert_int_equal(d->train.count, 3);
    assert_ids(cpl_row_target(&d->train, 2), d->train.items[2].target, target, 5);
    assert_int_equal(cpl_row_source(&d->train, 0)[0], CPL_ID_START);
    assert_int_equal(cpl_row_source(&d->train, 0)[3], CPL_ID_END);
    cpl_batcher *b;
    cpl_batcher_options o = {.batch_size = 1};
    assert_int_equal(cpl_batcher_new(&b, &d->train, &o, NULL), CPL_OK);
    const cpl_batch *batch;
    do
        batch = cpl_batcher_next(b);
    while (batch->pair[0] != 2);
    static const int32_t input[] = {2, 7, 8, 9}, labels[] = {7, 8, 9, 3};
    assert_ids(batch->target_in[0], (int32_t)batch->target_length[0], input, 4);
    assert_ids(batch->target_out[0], (int32_t)batch->target_length[0], labels, 4);
    assert_int_equal(batch->target_tokens, 4);
    cpl_batcher_free(b);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

static void case_A03_ids_are_checked_before_step_1(void **state)
{
    (void)state;
    static const int32_t a[] = {1, 5, 2}, b[] = {3, 6, 0}, c[] = {4, -1, 2};
    const int32_t *rows[] = {a, b, c};
    const int64_t lengths[] = {3, 3, 3};
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_check_ids("encoder.embedding", rows, lengths, 3, 6, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "'encoder.embedding' cannot look up 2 ids: row 1 column 1 has id 6, row 2 column "
                                     "1 has id -1; valid are 0..5: the vocabulary has 6 entries including padding and "
                                     "unknown");
    assert_int_equal(cpl_check_ids("encoder.embedding", rows, lengths, 1, 6, &err), CPL_OK);
    char path[512];
    cpl_config *config = config_of(case_path(path, "B03_one_long_pair_last.tsv"), NULL);
    cpl_dataset *d = dataset_of(config, NULL);
    int64_t source = cpl_vocabulary_size(d->source), target = cpl_vocabulary_size(d->target);
    assert_int_equal(cpl_dataset_check_ids(d, source, target, &err), CPL_OK);
    assert_int_equal(cpl_dataset_check_ids(d, source, target - 1, &err), CPL_USAGE);
    assert_holds(err.line[0], "decoder.embedding");
    assert_holds(err.line[0], ".tsv' line ");
    cpl_dataset_free(d);
    cpl_config_free(config);
}

static void case_B03_capacity_knows_the_longest_pair(void **state)
{
    (void)state;
    char path[512], place[600];
    const char *valid = case_path(path, "B03_one_long_pair_last.tsv");
    const char *const settings[] = {"data.valid", valid, NULL};
    cpl_config *c = config_of(valid, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    cpl_batch_capacity cap;
    assert_int_equal(cpl_rows_capacity(&d->train, 16, 0, &cap, NULL), CPL_OK);
    assert_int_equal(cap.pairs, 16);
    assert_int_equal(cap.longest_source, 902);
    assert_int_equal(cap.longest_target, 901); /* START and 900 words, or 900 words and END */
    assert_int_equal(cap.source_tokens, 902 + 15 * 4);
    assert_int_equal(cap.target_tokens, 901 + 15 * 3);
    assert_int_equal(cap.products, 902 * 901 + 15 * 12);
    const cpl_row *row = &d->train.items[cap.largest];
    assert_holds(cpl_dataset_place(d, row->file, row->line, place, sizeof place), "line 60");
    assert_int_equal(d->report.source.longest_line, 60);
    assert_int_equal(d->report.duplicates, 60);
    cpl_dataset_free(d);
    cpl_config_free(c);
    /* max_length drops one pair and says so */
    const char *const limited[] = {"text.source.max_length", "50", "data.valid", valid, NULL};
    c = config_of(valid, limited);
    cpl_str messages = {0};
    cpl_log log = {keep_message, &messages};
    d = dataset_of(c, &log);
    cpl_dataset_warn(d, &log);
    assert_int_equal(d->train.count, 59);
    assert_int_equal(d->report.source.too_long, 2); /* one in training, one in validation */
    assert_holds(messages.data, "2 pairs were dropped as longer than max_length");
    cpl_str_free(&messages);
    cpl_dataset_free(d);
    cpl_config_free(c);
}

static void cut_targets_have_no_end(void **state)
{
    (void)state;
    char path[512];
    static const char text[] = "a b c\td e f\nx y\tz\n";
    write_file(path, "cut.tsv", text, sizeof text - 1);
    const char *const settings[] = {"text.source.max_length", "2", "text.source.too_long", "cut", "data.valid", path,
                                    "text.target.max_length", "2", "text.target.too_long", "cut", NULL};
    cpl_config *c = config_of(path, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    assert_int_equal(d->train.items[0].source, 4);
    assert_int_equal(cpl_row_source(&d->train, 0)[3], CPL_ID_END);
    assert_int_equal(d->train.items[0].target, 3);
    assert_true(cpl_row_target(&d->train, 0)[2] >= CPL_ID_WORDS);
    assert_int_equal(cpl_row_target(&d->train, 1)[2], CPL_ID_END);
    assert_int_equal(d->report.target.cut, 2);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

/* 200 pairs with 100 sources, each twice: a share shares no source, and does not depend on the order of lines. */
static void a_share_shares_no_source(void **state)
{
    (void)state;
    char path[512], other[512];
    cpl_str text = {0}, turned = {0};
    for (int i = 0; i < 200; i++)
        cpl_str_printf(&text, "s%d w\tt%d\n", i % 100, i);
    for (int i = 199; i >= 0; i--)
        cpl_str_printf(&turned, "s%d w\tt%d\n", i % 100, i);
    write_file(path, "a.tsv", text.data, text.length);
    write_file(other, "b.tsv", turned.data, turned.length);
    const char *const settings[] = {"data.valid", "10%", "training.seed", "7", NULL};
    cpl_config *c = config_of(path, settings), *e = config_of(other, settings);
    cpl_dataset *d = dataset_of(c, NULL), *f = dataset_of(e, NULL), *again = dataset_of(c, NULL);
    assert_int_equal(d->valid.count, 20);
    assert_int_equal(d->train.count, 180);
    uint8_t side[100] = {0}, in_other[200] = {0};
    for (int64_t i = 0; i < d->train.count; i++)
        side[(d->train.items[i].line - 1) % 100] |= 1;
    for (int64_t i = 0; i < d->valid.count; i++)
        side[(d->valid.items[i].line - 1) % 100] |= 2;
    for (int i = 0; i < 100; i++)
        assert_true(side[i] == 1 || side[i] == 2);
    for (int64_t i = 0; i < f->valid.count; i++)
        in_other[200 - f->valid.items[i].line] = 1;
    for (int64_t i = 0; i < d->valid.count; i++)
        assert_int_equal(in_other[d->valid.items[i].line - 1], 1);
    assert_true(d->checksum == again->checksum);
    assert_true(d->checksum != f->checksum);
    assert_int_equal(d->text_count, 2);
    assert_int_equal(d->texts[1].line, d->valid.items[1].line);
    /* a word that only validation has is unknown */
    assert_int_equal(d->report.source.valid_unknown, 20);
    assert_int_equal(cpl_vocabulary_size(d->source), 4 + 90 + 1);
    cpl_dataset_free(d);
    cpl_dataset_free(f);
    cpl_dataset_free(again);
    cpl_config_free(c);
    cpl_config_free(e);
    cpl_str_free(&text);
    cpl_str_free(&turned);
    remove_file(path);
    remove_file(other);
}

static void case_E12_special_strings_are_text(void **state)
{
    (void)state;
    char path[512];
    const char *file = case_path(path, "E12_user_specials.tsv");
    const char *const settings[] = {"data.valid", file, NULL};
    cpl_config *c = config_of(file, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    assert_int_equal(d->train.count, 2);
    for (int64_t i = 0; i < 2; i++) {
        const cpl_row *row = &d->train.items[i];
        for (int32_t k = 1; k < row->source - 1; k++)
            assert_true(cpl_row_source(&d->train, i)[k] >= CPL_ID_WORDS || cpl_row_source(&d->train, i)[k] == 1);
        for (int32_t k = 1; k < row->target - 1; k++)
            assert_true(cpl_row_target(&d->train, i)[k] >= CPL_ID_WORDS || cpl_row_target(&d->train, i)[k] == 1);
    }
    assert_int_equal(d->report.source.specials, 2); /* [END], in both splits */
    assert_int_equal(d->report.target.specials, 2);
    cpl_str messages = {0};
    cpl_log log = {keep_message, &messages};
    cpl_dataset_warn(d, &log);
    assert_holds(messages.data, "2 tokens of the source spell a special entry");
    assert_holds(messages.data, "2 of 2 validation pairs are training pairs too");
    cpl_str_free(&messages);
    cpl_dataset_free(d);
    cpl_config_free(c);
}

static void case_E14_no_spaces_is_warned_about(void **state)
{
    (void)state;
    char path[512];
    const char *file = case_path(path, "E14_cjk.tsv");
    const char *const settings[] = {"data.valid", file, NULL};
    cpl_config *c = config_of(file, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    cpl_str messages = {0};
    cpl_log log = {keep_message, &messages};
    cpl_dataset_warn(d, &log);
    assert_holds(messages.data, "no spaces found in the source: 2 tokens in 2 lines, 2 types, 2 seen once, 3.0 "
                                "characters on average; use character mode");
    cpl_dataset_free(d);
    assert_int_equal(cpl_config_set(c, "text.source.tokens", "char", NULL), CPL_OK);
    d = dataset_of(c, NULL);
    assert_int_equal(d->report.source.vocabulary, 4 + 4);
    cpl_str_free(&messages);
    cpl_dataset_free(d);
    cpl_config_free(c);
}

static void case_E15_nul_survives_encoding(void **state)
{
    (void)state;
    char path[512];
    const char *file = case_path(path, "E15_nul.tsv");
    const char *const settings[] = {"data.valid", file, NULL};
    cpl_config *c = config_of(file, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    assert_int_equal(d->train.items[0].source, 2 + 2);
    assert_int_equal(d->train.items[0].target, 2 + 2);
    size_t length;
    assert_non_null(cpl_vocabulary_token(d->source, cpl_row_source(&d->train, 0)[1], &length));
    assert_int_equal(length, 3);
    assert_int_equal(d->texts[0].source.text[1], '\0');
    cpl_dataset_free(d);
    cpl_config_free(c);
}

static cpl_status refused(const char *text, const char *const *settings, cpl_error *err)
{
    char path[512];
    cpl_dataset *d = NULL;
    write_file(path, "r.tsv", text, strlen(text));
    cpl_config *c = config_of(path, settings);
    cpl_dataset_options o = {.config = c};
    uint64_t live = cpl_memory_live_bytes();
    cpl_status status = cpl_dataset_new(&d, &o, err);
    cpl_dataset_free(d);
    assert_int_equal(cpl_memory_live_bytes(), live);
    cpl_config_free(c);
    remove_file(path);
    return status;
}

static void what_cannot_be_used_is_refused(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(refused("\n\t\n", NULL, &err), CPL_USAGE);
    assert_holds(err.line[0], "no training pairs are left: of 2 lines 1 were blank, 1 had an empty side");
    assert_int_equal(refused("a\tb\na\tc\n", NULL, &err), CPL_USAGE);
    assert_holds(err.line[0], "2 usable pairs have 1 different sources");
    const char *const tutorial[] = {"text.source.standardize", "tutorial", NULL};
    assert_int_equal(refused("123 abc\tx\n456 abd\ty\n", tutorial, &err), CPL_OK); /* 6 of 14: below the limit */
    assert_int_equal(refused("12345 ab\tx\n45612 ab\ty\n", tutorial, &err), CPL_USAGE);
    assert_holds(err.line[0], "text rule 'tutorial' deletes 62.5 % of the characters of the source");
}

/* A given vocabulary (a model's) is used as it is; evaluate keeps every pair whatever its length. */
static void given_vocabularies(void **state)
{
    (void)state;
    char path[512];
    static const char text[] = "a b\tc d\ne f g h\ti\n";
    write_file(path, "v.tsv", text, sizeof text - 1);
    const char *const settings[] = {"text.source.max_length", "3", "data.valid", path, NULL};
    cpl_config *c = config_of(path, settings);
    cpl_dataset *d = dataset_of(c, NULL), *e;
    assert_int_equal(d->train.count, 1);
    cpl_dataset_options o = {.config = c, .source = d->source, .target = d->target, .pairs = &c->data.train,
                             .texts = -1};
    assert_int_equal(cpl_dataset_new(&e, &o, NULL), CPL_OK);
    assert_int_equal(e->train.count, 0);
    assert_int_equal(e->valid.count, 2);
    assert_int_equal(e->text_count, 2);
    assert_int_equal(e->valid.items[1].source, 6);
    assert_int_equal(e->report.source.valid_unknown, 4);
    assert_slice(e->texts[1].source, "e f g h", 7);
    cpl_dataset_free(e);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

static void the_report_is_complete(void **state)
{
    (void)state;
    char path[512];
    static const char text[] = "ein hund\ta dog\nein haus\ta house\n\nein\tone\n";
    write_file(path, "r.tsv", text, sizeof text - 1);
    const char *const settings[] = {"data.valid", path, "text.source.min_count", "2", NULL};
    cpl_config *c = config_of(path, settings);
    cpl_dataset *d = dataset_of(c, NULL);
    cpl_str out = {0};
    cpl_dataset_describe(d, &out);
    assert_holds(out.data, "training: 3 pairs of 4 lines, 1 blank\n");
    assert_holds(out.data, "source: tokens space, standardize none, 5 entries, 40.00 % of 5 tokens unknown");
    assert_holds(out.data, "  [START] ein [UNK] [END]\n    -> [START] a dog [END]\n");
    cpl_str_clear(&out);
    cpl_json *json = cpl_dataset_report_json(d);
    assert_int_equal(cpl_json_int(cpl_json_get(json, "train_pairs"), 0), 3);
    assert_int_equal(cpl_json_int(cpl_json_get(json, "duplicates"), 0), 3);
    assert_int_equal(cpl_json_write(json, &out, NULL), CPL_OK);
    assert_holds(out.data, "\"unknown_share\": 0.4");
    cpl_json_free(json);
    cpl_str_free(&out);
    /* bytes: what the allocator holds for the data set, give or take its rounding */
    uint64_t bytes = cpl_dataset_bytes(d), live = cpl_memory_live_bytes();
    assert_int_equal(bytes, d->report.bytes);
    cpl_dataset_free(d);
    uint64_t held = live - cpl_memory_live_bytes();
    assert_in_range(held, bytes / 2, bytes + 1024);
    cpl_config_free(c);
    remove_file(path);
}

/* Every allocation fails once, in turn: a clean error each time. */
static void memory_runs_out(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c = config_of(case_path(path, "B03_one_long_pair_last.tsv"), NULL);
    cpl_dataset_options o = {.config = c, .texts = 2};
    uint64_t live = cpl_memory_live_bytes();
    for (uint64_t at = 1;; at++) {
        cpl_dataset *d;
        cpl_memory_fail_at(at);
        cpl_status status = cpl_dataset_new(&d, &o, NULL);
        cpl_memory_fail_at(0);
        if (status == CPL_OK) {
            cpl_dataset_free(d);
            assert_int_equal(cpl_memory_live_bytes(), live);
            if (at > 100)
                break;
            continue; /* a failed shrink is no failure */
        }
        assert_int_equal(status, CPL_FAILED);
        assert_int_equal(cpl_memory_live_bytes(), live);
        assert_true(at < 100000);
    }
    cpl_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_C13_input_and_labels_are_shifted),
        cmocka_unit_test(case_A03_ids_are_checked_before_step_1),
        cmocka_unit_test(case_B03_capacity_knows_the_longest_pair),
        cmocka_unit_test(cut_targets_have_no_end),
        cmocka_unit_test(a_share_shares_no_source),
        cmocka_unit_test(case_E12_special_strings_are_text),
        cmocka_unit_test(case_E14_no_spaces_is_warned_about),
        cmocka_unit_test(case_E15_nul_survives_encoding),
        cmocka_unit_test(what_cannot_be_used_is_refused),
        cmocka_unit_test(given_vocabularies),
        cmocka_unit_test(the_report_is_complete),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
