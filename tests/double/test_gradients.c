/* test_gradients.c: every op's backward pass against numeric gradients, in double precision on the reference
 * kernels. A walk over the op table and each op's `tests` lines: an op is tested by being in ops.def.
 *
 * L = Σ over visible outputs of dout · out with random dout. Each input element in turn is moved by ±STEP; the
 * difference quotient must agree with the backward pass within 1e-7 · max(1, largest gradient of that input). */
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

static const double STEP = 1e-5, TOLERANCE = 1e-7;
static double worst; /* error over allowed error, of all ops */

/* L of the outputs as they stand. */
static double project(const cpl_harness *h)
{
    double sum = 0;
    for (int k = 0; k < h->signature.visible; k++)
        for (int64_t i = 0; i < cpl_harness_elements(&h->dout[k]); i++)
            sum += h->dout[k].data[i] * h->out[k].data[i];
    return sum;
}

static double numeric(cpl_harness *h, real *x)
{
    real saved = *x;
    *x = saved + STEP;
    cpl_harness_forward(h, 0);
    double up = project(h);
    *x = saved - STEP;
    cpl_harness_forward(h, 0);
    double down = project(h);
    *x = saved;
    return (up - down) / (2 * STEP);
}

/* `analytic` holds what should be the gradient of input i. */
static void compare_input(cpl_harness *h, int i, const real *analytic)
{
    int64_t n = cpl_harness_elements(&h->in[i]);
    double largest = 1;
    for (int64_t k = 0; k < n; k++)
        largest = fabs(analytic[k]) > largest ? fabs(analytic[k]) : largest;
    for (int64_t k = 0; k < n; k++) {
        double expected = numeric(h, &h->in[i].data[k]);
        double error = fabs(expected - analytic[k]) / (TOLERANCE * largest);
        worst = error > worst ? error : worst;
        if (!(error <= 1))
            fail_msg("%s: gradient of input '%s' element %lld is %.10g, numerically %.10g", cpl_harness_name(h),
                     h->signature.in[i].name, (long long)k, analytic[k], expected);
    }
}

static real *copy_of(const cpl_tensor *x)
{
    size_t n = (size_t)cpl_harness_elements(x);
    real *copy = cpl_alloc(n, sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, x->data, n * sizeof *copy);
    return copy;
}

static void check_backward(cpl_harness *h)
{
    cpl_harness_forward(h, 1);
    cpl_harness_backward(h, 0, 0);
    for (int i = 0; i < h->signature.inputs; i++) {
        cpl_harness_filled(h, &h->din[i], "input gradient", i);
        if (!h->din[i].data)
            continue;
        real *analytic = copy_of(&h->din[i]);
        compare_input(h, i, analytic);
        cpl_release(analytic);
    }
}

/* Hidden outputs of a READY op are the gradients of its first inputs for L = out[0]. */
static void check_ready(cpl_harness *h)
{
    int visible = h->signature.visible;
    if (!(h->op->flags & CPL_OP_READY))
        return;
    for (int k = 0; k < visible; k++)
        for (int64_t i = 0; i < cpl_harness_elements(&h->dout[k]); i++)
            h->dout[k].data[i] = k == 0;
    for (int k = visible; k < h->signature.outputs; k++) {
        if (!h->in[k - visible].data)
            continue;
        cpl_harness_forward(h, 1); /* the comparison of the input before spoiled the outputs */
        real *ready = copy_of(&h->out[k]);
        compare_input(h, k - visible, ready);
        cpl_release(ready);
    }
    cpl_harness_draw(h, 1);
}

static void assert_close(const cpl_harness *h, const cpl_harness_results *a, const cpl_harness_results *b,
                         const char *what)
{
    int64_t n = a->end[a->segments - 1];
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(a->data[i] - b->data[i]) <= 1e-12))
            fail_msg("%s: results differ %s: %.17g and %.17g", cpl_harness_name(h), what, a->data[i], b->data[i]);
}

