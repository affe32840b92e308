/* Batches: every pair once a pass, resume, bounds, fixed validation, the thread. */
#include "data_test.h"

static cpl_batcher *batcher(const cpl_rows *rows, cpl_batcher_options options)
{
    cpl_batcher *b;
    assert_int_equal(cpl_batcher_new(&b, rows, &options, NULL), CPL_OK);
    return b;
}

/* Takes a pass and checks that every row comes once; returns how many batches began with another row than its index. */
static void assert_one_pass(cpl_batcher *b, int64_t rows, int64_t pass)
{
    uint8_t *seen = cpl_alloc((size_t)rows, 1);
    int64_t count = 0;
    for (int64_t i = 0; i < cpl_batcher_batches(b); i++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        assert_int_equal(batch->pass, pass);
        assert_int_equal(batch->index, i);
        for (int64_t k = 0; k < batch->pairs; k++) {
            assert_int_equal(seen[batch->pair[k]]++, 0);
            /* the rows are those of the pair, START and END in their places */
            int32_t word = CPL_ID_WORDS + (int32_t)batch->pair[k];
            int64_t s = batch->source_length[k], t = batch->target_length[k];
            assert_int_equal(batch->source[k][0], CPL_ID_START);
            assert_int_equal(batch->source[k][1], word);
            assert_int_equal(batch->source[k][s - 1], CPL_ID_END);
            assert_int_equal(batch->target_in[k][0], CPL_ID_START);
            assert_int_equal(batch->target_in[k][t - 1], word);
            assert_int_equal(batch->target_out[k][0], word);
            assert_int_equal(batch->target_out[k][t - 1], CPL_ID_END);
        }
        count += batch->pairs;
    }
    assert_int_equal(count, rows);
    cpl_release(seen);
}

static void every_pair_once_a_pass(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {2, 3}, {7, 3}, {100, 100}, {1000, 1}, {5003, 32}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cpl_rows rows = rows_of(sizes[i][0], 9);
        cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = sizes[i][1], .shuffle = 1, .seed = 5});
        for (int64_t pass = 0; pass < 4; pass++)
            assert_one_pass(b, rows.count, pass);
        cpl_batcher_free(b);
        free_rows(&rows);
    }
}

static void case_G11_last_short_batch_is_kept(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(7, 5);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 3, .shuffle = 1, .seed = 1});
    assert_int_equal(cpl_batcher_batches(b), 3);
    int64_t last[8] = {0};
    for (int pass = 0; pass < 8; pass++) {
        static const int64_t sizes[] = {3, 3, 1};
        for (int i = 0; i < 3; i++) {
            const cpl_batch *batch = cpl_batcher_next(b);
            assert_int_equal(batch->pairs, sizes[i]);
            last[pass] = batch->pair[0];
        }
    }
    int differ = 0; /* the short batch is not always the same row */
    for (int pass = 1; pass < 8; pass++)
        differ |= last[pass] != last[0];
    assert_true(differ);
    cpl_batcher_free(b);
    free_rows(&rows);
}

/* 6 pairs, batch 2, 4 steps in an epoch, 3 epochs: 12 batches are four whole passes, the shuffle going on. */
static void case_G04_passes_flow_on(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(6, 5);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 2, .shuffle = 1, .seed = 3});
    int used[6] = {0}, orders[4] = {0};
    for (int step = 0; step < 12; step++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        assert_int_equal(batch->pairs, 2);
        assert_int_equal(batch->pass, step / 3);
        for (int64_t k = 0; k < 2; k++) {
            used[batch->pair[k]]++;
            orders[step / 3] = orders[step / 3] * 6 + (int)batch->pair[k];
        }
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(used[i], 4);
    assert_true(orders[0] != orders[1] || orders[1] != orders[2]);
    cpl_batcher_free(b);
    free_rows(&rows);
}

