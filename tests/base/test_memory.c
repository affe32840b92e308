/* Memory: counting, overflow, big mapped blocks, arenas; maps; checksums and random numbers. */
#include "support/run.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"

static void counts_and_returns_to_zero(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes(), calls = cpl_memory_allocations();
    char *p = cpl_alloc(10, 100);
    assert_non_null(p);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    assert_true(cpl_memory_live_bytes() >= live + 1000);
    memset(p, 7, 1000);
    p = cpl_resize(p, 5000, 1);
    assert_int_equal(p[999], 7);
    assert_true(cpl_memory_live_bytes() >= live + 5000);
    assert_int_equal(cpl_memory_allocations(), calls + 2);
    cpl_release(p);
    cpl_release(NULL);
    assert_int_equal(cpl_memory_live_bytes(), live);
    void *nothing = cpl_alloc(0, 8);
    assert_non_null(nothing);
    cpl_release(nothing);
}

static void refuses_overflow_and_injected_faults(void **state)
{
    (void)state;
    assert_null(cpl_alloc(SIZE_MAX / 2, 3));
    assert_null(cpl_resize(NULL, SIZE_MAX, 2));
    assert_null(cpl_alloc_aligned(SIZE_MAX - 5, 64));
    assert_null(cpl_alloc_aligned(100, 48)); /* no power of two */
    cpl_memory_fail_at(2);
    void *first = cpl_alloc(1, 1), *second = cpl_alloc(1, 1), *third = cpl_alloc(1, 1);
    cpl_memory_fail_at(0);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    cpl_release(first);
    cpl_release(third);
}

static void aligned_blocks_are_zero_at_any_size(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes();
    static const size_t sizes[] = {0, 1, 4096, (1 << 20) - 1, 1 << 20, (3 << 20) + 5};
    static const size_t alignments[] = {1, 64, 4096, 1 << 21};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof alignments / sizeof *alignments; k++) {
            char *p = cpl_alloc_aligned(sizes[i], alignments[k]);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % alignments[k], 0);
            for (size_t b = 0; b < sizes[i]; b += 509)
                assert_int_equal(p[b], 0);
            if (sizes[i] > 0)
                memset(p, 1, sizes[i]);
            assert_true(cpl_memory_live_bytes() >= live + sizes[i]);
            cpl_release(p);
        }
    char *big = cpl_alloc_aligned(2 << 20, 64), *other = cpl_alloc_aligned(2 << 20, 64);
    big[0] = 5;
    big = cpl_resize(big, 3 << 20, 1); /* a mapped block moves to the heap */
    assert_int_equal(big[0], 5);
    cpl_release(big);
    cpl_release(other);
    assert_int_equal(cpl_memory_live_bytes(), live);
}

static void arenas_never_move(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes();
    cpl_arena *a = cpl_arena_new(1024);
    char *texts[500];
    for (int i = 0; i < 500; i++) {
        texts[i] = cpl_arena_printf(a, "text %d", i);
        char *block = cpl_arena_alloc(a, i % 50 == 0 ? 5000 : 24);
        assert_int_equal((uintptr_t)block % 16, 0);
        assert_int_equal(block[23], 0);
        memset(block, 255, i % 50 == 0 ? 5000 : 24);
    }
    for (int i = 0; i < 500; i++) {
        char expected[20];
        snprintf(expected, sizeof expected, "text %d", i);
        assert_string_equal(texts[i], expected);
    }
    assert_memory_equal(cpl_arena_strndup(a, "a\0b", 3), "a\0b", 4);
    assert_true(cpl_arena_bytes(a) > 10 * 5000 && cpl_arena_bytes(a) < 120000);
    cpl_arena_free(a);
    cpl_arena_free(NULL);
    assert_int_equal(cpl_memory_live_bytes(), live);
}

enum { KEYS = 100000 };

static void map_holds_100000_keys_in_order(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes();
    cpl_map *m = cpl_map_new();
    char key[32];
    int is_new;
    for (int i = 0; i < KEYS; i++) {
        int n = snprintf(key, sizeof key, "word%d", i * 7919);
        int64_t *value = cpl_map_insert(m, key, (size_t)n, &is_new);
        assert_non_null(value);
        assert_true(is_new && *value == 0);
        *value = i;
    }
    assert_int_equal(cpl_map_size(m), KEYS);
    for (int i = 0; i < KEYS; i++) {
        size_t n = (size_t)snprintf(key, sizeof key, "word%d", i * 7919), length;
        assert_int_equal(*cpl_map_find(m, key, n), i);
        assert_string_equal(cpl_map_key(m, (size_t)i, &length), key);
        assert_int_equal(length, n);
        assert_int_equal(cpl_map_value(m, (size_t)i), i);
        key[n] = 'x';
        assert_null(cpl_map_find(m, key, n + 1));
    }
    assert_int_equal(*cpl_map_insert(m, "word0", 5, &is_new), 0);
    assert_false(is_new);
    assert_true(cpl_map_bytes(m) <= cpl_memory_live_bytes() - live + 4096);
    cpl_map_free(m);
    assert_int_equal(cpl_memory_live_bytes(), live);
}

