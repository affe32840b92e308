/* test_token_batches.c: batches of a number of target tokens, and rows that stand in a pass by weight. */
#include <math.h>

#include "data_test.h"

static cpl_batcher *batcher(const cpl_rows *rows, cpl_batcher_options options)
{
    cpl_batcher *b;
    assert_int_equal(cpl_batcher_new(&b, rows, &options, NULL), CPL_OK);
    return b;
}

static int64_t labels(const cpl_batch *b)
{
    int64_t n = 0;
    for (int64_t k = 0; k < b->pairs; k++)
        n += b->target_length[k];
    return n;
}

/* What is planned from holds every batch, and is reached by one. */
static void assert_within(const cpl_batch *b, const cpl_batch_capacity *c, cpl_batch_capacity *most)
{
    int64_t products = 0;
    for (int64_t k = 0; k < b->pairs; k++) {
        products += b->source_length[k] * b->target_length[k];
        assert_true(b->source_length[k] <= c->longest_source && b->target_length[k] <= c->longest_target);
    }
    assert_true(b->pairs <= c->pairs && b->source_tokens <= c->source_tokens);
    assert_true(b->target_tokens <= c->target_tokens && products <= c->products);
    most->pairs = b->pairs > most->pairs ? b->pairs : most->pairs;
    most->target_tokens = b->target_tokens > most->target_tokens ? b->target_tokens : most->target_tokens;
    most->products = products > most->products ? products : most->products;
}

/* Every pair once a pass, no batch over the limit but single pairs, the same number of batches in every pass. */
static void every_pair_once_within_the_limit(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 9, 1}, {7, 9, 3}, {100, 9, 20}, {500, 40, 64}, {500, 40, 12},
                                        {300, 5, 100000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cpl_rows rows = rows_of(sizes[i][0], sizes[i][1]);
        int64_t limit = sizes[i][2];
        cpl_batch_capacity most = {0};
        cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_tokens = limit, .shuffle = 1, .seed = 5});
        uint8_t *seen = cpl_alloc((size_t)rows.count, 1);
        cpl_batch_capacity c = *cpl_batcher_capacity(b);
        for (int pass = 0; pass < 3; pass++) {
            for (int64_t k = 0; k < cpl_batcher_batches(b); k++) {
                const cpl_batch *batch = cpl_batcher_next(b);
                assert_int_equal(batch->pass, pass);
                assert_true(batch->pairs > 0 && (labels(batch) <= limit || batch->pairs == 1));
                assert_within(batch, &c, &most);
                for (int64_t p = 0; p < batch->pairs; p++)
                    assert_int_equal(seen[batch->pair[p]]++, pass);
            }
            for (int64_t r = 0; r < rows.count; r++)
                assert_int_equal(seen[r], pass + 1);
        }
        assert_int_equal(most.pairs, c.pairs);
        assert_int_equal(most.target_tokens, c.target_tokens);
        assert_int_equal(most.products, c.products);
        cpl_release(seen);
        cpl_batcher_free(b);
        free_rows(&rows);
    }
}

/* By hand: target lengths (END included) 1 2 2 3 5 9 in batches of 5 tokens: 1+2+2, 3, 5, and 9 alone. */
static void cuts_by_hand(void **state)
{
    (void)state;
    static const int32_t ids[32];
    static const int32_t lengths[] = {6, 3, 10, 2, 3, 4}; /* with START: 5 2 9 1 2 3 labels */
    cpl_row items[6];
    for (int i = 0; i < 6; i++)
        items[i] = (cpl_row){.source = 3, .target = lengths[i]};
    cpl_rows rows = {.items = items, .count = 6, .ids = ids};
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_tokens = 5});
    static const int64_t pairs[] = {3, 1, 1, 1}, tokens[] = {5, 3, 5, 9};
    assert_int_equal(cpl_batcher_batches(b), 4);
    for (int i = 0; i < 4; i++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        assert_int_equal(batch->pairs, pairs[i]);
        assert_int_equal(labels(batch), tokens[i]);
    }
    cpl_batcher_free(b);
    /* Two batches of a validation are the first rows of the file, not the shortest: 5 | 2 … then 9 does not fit. */
    b = batcher(&rows, (cpl_batcher_options){.batch_tokens = 5, .most_batches = 2});
    assert_int_equal(cpl_batcher_batches(b), 2);
    assert_int_equal(cpl_batcher_next(b)->pair[0], 0);
    assert_int_equal(cpl_batcher_next(b)->pair[0], 1);
    cpl_batcher_free(b);
}