static void case_G05_validation_starts_over(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(10, 5);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 2, .most_batches = 2});
    assert_int_equal(cpl_batcher_batches(b), 2);
    for (int epoch = 0; epoch < 3; epoch++) {
        int first[10] = {0};
        assert_int_equal(cpl_batcher_seek(b, 0, 0, NULL), CPL_OK);
        for (int i = 0; i < 2; i++) {
            const cpl_batch *batch = cpl_batcher_next(b);
            for (int64_t k = 0; k < batch->pairs; k++)
                first[batch->pair[k]]++;
        }
        for (int i = 0; i < 10; i++)
            assert_int_equal(first[i], i < 4);
    }
    cpl_batcher_free(b);
    b = batcher(&rows, (cpl_batcher_options){.batch_size = 2, .most_batches = 50});
    assert_int_equal(cpl_batcher_batches(b), 5); /* all there is; the caller says so */
    assert_one_pass(b, 10, 0);
    cpl_batcher_free(b);
    cpl_batch_capacity c;
    assert_int_equal(cpl_rows_capacity(&rows, 2, 1, &c, NULL), CPL_OK);
    assert_int_equal(c.pairs, 2);
    assert_int_equal(c.source_tokens, rows.items[0].source + rows.items[1].source);
    free_rows(&rows);
}

static void assert_same_batch(const cpl_batch *a, const cpl_batch *b)
{
    assert_int_equal(a->pass, b->pass);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->pairs, b->pairs);
    assert_memory_equal(a->pair, b->pair, (size_t)a->pairs * sizeof *a->pair);
    assert_memory_equal(a->target_in, b->target_in, (size_t)a->pairs * sizeof *a->target_in);
}

/* From any position on the batches are those of the run that was never stopped; with and without the thread. */
static void case_G07_position_gives_identical_batches(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(20, 6);
    cpl_batcher_options options = {.batch_size = 3, .shuffle = 1, .seed = 11};
    for (int64_t stop = 0; stop < 22; stop++) {
        cpl_batcher *whole = batcher(&rows, options);
        int64_t pass, index;
        for (int64_t i = 0; i < stop; i++)
            cpl_batcher_next(whole);
        cpl_batcher_position(whole, &pass, &index);
        options.no_thread = stop % 2 == 0;
        cpl_batcher *resumed = batcher(&rows, options);
        assert_int_equal(cpl_batcher_seek(resumed, pass, index, NULL), CPL_OK);
        for (int i = 0; i < 20; i++)
            assert_same_batch(cpl_batcher_next(resumed), cpl_batcher_next(whole));
        cpl_batcher_free(whole);
        cpl_batcher_free(resumed);
    }
    cpl_batcher *b = batcher(&rows, options);
    assert_int_equal(cpl_batcher_seek(b, 0, 8, NULL), CPL_FAILED);
    assert_int_equal(cpl_batcher_seek(b, -1, 0, NULL), CPL_FAILED);
    cpl_batcher_next(b); /* seeking about, backwards too, while the thread works */
    assert_int_equal(cpl_batcher_seek(b, 9, 2, NULL), CPL_OK);
    assert_int_equal(cpl_batcher_next(b)->pass, 9);
    assert_int_equal(cpl_batcher_seek(b, 1, 7, NULL), CPL_OK);
    assert_int_equal(cpl_batcher_next(b)->pass, 2);
    cpl_batcher_free(b);
    free_rows(&rows);
}

static void the_thread_changes_nothing_and_nothing_is_allocated(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(3000, 40);
    cpl_batcher_options options = {.batch_size = 16, .shuffle = 1, .seed = 2};
    cpl_batcher *with = batcher(&rows, options);
    options.no_thread = 1;
    cpl_batcher *without = batcher(&rows, options);
    uint64_t allocations = cpl_memory_allocations();
    for (int64_t i = 0; i < cpl_batcher_batches(with) * 10 + 5; i++)
        assert_same_batch(cpl_batcher_next(with), cpl_batcher_next(without));
    assert_int_equal(cpl_memory_allocations(), allocations);
    cpl_batcher_free(with);
    cpl_batcher_free(without);
    free_rows(&rows);
}