static void map_keys_may_be_any_bytes(void **state)
{
    (void)state;
    cpl_map *m = cpl_map_new();
    *cpl_map_insert(m, "", 0, NULL) = 1;
    *cpl_map_insert(m, "\0", 1, NULL) = 2;
    *cpl_map_insert(m, "a\0b", 3, NULL) = 3;
    *cpl_map_insert(m, "a\0c", 3, NULL) = 4;
    assert_int_equal(cpl_map_size(m), 4);
    assert_int_equal(*cpl_map_find(m, "", 0), 1);
    assert_int_equal(*cpl_map_find(m, "\0", 1), 2);
    assert_int_equal(*cpl_map_find(m, "a\0b", 3), 3);
    assert_null(cpl_map_find(m, "a", 1));
    cpl_map_free(m);
}

/* Every allocation fails once, in turn; the map stays whole and nothing leaks. */
static void map_survives_lack_of_memory(void **state)
{
    (void)state;
    uint64_t live = cpl_memory_live_bytes();
    for (uint64_t fault = 1; fault < 60; fault++) {
        cpl_memory_fail_at(fault);
        cpl_map *m = cpl_map_new();
        for (int i = 0; m && i < 3000; i++) {
            char key[16];
            size_t n = (size_t)snprintf(key, sizeof key, "%d", i), size = cpl_map_size(m);
            int64_t *value = cpl_map_insert(m, key, n, NULL);
            if (!value) {
                assert_int_equal(cpl_map_size(m), size);
                assert_null(cpl_map_find(m, key, n));
                value = cpl_map_insert(m, key, n, NULL);
            }
            assert_non_null(value);
            *value = i;
        }
        cpl_memory_fail_at(0);
        if (m)
            assert_int_equal(*cpl_map_find(m, "2999", 4), 2999);
        cpl_map_free(m);
        assert_int_equal(cpl_memory_live_bytes(), live);
    }
}

/* The first value is splitmix64's published first output for seed 0; the others come from a second
 * implementation, in another language, of what hash.h says. Files store them: they may never change. */
static void checksums_have_fixed_values(void **state)
{
    (void)state;
    unsigned char bytes[100];
    for (int i = 0; i < 100; i++)
        bytes[i] = (unsigned char)(i * 7);
    assert_true(cpl_mix64(0) == 0xE220A8397B1DCDAFu);
    assert_true(cpl_hash64(0, "", 0) == 0xa706dd2f4d197e6fu);
    assert_true(cpl_hash64(0, "couplet", 7) == 0x75eed99297ccc434u);
    assert_true(cpl_hash64(0, bytes, 100) == 0x8403adbf2fc34666u);
    assert_true(cpl_hash64(cpl_hash64(0, "couplet", 7), "attention", 9) == 0x7e339974e7678b05u);
    for (size_t bit = 0; bit < 800; bit++) { /* any flipped bit shows */
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(cpl_hash64(0, bytes, 100) != 0x8403adbf2fc34666u);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(cpl_hash64(0, "a", 1) != cpl_hash64(0, "a\0", 2));
}

static void random_numbers_have_fixed_values_and_moments(void **state)
{
    (void)state;
    uint64_t key = cpl_random_key(42, 1, 2);
    assert_true(key == 0xcb2c7aba4a5a9d3du);
    assert_true(cpl_random_bits(key, 3) == 0xeb8eebe114660c0cu);
    assert_true(cpl_random_unit(key, 3) == 15437547 / 16777216.0);
    assert_int_equal(cpl_random_below(key, 5, 10), 2);
    assert_true(fabs(cpl_random_normal(key, 3) - 1.0081326291331942) < 1e-14);
    double sum = 0, squares = 0, fourth = 0;
    const int n = 200000;
    for (int i = 0; i < n; i++) {
        double x = cpl_random_normal(key, (uint64_t)i);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    /* Four standard errors of each moment. */
    assert_true(fabs(sum / n) < 4 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 4 * sqrt(2.0 / n));
    assert_true(fabs(fourth / n - 3) < 4 * sqrt(96.0 / n));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(counts_and_returns_to_zero),
    cmocka_unit_test(refuses_overflow_and_injected_faults),
    cmocka_unit_test(aligned_blocks_are_zero_at_any_size),
    cmocka_unit_test(arenas_never_move),
    cmocka_unit_test(map_holds_100000_keys_in_order),
    cmocka_unit_test(map_keys_may_be_any_bytes),
    cmocka_unit_test(map_survives_lack_of_memory),
    cmocka_unit_test(checksums_have_fixed_values),
    cmocka_unit_test(random_numbers_have_fixed_values_and_moments),
};

CPL_TEST_MAIN(tests)
