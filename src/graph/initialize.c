/* initialize.c: first values of parameters: a pure function of (seed, path), whatever else the model holds.
 *
 * Glorot and Bengio 2010: uniform in ±√(6 / (fan in + fan out)). Orthogonal (Saxe et al. 2013): the Q of a
 * Gaussian matrix, by modified Gram–Schmidt in double; the longer side holds unit vectors. */
#include <math.h>
#include <string.h>
#include "base/hash.h"
#include "graph/parameters.h"

static void uniform(real *x, int64_t n, double limit, uint64_t key)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (real)((2.0 * cpl_random_unit(key, (uint64_t)i) - 1.0) * limit);
}

/* vectors[count length]: makes the rows orthonormal, one after another. */
static void orthonormalize(double *vectors, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; i++) {
        double *v = vectors + i * length;
        for (int64_t j = 0; j < i; j++) {
            const double *w = vectors + j * length;
            double dot = 0;
            for (int64_t k = 0; k < length; k++)
                dot += v[k] * w[k];
            for (int64_t k = 0; k < length; k++)
                v[k] -= dot * w[k];
        }
        double norm = 0;
        for (int64_t k = 0; k < length; k++)
            norm += v[k] * v[k];
        norm = norm > 0 ? 1.0 / sqrt(norm) : 0;
        for (int64_t k = 0; k < length; k++)
            v[k] *= norm;
    }
}

static void orthogonal(const cpl_parameter_info *info, real *x, uint64_t key)
{
    int64_t columns = info->rank > 0 ? info->size[info->rank - 1] : 1;
    int64_t rows = columns > 0 ? info->elements / columns : 0;
    int tall = rows > columns;
    int64_t count = tall ? columns : rows, length = tall ? rows : columns;
    double *v = cpl_alloc((size_t)(count * length), sizeof *v);
    if (!v) { /* no memory for the exact form: the closest that needs none */
        uniform(x, info->elements, sqrt(6.0 / (double)(rows + columns)), key);
        return;
    }
    for (int64_t i = 0; i < count * length; i++)
        v[i] = cpl_random_normal(key, (uint64_t)i);
    orthonormalize(v, count, length);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            x[r * columns + c] = (real)(tall ? v[c * length + r] : v[r * length + c]);
    cpl_release(v);
}

void cpl_initialize(const cpl_parameter_info *info, uint64_t seed, real *x)
{
    uint64_t key = cpl_random_key(seed, cpl_hash64(0, info->path, strlen(info->path)), 0);
    int64_t columns = info->rank > 0 ? info->size[info->rank - 1] : 1;
    int64_t rows = columns > 0 ? info->elements / columns : 0;
    switch (info->initializer) {
    case CPL_ZEROS:
    case CPL_ONES:
        for (int64_t i = 0; i < info->elements; i++)
            x[i] = info->initializer == CPL_ONES;
        break;
    case CPL_GLOROT_UNIFORM:
        uniform(x, info->elements, sqrt(6.0 / (double)(rows + columns)), key);
        break;
    case CPL_UNIFORM_005:
        uniform(x, info->elements, 0.05, key);
        break;
    case CPL_ORTHOGONAL:
        orthogonal(info, x, key);
        break;
    case CPL_LSTM_BIAS: /* gates i f c o: the forget gate starts open */
        for (int64_t i = 0; i < info->elements; i++)
            x[i] = i / (columns / 4) == 1;
        break;
    }
}
