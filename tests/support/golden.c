/* golden.c: see golden.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support/run.h"
#include "support/golden.h"

golden golden_open(const char *name)
{
    char path[512];
    golden g = {NULL};
    snprintf(path, sizeof path, "%s/golden/%s.safetensors", CPL_TEST_DATA, name);
    MUST(cpl_tensor_file_open(&g.file, path, err));
    return g;
}

void golden_close(golden *g)
{
    cpl_tensor_file_close(g->file);
}

const cpl_tensor_entry *golden_find(const golden *g, const char *name)
{
    const cpl_tensor_entry *t = cpl_tensor_file_find(g->file, name);
    if (!t)
        fail_msg("golden tensor '%s' is missing", name);
    return t;
}

double golden_at(const cpl_tensor_entry *t, int64_t i)
{
    switch (t->dtype) {
    case CPL_DTYPE_F32:
        return (double)((const float *)t->data)[i];
    case CPL_DTYPE_I64:
        return (double)((const int64_t *)t->data)[i];
    case CPL_DTYPE_BOOL:
        return ((const uint8_t *)t->data)[i];
    default:
        fail_msg("unexpected type of '%s'", t->name);
        return 0;
    }
}

cpl_array golden_array(const golden *g, const char *name)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    cpl_array a = {.type = t->dtype == CPL_DTYPE_I64 ? CPL_INT64 : CPL_FLOAT32, .rank = t->rank, .data = t->data};
    for (int i = 0; i < t->rank; i++)
        a.shape[i] = t->shape[i];
    return a;
}

void golden_feed(const golden *g, cpl_program *p, const char *input, const char *name)
{
    cpl_array a = golden_array(g, name);
    MUST(cpl_feed(p, input, &a, err));
}

void golden_feed_mask(const golden *g, cpl_program *p, const char *time, const char *name)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    uint8_t mask[256];
    int64_t n = t->shape[0] * t->shape[1];
    assert_true(n <= 256);
    for (int64_t i = 0; i < n; i++)
        mask[i] = golden_at(t, i) != 0;
    MUST(cpl_feed_mask(p, time, mask, t->shape[0], t->shape[1], err));
}

void golden_set(const golden *g, cpl_program *p, const char *path, const char *name)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    int64_t i = cpl_parameter_find(p, path), shape[3], n = 1;
    if (i < 0)
        fail_msg("no parameter '%s'", path);
    int rank = cpl_parameter_shape(p, (size_t)i, shape);
    for (int k = 0; k < rank; k++)
        n *= shape[k];
    assert_int_equal(n, cpl_tensor_elements(t));
    memcpy(cpl_parameter_value(p, (size_t)i), t->data, (size_t)n * sizeof(float));
}

void golden_check(const golden *g, const char *name, const float *got, int64_t n, double tolerance,
                  const cpl_tensor_entry *mask)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    assert_int_equal(n, cpl_tensor_elements(t));
    int64_t inner = mask ? n / (int64_t)cpl_tensor_elements(mask) : 1;
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        if (!mask || golden_at(mask, i / inner) != 0) {
            double d = fabs((double)got[i] - golden_at(t, i));
            worst = !(d <= worst) ? d : worst; /* a NaN is the worst */
        }
    if (!(worst <= tolerance))
        fail_msg("'%s' differs by %g, tolerance %g", name, worst, tolerance);
}

void golden_check_output(const golden *g, cpl_program *p, const char *output, const char *name, double tolerance,
                         const cpl_tensor_entry *mask)
{
    float got[8192];
    int64_t shape[6], n = 1;
    int rank;
    MUST(cpl_read(p, output, got, 8192, shape, &rank, err));
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    golden_check(g, name, got, n, tolerance, mask);
}

void golden_check_gradient(const golden *g, cpl_program *p, const char *path, const char *name, int zero_gradient)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    int64_t i = cpl_parameter_find(p, path), n = (int64_t)cpl_tensor_elements(t);
    const float *got = i < 0 ? NULL : cpl_parameter_gradient(p, (size_t)i);
    if (!got)
        fail_msg("'%s' has no gradient", path);
    double largest = 0;
    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, fabs(golden_at(t, k)));
    if (!zero_gradient) {
        golden_check(g, name, got, n, 2e-4 * largest, NULL);
        return;
    }
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)got[k]) < 2e-6))
            fail_msg("gradient of '%s' is %g, expected none", path, (double)got[k]);
}

/* ---- whole models ---- */

void golden_load(const golden *g, cpl_program *p, const golden_name *n, const char *prefix)
{
    char name[160];
    for (; n->ours; n++) {
        snprintf(name, sizeof name, "%s%s", prefix, n->theirs);
        golden_set(g, p, n->ours, name);
    }
}

static void check_gradients(const golden *g, cpl_program *p, const golden_name *n)
{
    char name[160];
    for (; n->ours; n++) {
        snprintf(name, sizeof name, "grad.w.%s", n->theirs);
        golden_check_gradient(g, p, n->ours, name, n->zero_gradient);
    }
}

static void check_weights(const golden *g, cpl_program *p, const golden_name *n)
{
    char name[160];
    for (; n->ours; n++) {
        snprintf(name, sizeof name, "after.w.%s", n->theirs);
        int64_t i = cpl_parameter_find(p, n->ours);
        if (!n->zero_gradient)
            golden_check(g, name, cpl_parameter_value(p, (size_t)i),
                         (int64_t)cpl_tensor_elements(golden_find(g, name)), 5e-5, NULL);
    }
}

void golden_check_step(const golden *g, cpl_program *p, int step, golden_feeder feed)
{
    feed(g, p);
    MUST(cpl_run(p, CPL_TRAIN, err));
    double loss = cpl_scalar(p, "loss"), want = golden_at(golden_find(g, "train.loss"), step);
    if (!(fabs(loss - want) <= 1e-4 * want))
        fail_msg("loss of step %d is %.9g, expected %.9g", step + 1, loss, want);
}

/* Loss and gradients, then 20 steps of Adam on the same batch. */
void golden_check_training(const golden *g, cpl_program *p, const golden_name *n, golden_feeder feed)
{
    for (int step = 0; step < 20; step++) {
        golden_check_step(g, p, step, feed);
        if (step == 0) {
            golden_check_output(g, p, "loss", "out.loss", 2e-5, NULL);
            golden_check_output(g, p, "accuracy", "out.accuracy", 2e-5, NULL);
            check_gradients(g, p, n);
        }
        MUST(cpl_adam(p, 1e-3, err));
    }
    check_weights(g, p, n);
}
