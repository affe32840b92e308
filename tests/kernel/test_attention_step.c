/* test_attention_step.c: scaled dot-product attention of one query, of every table: values known by hand, the bits of
 * products over gathered rows, and the reference. */
#include "kernel_test.h"

static const cpl_kernels *tables[TABLES_MOST];
static int table_count;

/* Two heads of width 2 and two keys, which stand in rows 1 and 0. Scores 0.5 · (2 ln 3, 0) and 0.5 · (0, 0). */
static void two_heads_by_hand(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        const int32_t at[] = {1, 0};
        const real q[] = {2, 0, 1, 1};
        const real k[] = {0, 7, 3, -3, (real)log(3.0), 9, 0, 0};
        const real v[] = {8, 4, 2, 6, 0, 12, 10, -2};
        const real shares[] = {0.75, 0.25, 0.5, 0.5};
        const real mean[] = {2, 10, 6, 2};
        real weights[4], y[4];
        cpl_attention_step a = {.s = 2, .heads = 2, .width = 2, .at = at, .q = q, .k = k, .v = v,
                                .scale = (real)0.5, .weights = weights, .ld = 2, .y = y};

        tables[t]->attention_step(&a);
        assert_close("attention_step: weights", tables[t]->name, weights, shares, 4, 3e-7);
        assert_close("attention_step", tables[t]->name, y, mean, 4, 3e-7);
        a.ld = 0; /* the last head's weights stay */
        tables[t]->attention_step(&a);
        assert_close("attention_step: weights", tables[t]->name, weights, shares + 2, 2, 3e-7);
        assert_close("attention_step", tables[t]->name, y, mean, 4, 3e-7);
    }
}

/* A query's keys and values among rows that belong to others, which are NaN: reading one would show. */
typedef struct sentence {
    int64_t s, heads, width;
    int32_t *at;
    real *q, *k, *v;
} sentence;

static sentence sentence_new(int64_t s, int64_t heads, int64_t width)
{
    sentence x = {.s = s, .heads = heads, .width = width};
    int64_t row = heads * width, rows = 3 * s + 2;

    x.at = calloc((size_t)s, sizeof *x.at);
    assert_non_null(x.at);
    x.q = numbers(row, 1, 1.0);
    x.k = numbers(rows * row, 2, 1.0);
    x.v = numbers(rows * row, 3, 2.0);
    for (int64_t j = 0; j < s; j++) /* 1, then steps of 3 and 2 */
        x.at[j] = (int32_t)(j == 0 ? 1 : x.at[j - 1] + 2 + j % 2);
    for (int64_t r = 0, j = 0; r < rows; r++) {
        if (j < s && x.at[j] == r) {
            j++;
            continue;
        }
        for (int64_t p = 0; p < row; p++)
            x.k[r * row + p] = x.v[r * row + p] = (real)NAN;
    }
    return x;
}

static void sentence_free(sentence *x)
{
    free(x->at);
    free(x->q);
    free(x->k);
    free(x->v);
}

static void run_step(const cpl_kernels *table, const sentence *x, real *weights, real *y)
{
    cpl_attention_step a = {.s = x->s, .heads = x->heads, .width = x->width, .at = x->at, .q = x->q, .k = x->k,
                            .v = x->v, .scale = (real)0.3, .weights = weights, .ld = x->s + 1, .y = y};

    table->attention_step(&a);
}

/* What attention of many queries does: gathered rows, one product for the scores and one for y. */
static void run_products(const cpl_kernels *table, const sentence *x, real *weights, real *y)
{
    int64_t row = x->heads * x->width, d = x->width;
    real *k = numbers(x->s * row, 1, 0.0), *v = numbers(x->s * row, 1, 0.0);
    void *scratch = table->gemm_scratch ? aligned_alloc(64, (table->gemm_scratch + 63) / 64 * 64) : NULL;

    for (int64_t j = 0; j < x->s; j++) {
        memcpy(k + j * row, x->k + x->at[j] * row, sizeof(real) * (size_t)row);
        memcpy(v + j * row, x->v + x->at[j] * row, sizeof(real) * (size_t)row);
    }
    for (int64_t h = 0; h < x->heads; h++) {
        real *w = weights + h * (x->s + 1);

        table->gemm(&(cpl_gemm){.transpose_b = 1, .m = 1, .n = x->s, .k = d, .a = x->q + h * d, .lda = row,
                                .b = k + h * d, .ldb = row, .c = w, .ldc = x->s}, scratch);
        table->scale(x->s, (real)0.3, w, w);
        table->softmax(1, x->s, w, x->s);
        table->gemm(&(cpl_gemm){.m = 1, .n = d, .k = x->s, .a = w, .lda = x->s, .b = v + h * d, .ldb = row,
                                .c = y + h * d, .ldc = row}, scratch);
    }
    free(scratch);
    free(k);
    free(v);
}

static void compare(const cpl_kernels *table, int64_t s, int64_t heads, int64_t width)
{
    sentence x = sentence_new(s, heads, width);
    int64_t n = heads * (s + 1), row = heads * width;
    /* what lies between and behind the heads' weights, and behind y, must stay as it is */
    real *weights = numbers(n, 4, 1.0), *y = numbers(row, 5, 1.0);
    real *gathered = copy_of(weights, n), *expected = copy_of(y, row), *judged = copy_of(weights, n),
         *judged_y = copy_of(y, row);

    run_step(table, &x, weights, y);
    run_products(table, &x, gathered, expected);
    if (memcmp(weights, gathered, sizeof(real) * (size_t)n) != 0 ||
        memcmp(y, expected, sizeof(real) * (size_t)row) != 0)
        fail_msg("attention_step of table %s has other bits than gemm (s %lld, %lld heads of %lld)", table->name,
                 (long long)s, (long long)heads, (long long)width);
    run_step(cpl_kernels_named("reference"), &x, judged, judged_y);
    assert_close("attention_step: weights", table->name, weights, judged, n, 3e-6);
    assert_close("attention_step", table->name, y, judged_y, row, 3e-6);
    free(weights);
    free(y);
    free(gathered);
    free(expected);
    free(judged);
    free(judged_y);
    sentence_free(&x);
}

static void bits_are_those_of_products(void **state)
{
    static const int64_t widths[] = {1, 3, 4, 7, 8, 15, 16, 31, 32, 33, 64, 100, 129, 256};
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33, 50};

    (void)state;
    for (int t = 0; t < table_count; t++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            for (size_t s = 0; s < sizeof lengths / sizeof *lengths; s++)
                compare(tables[t], lengths[s], 1 + (int64_t)(s % 3), widths[w]);
        }
    }
}

/* Beyond a slice of the product's depth, in the width and in the number of keys. */
static void slices_are_those_of_products(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        compare(tables[t], 9, 2, 257);
        compare(tables[t], 17, 1, 700);
        compare(tables[t], 257, 2, 20);
        compare(tables[t], 600, 1, 300);
    }
}

static void bfloat16_has_none(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++) {
        assert_non_null(tables[t]->attention_step);
        assert_null(cpl_kernels_in_bf16(tables[t]).attention_step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_heads_by_hand),
        cmocka_unit_test(bits_are_those_of_products),
        cmocka_unit_test(slices_are_those_of_products),
        cmocka_unit_test(bfloat16_has_none),
    };

    table_count = cpl_kernels_all(tables, TABLES_MOST);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
