/* test_tables.c: every op on every kernel table against the reference table, forward and backward, with 1, 2 and 3
 * threads. Within a table the bits must not depend on the threads; between tables results agree closely. Sizes
 * have tails: features of 1, 15, 16, 17 and batches of 1, 15, 17 sentences, and one that is cut into many tasks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "support/op_harness.h"
#include "support/run.h"

static const double TOLERANCE = 1e-5; /* of the largest number of a tensor, or of 1 */

enum { TABLES = 8, MOST_SENTENCES = 70 };

static void run_all(cpl_harness *h, const cpl_kernels *kernels, int threads, cpl_harness_results *results)
{
    cpl_harness_use(h, kernels, threads);
    cpl_harness_forward(h, 1);
    if (h->op->backward)
        cpl_harness_backward(h, 0, 0);
    cpl_harness_collect(h, results);
}

static void compare(const cpl_harness *h, const cpl_harness_results *want, const cpl_harness_results *got)
{
    int64_t from = 0;
    for (int s = 0; s < want->segments; from = want->end[s++]) {
        double largest = 1;
        for (int64_t i = from; i < want->end[s]; i++)
            largest = fabs((double)want->data[i]) > largest ? fabs((double)want->data[i]) : largest;
        for (int64_t i = from; i < want->end[s]; i++)
            if (!(fabs((double)want->data[i] - (double)got->data[i]) <= TOLERANCE * largest))
                fail_msg("%s: result %d element %lld is %.9g, on the reference kernels %.9g", cpl_harness_name(h), s,
                         (long long)(i - from), (double)got->data[i], (double)want->data[i]);
    }
}

static void check_line(const cpl_op *op, const char *line, const cpl_harness_batch *batch, int64_t tail)
{
    const cpl_kernels *tables[TABLES];
    int count = cpl_kernels_all(tables, TABLES);
    cpl_harness h;
    cpl_harness_results want, one, more;
    cpl_harness_open(&h, op, line, batch, tail);
    run_all(&h, cpl_kernels_named("reference"), 1, &want);
    size_t bytes = (size_t)want.end[want.segments - 1] * sizeof(real);
    for (int k = 0; k < count; k++) {
        run_all(&h, tables[k], 1, &one);
        compare(&h, &want, &one);
        for (int threads = 2; threads <= 3; threads++) {
            run_all(&h, tables[k], threads, &more);
            if (bytes && memcmp(one.data, more.data, bytes))
                fail_msg("%s: %d threads give other bits than one", cpl_harness_name(&h), threads);
            cpl_release(more.data);
        }
        cpl_release(one.data);
    }
    cpl_release(want.data);
    cpl_harness_close(&h);
}

/* Lengths 0 … longest in a scrambled order, different for s and t. */
static void make_lengths(int64_t *s, int64_t *t, int64_t batch, int64_t longest)
{
    for (int64_t i = 0; i < batch; i++) {
        s[i] = (i * 5 + 3) % (longest + 1);
        t[i] = (i * 7 + 1) % (longest + 1);
    }
}

static void walk(int64_t sentences, int64_t longest, const int64_t *tails, size_t count, int first_line_only)
{
    static char name[64];
    int64_t s[MOST_SENTENCES], t[MOST_SENTENCES];
    make_lengths(s, t, sentences, longest);
    snprintf(name, sizeof name, "%lld sentences", (long long)sentences);
    cpl_harness_batch batch = {name, sentences, longest + 2, s, t, 0};
    for (size_t i = 0; cpl_op_at(i); i++)
        for (int k = 0; cpl_op_at(i)->tests[k] && !(k && first_line_only); k++)
            for (size_t n = 0; n < count; n++)
                check_line(cpl_op_at(i), cpl_op_at(i)->tests[k], &batch, tails[n]);
}

static void test_tails(void **state)
{
    static const int64_t tails[] = {0, 1, 15, 16, 17};
    (void)state;
    walk(1, 3, tails, 5, 0);
    walk(15, 4, tails, 5, 0);
    walk(17, 6, tails, 5, 0);
}

/* Large enough that products and rows are cut into several tasks. */
static void test_many_tasks(void **state)
{
    static const int64_t tails[] = {97};
    (void)state;
    walk(MOST_SENTENCES, 20, tails, 1, 1);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_tails), cmocka_unit_test(test_many_tasks)};

CPL_TEST_MAIN(tests)
