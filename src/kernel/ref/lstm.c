/* lstm.c: reference gates of one LSTM step. */
#include <math.h>
#include "kernel/ref/reference.h"

void cpl_ref_lstm_forward(int64_t rows, int64_t u, const real *xg, const real *hg, const real *c, real *keep,
                          real *c_next, real *h_next)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t j = 0; j < u; j++) {
            const real *x = xg + row * 4 * u + j;
            const real *s = hg + row * 4 * u + j;
            real *k = keep + row * 4 * u + j;
            double i = cpl_ref_sigmoid((double)x[0] + (double)s[0]);
            double f = cpl_ref_sigmoid((double)x[u] + (double)s[u]);
            double g = tanh((double)x[2 * u] + (double)s[2 * u]);
            double o = cpl_ref_sigmoid((double)x[3 * u] + (double)s[3 * u]);
            double cell = f * (double)c[row * u + j] + i * g;

            k[0] = (real)i;
            k[u] = (real)f;
            k[2 * u] = (real)g;
            k[3 * u] = (real)o;
            c_next[row * u + j] = (real)cell;
            h_next[row * u + j] = (real)(o * tanh(cell));
        }
    }
}

/* The cell receives its own gradient and, through h' = o·tanh(c'), that of the output. */
void cpl_ref_lstm_backward(int64_t rows, int64_t u, const real *keep, const real *c, const real *c_next, const real *dh,
                           const real *dc, real *da, real *dc_prev)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t j = 0; j < u; j++) {
            const real *k = keep + row * 4 * u + j;
            real *d = da + row * 4 * u + j;
            double i = (double)k[0];
            double f = (double)k[u];
            double g = (double)k[2 * u];
            double o = (double)k[3 * u];
            double t = tanh((double)c_next[row * u + j]);
            double out = (double)dh[row * u + j];
            double cell = (double)dc[row * u + j] + out * o * (1.0 - t * t);

            d[0] = (real)(cell * g * i * (1.0 - i));
            d[u] = (real)(cell * (double)c[row * u + j] * f * (1.0 - f));
            d[2 * u] = (real)(cell * i * (1.0 - g * g));
            d[3 * u] = (real)(out * t * o * (1.0 - o));
            dc_prev[row * u + j] = (real)(cell * f);
        }
    }
}
