/* Extended ids: which words can be copied, in rows of a data set and in single lines. */
#include "data/data_test.h"

static const char TEXT[] = "we call her Ada and Bob Ada\tAda and Bob\n"
                           "we call Zoe and Ada\tZoe and Zed\n"
                           "we and we call [END]\t[END] and we\n"
                           "we and her\twe and her\n"
                           "and we call\tand we\n";

static int64_t row_of_line(const cpl_rows *rows, uint32_t line)
{
    for (int64_t i = 0; i < rows->count; i++)
        if (rows->items[i].line == line)
            return i;
    fail_msg("line %u is not there", line);
    return -1;
}

/* The target's words with two occurrences or more are `and` (4) and `we` (5). */
static cpl_dataset *open_text(const char *path, int copy, cpl_config **c)
{
    const char *const settings[] = {"data.valid", path, "text.target.min_count", "2", NULL};
    cpl_dataset *d;
    cpl_error err = CPL_ERROR_INIT;
    *c = config_of(path, settings);
    cpl_dataset_options o = {.config = *c, .texts = 2, .copy = copy};
    if (cpl_dataset_new(&d, &o, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    assert_int_equal(cpl_vocabulary_size(d->target), 6);
    assert_string_equal(cpl_vocabulary_token(d->target, 4, &(size_t){0}), "and");
    return d;
}

static void expect_row(const cpl_rows *rows, uint32_t line, const int32_t *copy, const int32_t *labels,
                       const int32_t *input)
{
    int64_t i = row_of_line(rows, line);
    const cpl_row *row = &rows->items[i];
    const int32_t *got = cpl_row_copy(rows, i);
    assert_memory_equal(got, copy, (size_t)row->source * sizeof *copy);
    assert_memory_equal(got + row->source, labels, (size_t)row->target * sizeof *labels);
    assert_memory_equal(cpl_row_target(rows, i), input, (size_t)row->target * sizeof *input);
}

static void rows_know_what_can_be_copied(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c;
    write_file(path, "copy.tsv", TEXT, sizeof TEXT - 1);
    cpl_dataset *d = open_text(path, 1, &c);
    /* call her Ada Bob are 6 7 8 9 of the first line */
    expect_row(&d->train, 1, (int32_t[]){2, 5, 6, 7, 8, 4, 9, 8, 3}, (int32_t[]){2, 8, 4, 9, 3},
               (int32_t[]){2, 1, 4, 1, 3});
    /* numbers begin anew in each line; Zed stands in no source */
    expect_row(&d->train, 2, (int32_t[]){2, 5, 6, 7, 4, 8, 3}, (int32_t[]){2, 7, 4, 1, 3}, (int32_t[]){2, 1, 4, 1, 3});
    /* text that spells a special entry is a word */
    expect_row(&d->train, 3, (int32_t[]){2, 5, 4, 5, 6, 7, 3}, (int32_t[]){2, 7, 4, 5, 3}, (int32_t[]){2, 1, 4, 5, 3});
    expect_row(&d->valid, 2, (int32_t[]){2, 5, 6, 7, 4, 8, 3}, (int32_t[]){2, 7, 4, 1, 3}, (int32_t[]){2, 1, 4, 1, 3});
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

static void only_where_it_is_wanted(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c, *e;
    write_file(path, "copy.tsv", TEXT, sizeof TEXT - 1);
    cpl_dataset *with = open_text(path, 1, &c), *without = open_text(path, 0, &e);
    assert_false(without->train.copy || without->valid.copy);
    assert_int_equal(with->ids_count, 2 * without->ids_count);
    assert_int_equal(cpl_dataset_bytes(with) - cpl_dataset_bytes(without), without->ids_count * sizeof *with->ids);
    assert_true(with->checksum != without->checksum);
    cpl_dataset_free(with);
    cpl_dataset_free(without);
    cpl_config_free(c);
    cpl_config_free(e);
    remove_file(path);
}

static void batches_show_extended_ids(void **state)
{
    (void)state;
    char path[512];
    cpl_config *c;
    cpl_batcher *b;
    write_file(path, "copy.tsv", TEXT, sizeof TEXT - 1);
    cpl_dataset *d = open_text(path, 1, &c);
    cpl_batcher_options o = {.batch_size = 2, .shuffle = 1, .seed = 3};
    assert_int_equal(cpl_batcher_new(&b, &d->train, &o, NULL), CPL_OK);
    for (int k = 0; k < 6; k++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        for (int64_t i = 0; i < batch->pairs; i++) {
            int64_t at = batch->pair[i];
            assert_ptr_equal(batch->copy[i], cpl_row_copy(&d->train, at));
            assert_ptr_equal(batch->target_in[i], cpl_row_target(&d->train, at));
            assert_ptr_equal(batch->target_out[i], batch->copy[i] + batch->source_length[i] + 1);
            assert_int_equal(batch->target_out[i][batch->target_length[i] - 1], CPL_ID_END);
        }
    }
    cpl_batcher_free(b);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

/* What a data set says of a row, a line says of itself. */
static void lines_agree_with_rows(void **state)
{
    (void)state;
    static const char *const tokens[2][7] = {{"we", "call", "her", "Ada", "and", "Bob", "Ada"},
                                             {"we", "call", "Zoe", "and", "Ada"}};
    static const size_t counts[] = {7, 5};
    char path[512];
    cpl_config *c;
    cpl_copy_lines lines = {0};
    write_file(path, "copy.tsv", TEXT, sizeof TEXT - 1);
    cpl_dataset *d = open_text(path, 1, &c);
    for (int round = 0; round < 2; round++) {
        size_t first[2], at = 0;
        cpl_copy_clear(&lines);
        for (int i = 0; i < 2; i++) {
            cpl_token list[7];
            for (size_t k = 0; k < counts[i]; k++)
                list[k] = (cpl_token){tokens[i][k], strlen(tokens[i][k])};
            first[i] = lines.word_count;
            assert_int_equal(cpl_copy_add(&lines, d->target, list, counts[i], NULL), CPL_OK);
        }
        for (int i = 0; i < 2; at += counts[i++] + 2)
            assert_memory_equal(lines.ids + at, cpl_row_copy(&d->train, row_of_line(&d->train, (uint32_t)i + 1)),
                                (counts[i] + 2) * sizeof *lines.ids);
        assert_int_equal(lines.count, at);
        assert_int_equal(lines.word_count, 7);
        assert_string_equal(lines.words[first[0] + 2].text, "Ada");
        assert_string_equal(lines.words[first[1] + 1].text, "Zoe");
        cpl_more_words more = {lines.words + first[1], 3};
        assert_string_equal(cpl_word_of(d->target, more, 7).text, "Zoe");
        assert_string_equal(cpl_word_of(d->target, more, 4).text, "and");
        assert_string_equal(cpl_word_of(d->target, more, 9).text, "[UNK]");
    }
    cpl_copy_free(&lines);
    cpl_dataset_free(d);
    cpl_config_free(c);
    remove_file(path);
}

/* Whichever allocation fails, it is an error and nothing leaks. */
static void memory_runs_out(void **state)
{
    (void)state;
    char path[512];
    write_file(path, "copy.tsv", TEXT, sizeof TEXT - 1);
    const char *const settings[] = {"data.valid", path, NULL};
    cpl_config *c = config_of(path, settings);
    cpl_dataset_options o = {.config = c, .texts = 2, .copy = 1};
    uint64_t live = cpl_memory_live_bytes();
    for (uint64_t n = 1;; n++) {
        cpl_dataset *d;
        cpl_error err = CPL_ERROR_INIT;
        cpl_memory_fail_at(n);
        cpl_status status = cpl_dataset_new(&d, &o, &err);
        cpl_memory_fail_at(0);
        cpl_dataset_free(d);
        assert_int_equal(cpl_memory_live_bytes(), live);
        if (status == CPL_OK)
            break;
        assert_int_equal(status, CPL_FAILED);
    }
    cpl_config_free(c);
    remove_file(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_know_what_can_be_copied), cmocka_unit_test(only_where_it_is_wanted),
        cmocka_unit_test(batches_show_extended_ids),    cmocka_unit_test(lines_agree_with_rows),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