/* A gradient that does not arrive counts as zeros; with none at all, all input gradients are zeros. */
static void check_missing_dout(cpl_harness *h)
{
    for (int k = 0; k < h->signature.visible; k++) {
        cpl_harness_results with, without;
        size_t bytes = (size_t)cpl_harness_elements(&h->dout[k]) * sizeof(real);
        if (!h->dout[k].data)
            continue;
        memset(h->dout[k].data, 0, bytes);
        cpl_harness_backward(h, 0, 0);
        cpl_harness_collect(h, &with);
        cpl_harness_backward(h, 1u << k, 0);
        cpl_harness_collect(h, &without);
        assert_close(h, &with, &without, "between a zero gradient of an output and none");
        cpl_release(with.data);
        cpl_release(without.data);
        cpl_harness_draw(h, 1);
    }
    cpl_harness_backward(h, ~0u, 0);
    for (int i = 0; i < h->signature.inputs; i++)
        for (int64_t k = 0; k < cpl_harness_elements(&h->din[i]); k++)
            assert_true(h->din[i].data[k] == 0);
}

/* Input gradients that nobody needs: the others are the same bits, the skipped one is not touched. */
static void check_missing_din(cpl_harness *h)
{
    cpl_harness_results all, some;
    cpl_harness_backward(h, 0, 0);
    cpl_harness_collect(h, &all);
    for (int i = 0; i < h->signature.inputs; i++) {
        int64_t n = cpl_harness_elements(&h->din[i]);
        if (!h->din[i].data)
            continue;
        cpl_harness_backward(h, 0, 1u << i);
        for (int64_t k = 0; k < n; k++)
            if (!isnan(h->din[i].data[k]))
                fail_msg("%s: writes a gradient that nobody needs (input %d)", cpl_harness_name(h), i);
        int segment = CPL_MAX_OUTPUTS + i;
        memcpy(h->din[i].data, all.data + all.end[segment] - n, (size_t)n * sizeof(real));
        cpl_harness_collect(h, &some);
        if (all.end[all.segments - 1] && memcmp(all.data, some.data, (size_t)all.end[all.segments - 1] * sizeof(real)))
            fail_msg("%s: other gradients change when that of input %d is not needed", cpl_harness_name(h), i);
        cpl_release(some.data);
    }
    cpl_release(all.data);
}

/* The same outputs without hidden ones, and in the memory of the input where the op allows it; inputs unchanged. */
static void check_forward(cpl_harness *h)
{
    cpl_harness_results first, second;
    cpl_harness_forward(h, 1);
    for (int k = 0; k < h->signature.outputs; k++)
        cpl_harness_filled(h, &h->out[k], "output", k);
    cpl_harness_collect(h, &first);
    int64_t n = first.end[h->signature.visible - 1];
    cpl_harness_forward(h, 0);
    cpl_harness_collect(h, &second);
    if (n && memcmp(first.data, second.data, (size_t)n * sizeof(real)))
        fail_msg("%s: outputs differ with and without differentiation", cpl_harness_name(h));
    cpl_release(second.data);
    if ((h->op->flags & CPL_OP_IN_PLACE) && h->in[0].data) {
        cpl_harness_forward_in_place(h);
        cpl_harness_collect(h, &second);
        if (n && memcmp(first.data, second.data, (size_t)n * sizeof(real)))
            fail_msg("%s: outputs differ in place", cpl_harness_name(h));
        cpl_release(second.data);
    }
    cpl_release(first.data);
}

static void check_line(const cpl_op *op, const char *line, const cpl_harness_batch *batch)
{
    cpl_harness h;
    cpl_harness_open(&h, op, line, batch, 0);
    check_forward(&h);
    if (!(op->flags & CPL_OP_NO_GRADIENT)) {
        assert_non_null(op->backward);
        check_backward(&h);
        cpl_harness_forward(&h, 1);
        check_missing_dout(&h);
        check_missing_din(&h);
        check_ready(&h);
        h.training = 0; /* only ops that drop know the difference */
        check_backward(&h);
    }
    cpl_harness_close(&h);
}

/* Every op, each line, each batch; ops without a gradient are run forward only. */
static void test_every_op(void **state)
{
    (void)state;
    size_t lines = 0;
    for (size_t i = 0; cpl_op_at(i); i++) {
        const cpl_op *op = cpl_op_at(i);
        worst = 0;
        assert_non_null(op->tests);
        for (int k = 0; op->tests[k]; k++, lines++)
            for (size_t b = 0; cpl_harness_batch_at(b); b++)
                check_line(op, op->tests[k], cpl_harness_batch_at(b));
        print_message("%-22s error %.2g of the allowed\n", op->name, worst);
    }
    assert_true(lines >= 40);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_op)};

CPL_TEST_MAIN(tests)