static void bounds_hold(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(2000, 60);
    cpl_batch_capacity c;
    assert_int_equal(cpl_rows_capacity(&rows, 32, 0, &c, NULL), CPL_OK);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 32, .shuffle = 1, .seed = 9});
    int64_t longest = 0;
    for (int64_t i = 0; i < cpl_batcher_batches(b) * 20; i++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        int64_t products = 0, sources = 0, targets = 0;
        for (int64_t k = 0; k < batch->pairs; k++) {
            assert_true(batch->source_length[k] <= c.longest_source);
            assert_true(batch->target_length[k] <= c.longest_target);
            longest = batch->source_length[k] > longest ? batch->source_length[k] : longest;
            sources += batch->source_length[k];
            targets += batch->target_length[k];
            products += batch->source_length[k] * batch->target_length[k];
        }
        assert_int_equal(sources, batch->source_tokens);
        assert_int_equal(targets, batch->target_tokens);
        assert_true(batch->pairs <= c.pairs && sources <= c.source_tokens && targets <= c.target_tokens);
        assert_true(products <= c.products);
    }
    assert_int_equal(longest, c.longest_source);
    cpl_batcher_free(b);
    free_rows(&rows);
}

/* The share of a rectangle around each batch that targets fill, were the pairs taken as they come. */
static double share_as_they_come(const cpl_rows *rows, int64_t size)
{
    int64_t valid = 0, rectangle = 0;
    for (int64_t i = 0; i < rows->count; i += size) {
        int64_t longest = 0, n = rows->count - i < size ? rows->count - i : size;
        for (int64_t k = i; k < i + n; k++) {
            longest = rows->items[k].target > longest ? rows->items[k].target : longest;
            valid += rows->items[k].target;
        }
        rectangle += longest * n;
    }
    return (double)valid / (double)rectangle;
}

/* 1000 pairs, lengths 1..50, batch 32: were there padding, buckets would leave little of it. Every pair comes once a
 * pass all the same (every_pair_once_a_pass). */
static void case_J05_buckets_hold_like_lengths(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(1000, 50);
    double random = share_as_they_come(&rows, 32);
    assert_true(random > 0.48 && random < 0.58); /* about 0.52 */
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 32, .shuffle = 1, .seed = 1});
    int64_t valid = 0, rectangle = 0, growing = 0, before = 0;
    for (int64_t i = 0; i < cpl_batcher_batches(b); i++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        int64_t longest = 0;
        for (int64_t k = 0; k < batch->pairs; k++)
            longest = batch->target_length[k] > longest ? batch->target_length[k] : longest;
        valid += batch->target_tokens;
        rectangle += longest * batch->pairs;
        growing += longest >= before;
        before = longest;
    }
    assert_true((double)valid / (double)rectangle > 0.9);
    assert_true(growing < cpl_batcher_batches(b)); /* the buckets are shuffled */
    cpl_batcher_free(b);
    free_rows(&rows);
}

/* Sources of 10 to 2,000 words in one data set: like lengths still meet, and the bound is that of the longest. */
static void buckets_of_very_different_lengths(void **state)
{
    (void)state;
    cpl_rows rows = rows_of(2000, 1991);
    cpl_batch_capacity c;
    int64_t valid = 0, rectangle = 0, longest_of_all = 0;
    assert_int_equal(cpl_rows_capacity(&rows, 16, 0, &c, NULL), CPL_OK);
    cpl_batcher *b = batcher(&rows, (cpl_batcher_options){.batch_size = 16, .shuffle = 1, .seed = 4});
    for (int64_t i = 0; i < cpl_batcher_batches(b); i++) {
        const cpl_batch *batch = cpl_batcher_next(b);
        int64_t longest = 0;
        for (int64_t k = 0; k < batch->pairs; k++)
            longest = batch->target_length[k] > longest ? batch->target_length[k] : longest;
        valid += batch->target_tokens;
        rectangle += longest * batch->pairs;
        longest_of_all = longest > longest_of_all ? longest : longest_of_all;
    }
    assert_int_equal(longest_of_all, c.longest_target);
    assert_true((double)valid / (double)rectangle > 0.9);
    cpl_batcher_free(b);
    free_rows(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_once_a_pass),
        cmocka_unit_test(case_G11_last_short_batch_is_kept),
        cmocka_unit_test(case_G04_passes_flow_on),
        cmocka_unit_test(case_G05_validation_starts_over),
        cmocka_unit_test(case_G07_position_gives_identical_batches),
        cmocka_unit_test(the_thread_changes_nothing_and_nothing_is_allocated),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(case_J05_buckets_hold_like_lengths),
        cmocka_unit_test(buckets_of_very_different_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
