/* Packed rows: order, offsets and places by hand. */
#include "graph/graph_test.h"

static void equal32(const int32_t *got, const int32_t *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(got[i], want[i]);
}

/* The example of geometry.h. */
static void lengths_by_hand(void **state)
{
    (void)state;
    cpl_geometry g = {0};
    MUST(cpl_geometry_set_lengths(&g, (int64_t[]){2, 3, 1}, 3, 5, err));
    assert_int_equal(g.bound, 1);
    assert_int_equal(g.batch, 3);
    assert_int_equal(g.longest, 3);
    assert_int_equal(g.rows, 6);
    assert_int_equal(g.width, 5);
    equal32(g.sentence, (int32_t[]){1, 0, 2}, 3);
    equal32(g.position, (int32_t[]){1, 0, 2}, 3);
    equal32(g.length, (int32_t[]){3, 2, 1}, 3);
    equal32(g.offset, (int32_t[]){0, 3, 5, 6}, 4);
    equal32(g.place, (int32_t[]){0, 0, 0, 1, 1, 2}, 6);
    assert_int_equal(cpl_geometry_active(&g, 0), 3);
    assert_int_equal(cpl_geometry_active(&g, 1), 2);
    assert_int_equal(cpl_geometry_active(&g, 2), 1);
    cpl_geometry_free(&g);
}

static void equal_lengths_keep_the_callers_order(void **state)
{
    (void)state;
    cpl_geometry g = {0};
    MUST(cpl_geometry_set_lengths(&g, (int64_t[]){2, 4, 2, 4, 2}, 5, 4, err));
    equal32(g.sentence, (int32_t[]){1, 3, 0, 2, 4}, 5);
    equal32(g.position, (int32_t[]){2, 0, 3, 1, 4}, 5);
    equal32(g.offset, (int32_t[]){0, 5, 10, 12, 14}, 5);
    cpl_geometry_free(&g);
}

static void empty_sentences_come_last_and_have_no_row(void **state)
{
    (void)state;
    cpl_geometry g = {0};
    MUST(cpl_geometry_set_lengths(&g, (int64_t[]){0, 2, 0, 1}, 4, 3, err));
    equal32(g.sentence, (int32_t[]){1, 3, 0, 2}, 4);
    equal32(g.length, (int32_t[]){2, 1, 0, 0}, 4);
    equal32(g.offset, (int32_t[]){0, 2, 3}, 3);
    assert_int_equal(g.rows, 3);
    MUST(cpl_geometry_set_lengths(&g, (int64_t[]){0, 0}, 2, 3, err));
    assert_int_equal(g.rows, 0);
    assert_int_equal(g.longest, 0);
    assert_int_equal(g.offset[0], 0);
    equal32(g.sentence, (int32_t[]){0, 1}, 2);
    cpl_geometry_free(&g);
}

/* Gaps, left padding and an empty row: the places are the columns that exist. */
static void masks_with_gaps(void **state)
{
    (void)state;
    cpl_geometry g = {0};
    const uint8_t mask[] = {1, 0, 1, 0, /**/ 0, 0, 0, 0, /**/ 0, 1, 1, 1, /**/ 0, 0, 0, 7};
    MUST(cpl_geometry_set_mask(&g, mask, 4, 4, err));
    equal32(g.sentence, (int32_t[]){2, 0, 3, 1}, 4);
    equal32(g.length, (int32_t[]){3, 2, 1, 0}, 4);
    equal32(g.offset, (int32_t[]){0, 3, 5, 6}, 4);
    equal32(g.place, (int32_t[]){1, 0, 3, 2, 2, 3}, 6);
    assert_int_equal(g.width, 4);
    cpl_geometry_free(&g);
}

static void a_prefix_mask_is_lengths(void **state)
{
    (void)state;
    cpl_geometry a = {0}, b = {0};
    const uint8_t mask[] = {1, 1, 0, /**/ 1, 1, 1, /**/ 1, 0, 0};
    MUST(cpl_geometry_set_mask(&a, mask, 3, 3, err));
    MUST(cpl_geometry_set_lengths(&b, (int64_t[]){2, 3, 1}, 3, 3, err));
    equal32(a.place, b.place, 6);
    equal32(a.offset, b.offset, 4);
    equal32(a.sentence, b.sentence, 3);
    cpl_geometry_free(&a);
    cpl_geometry_free(&b);
}