/* A pure function of seed and pass: with and without a thread, and after a seek into the middle of a pass. */
static void deterministic(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(200, 12);
    cpl_batcher_options o = {.batch_tokens = 30, .shuffle = 1, .seed = 7}, alone = o, other = o;
    alone.no_thread = 1, other.seed = 8;
    cpl_batcher *a = batcher(&rows, o), *b = batcher(&rows, alone), *c = batcher(&rows, other);
    int64_t batches = cpl_batcher_batches(a), differ = 0, moved = 0, first[8] = {0};
    for (int64_t i = 0; i < 3 * batches; i++) {
        if (i == batches + 3) {
            cpl_batcher_free(b);
            b = batcher(&rows, alone);
            assert_int_equal(cpl_batcher_seek(b, 1, 3, NULL), CPL_OK);
        }
        const cpl_batch *x = cpl_batcher_next(a), *y = cpl_batcher_next(b), *z = cpl_batcher_next(c);
        assert_int_equal(x->pairs, y->pairs);
        assert_memory_equal(x->pair, y->pair, (size_t)x->pairs * sizeof *x->pair);
        differ += x->pairs != z->pairs || x->pair[0] != z->pair[0];
        if (i % batches == 0)
            first[i / batches] = x->pair[0];
    }
    for (int i = 1; i < 3; i++)
        moved += first[i] != first[0];
    assert_true(differ > batches && moved > 0);
    cpl_batcher_free(a);
    cpl_batcher_free(b);
    cpl_batcher_free(c);
    free_rows(&rows);
}

/* ---- weights ---- */

/* 20 rows of a file of weight 2, 30 of weight 0.25 (7.5: 8 a pass), 10 of weight 1.5: 40 + 8 + 15 in each pass. */
static void weights_add_up(void **state)
{
    (void)state;
    static const double weights[] = {2, 0.25, 1.5};
    cpl_rows rows = rows_of(60, 9);
    for (int i = 0; i < 60; i++)
        rows.items[i].file = i < 20 ? 0 : i < 50 ? 1 : 2;
    rows.weights = weights;
    assert_int_equal(cpl_rows_in_pass(&rows), 63);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 8, .shuffle = 1, .seed = 3});
    assert_int_equal(cpl_batcher_batches(b), 8);
    int ever[60] = {0}, passes = 40;
    for (int pass = 0; pass < passes; pass++) {
        int seen[60] = {0}, of_file[3] = {0};
        for (int64_t i = 0; i < 8; i++) {
            const cpl_batch *batch = cpl_batcher_next(b);
            for (int64_t k = 0; k < batch->pairs; k++)
                seen[batch->pair[k]]++;
        }
        for (int i = 0; i < 60; i++) {
            uint32_t file = rows.items[i].file;
            of_file[file] += seen[i];
            ever[i] += seen[i];
            assert_true(file == 0 ? seen[i] == 2 : file == 1 ? seen[i] <= 1 : seen[i] == 1 || seen[i] == 2);
        }
        assert_true(of_file[0] == 40 && of_file[1] == 8 && of_file[2] == 15);
    }
    for (int i = 20; i < 50; i++) /* another draw in each pass: about 8/30 of them */
        assert_true(ever[i] > 2 && ever[i] < 22);
    cpl_batcher_free(b);
    free_rows(&rows);
}

/* The plan's bound holds where the longest row comes three times into one batch. */
static void capacity_counts_copies(void **state)
{
    (void)state;
    static const double weights[] = {3};
    cpl_rows rows = rows_of(30, 9);
    cpl_batch_capacity c, most = {0};
    rows.weights = weights;
    assert_int_equal(cpl_rows_capacity(&rows, 4, 0, &c, NULL), CPL_OK);
    assert_true(c.target_tokens > 3 * c.longest_target);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 4, .shuffle = 1, .seed = 3});
    for (int i = 0; i < 200; i++)
        assert_within(cpl_batcher_next(b), &c, &most);
    assert_true(most.target_tokens > c.target_tokens * 9 / 10);
    cpl_batcher_free(b);
    free_rows(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_once_within_the_limit), cmocka_unit_test(cuts_by_hand),
        cmocka_unit_test(deterministic), cmocka_unit_test(weights_add_up), cmocka_unit_test(capacity_counts_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
