/* rows.c: functions of whole rows: softmax, cross-entropy, argmax. A row of 5,000 stays in the first-level
 * cache between its passes. */
#include <math.h>
#include "kernel/vector/vector.h"
#include "kernel/vector/vmath.h"

/* The largest entry; a NaN is skipped, n 0 gives −∞. */
static float largest(int64_t n, const float *x)
{
    vec most[2] = {splat(-INFINITY), splat(-INFINITY)};
    int64_t i = 0;

    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        most[0] = max_(load(x + i), most[0]);
        most[1] = max_(load(x + i + LANES), most[1]);
    }
    for (; i < n; i += LANES)
        most[0] = max_(load_fill(x + i, width(n - i), splat(-INFINITY)), most[0]);
    return max_lanes(max_(most[0], most[1]));
}

/* −∞ counts as 0: a row of −∞ alone then sums to 0 and never to NaN. */
static float peak(float most)
{
    return most == -INFINITY ? 0.0f : most;
}

/* Σ exp(x − most), a NaN brings its own back. Keeps the terms in `terms` (may be x) unless NULL. */
INLINE float sum_exp(int64_t n, const float *x, float most, float *terms)
{
    vec sum = splat(0.0f);

    for (int64_t i = 0; i < n; i += LANES) {
        int w = width(n - i);
        vec e = vexp_negative(load_fill(x + i, w, splat(-INFINITY)) - splat(most));

        if (terms != NULL)
            store_part(terms + i, w, e);
        sum = sum + e;
    }
    return sum_lanes(sum);
}

void CPL_FN(softmax)(int64_t rows, int64_t n, float *x, int64_t ldx)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * ldx;
        float sum = sum_exp(n, row, peak(largest(n, row)), row);
        float share = sum == 0.0f ? 0.0f : 1.0f / sum;

        for (int64_t i = 0; i < n; i++)
            row[i] *= share;
    }
}

void CPL_FN(softmax_backward)(int64_t rows, int64_t n, const float *y, const float *dy, float *dx, int64_t ld)
{
    for (int64_t r = 0; r < rows; r++, y += ld, dy += ld, dx += ld) {
        float sum = CPL_FN(dot)(n, y, dy);

        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] * (dy[i] - sum);
    }
}

/* What was seen of a row so far: each lane's largest, and where the block begins in which it first came. */
typedef struct search {
    vec most;
    ivec at, strange; /* strange: not 0 in a lane that met a NaN */
} search;

/* The entries from i on; block: the largest of each lane among them. */
INLINE void search_block(search *s, int64_t i, vec block)
{
    ivec higher = (ivec)(block > s->most);

    s->at = (higher & ((ivec){0} + (int32_t)i)) | (~higher & s->at);
    s->most = max_(block, s->most);
}

/* One vector more of a block; a NaN is kept in mind and skipped. */
INLINE vec search_vector(search *s, vec v, vec block)
{
    s->strange |= (ivec)(v != v);
    return max_(v, block);
}

/* Of the lanes that hold the row's largest the one that met it first says where to walk. */
static int32_t search_end(const search *s, const float *x)
{
    float most = max_lanes(s->most);
    int32_t first = INT32_MAX;

    for (int i = 0; i < LANES; i++) {
        if (s->strange[i])
            return -1;
        if (s->most[i] == most && s->at[i] < first)
            first = s->at[i];
    }
    while (x[first] != most)
        first++;
    return first;
}

/* The first largest entry, or −1 when one is a NaN: one pass at the speed of reading, a block of vectors at a time. */
static int32_t first_largest(int64_t n, const float *x)
{
    enum { BLOCK = 8 };
    search s = {.most = splat(-INFINITY)};
    int64_t i = 0;

    if (n == 0)
        return -1;
    for (; i + BLOCK * LANES <= n; i += BLOCK * LANES) {
        vec even = splat(-INFINITY), odd = even;

        for (int v = 0; v < BLOCK; v += 2) {
            even = search_vector(&s, load(x + i + v * LANES), even);
            odd = search_vector(&s, load(x + i + (v + 1) * LANES), odd);
        }
        search_block(&s, i, max_(even, odd));
    }
    for (; i < n; i += LANES)
        search_block(&s, i, search_vector(&s, load_fill(x + i, width(n - i), splat(-INFINITY)), splat(-INFINITY)));
    return search_end(&s, x);
}

void CPL_FN(argmax)(int64_t rows, int64_t n, const float *x, int64_t ldx, int32_t *index)
{
    for (int64_t r = 0; r < rows; r++)
        index[r] = first_largest(n, x + r * ldx);
}

void CPL_FN(argmax_sum_exp)(int64_t rows, int64_t n, const float *x, int64_t ldx, int32_t *index, float *sum)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * ldx;

        index[r] = first_largest(n, row);
        sum[r] = sum_exp(n, row, index[r] < 0 ? 0.0f : peak(row[index[r]]), NULL);
    }
}

static void add_bias(int64_t n, const float *bias, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += bias[i];
}

/* One row whose label counts. The gradient overwrites the logits by their exponentials first. */
static void row_entropy(int64_t n, float *x, int32_t target, float scale, int gradient, float *loss, float *correct)
{
    float highest = largest(n, x);
    float most = peak(highest);
    float logit = x[target];
    float sum;

    /* Only a target that reaches the largest logit can be the first largest. */
    *correct = logit == highest && first_largest(n, x) == target ? 1.0f : 0.0f;
    sum = gradient ? sum_exp(n, x, most, x) : sum_exp(n, x, most, NULL);
    *loss = (float)(log((double)sum) + ((double)most - (double)logit));
    if (gradient) {
        float factor = scale / sum;

        for (int64_t i = 0; i < n; i++)
            x[i] *= factor;
        x[target] -= scale;
    }
}

void CPL_FN(cross_entropy)(int64_t rows, int64_t n, float *logits, int64_t ld, const float *bias, const int32_t *target,
                           float scale, int gradient, float *loss, float *correct)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = logits + r * ld;

        if (bias != NULL && !(gradient && target[r] == 0))
            add_bias(n, bias, row);
        if (target[r] != 0) {
            row_entropy(n, row, target[r], scale, gradient, &loss[r], &correct[r]);
            continue;
        }
        loss[r] = 0.0f;
        correct[r] = 0.0f;
        if (gradient)
            memset(row, 0, sizeof(float) * (size_t)n);
    }
}