static void lengths_out_of_range(void **state)
{
    (void)state;
    cpl_geometry g = {0};
    REFUSED(cpl_geometry_set_lengths(&g, (int64_t[]){2, 6}, 2, 5, err), "sentence 1", "6", "0 to 5");
    REFUSED(cpl_geometry_set_lengths(&g, (int64_t[]){-1, 2}, 2, 5, err), "sentence 0", "-1");
    cpl_geometry_free(&g);
}

/* Σ over sentences of both lengths, whatever orders they stand in. */
static void pairs_follow_the_sentence(void **state)
{
    (void)state;
    cpl_geometry s = {0}, t = {0};
    MUST(cpl_geometry_set_lengths(&s, (int64_t[]){5, 1, 0, 2}, 4, 5, err));
    MUST(cpl_geometry_set_lengths(&t, (int64_t[]){1, 7, 9, 3}, 4, 9, err));
    assert_int_equal(cpl_geometry_pairs(&s, &t), 5 * 1 + 1 * 7 + 0 * 9 + 2 * 3);
    assert_int_equal(cpl_geometry_pairs(&t, &s), 18);
    cpl_geometry_free(&s);
    cpl_geometry_free(&t);
}

static void reserved_sizes_need_no_allocation(void **state)
{
    (void)state;
    cpl_geometry g = {0}, copy = {0};
    MUST(cpl_geometry_reserve(&g, 4, 6, 20, err));
    MUST(cpl_geometry_reserve(&copy, 4, 6, 20, err));
    uint64_t before = cpl_memory_allocations();
    MUST(cpl_geometry_set_lengths(&g, (int64_t[]){6, 6, 6, 2}, 4, 6, err));
    MUST(cpl_geometry_set_lengths(&g, (int64_t[]){1, 2}, 2, 6, err));
    MUST(cpl_geometry_copy(&copy, &g, err));
    assert_int_equal(cpl_memory_allocations(), before);
    assert_int_equal(copy.rows, 3);
    equal32(copy.sentence, (int32_t[]){1, 0}, 2);
    assert_true(cpl_geometry_bytes(&g) >= sizeof(int32_t) * (3 * 4 + 7 + 20));
    cpl_geometry_free(&g);
    cpl_geometry_free(&copy);
}

/* Any mask: rows and places lead back to exactly the positions that exist. */
static void random_masks_round_trip(void **state)
{
    (void)state;
    cpl_geometry g = {0};
    enum { B = 9, W = 11 };
    for (uint32_t seed = 1; seed < 200; seed++) {
        float x[B * W];
        uint8_t mask[B * W], back[B * W] = {0};
        fill(x, B * W, seed);
        for (int i = 0; i < B * W; i++)
            mask[i] = x[i] > (seed % 3 ? 0.0f : 0.9f);
        MUST(cpl_geometry_set_mask(&g, mask, B, W, err));
        for (int64_t step = 0; step < g.longest; step++)
            for (int64_t i = 0; i < cpl_geometry_active(&g, step); i++) {
                int64_t row = g.offset[step] + i;
                assert_true(step == 0 || g.place[row] > g.place[g.offset[step - 1] + i]);
                back[g.sentence[i] * W + g.place[row]]++;
            }
        assert_memory_equal(back, mask, sizeof mask);
    }
    cpl_geometry_free(&g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lengths_by_hand),
    cmocka_unit_test(equal_lengths_keep_the_callers_order),
    cmocka_unit_test(empty_sentences_come_last_and_have_no_row),
    cmocka_unit_test(masks_with_gaps),
    cmocka_unit_test(a_prefix_mask_is_lengths),
    cmocka_unit_test(lengths_out_of_range),
    cmocka_unit_test(pairs_follow_the_sentence),
    cmocka_unit_test(reserved_sizes_need_no_allocation),
    cmocka_unit_test(random_masks_round_trip),
};

CPL_TEST_MAIN(tests)
