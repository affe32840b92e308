/* gru.c: reference gates of one GRU step, reset after and reset before the recurrent product. */
#include <math.h>
#include "kernel/ref/reference.h"

void cpl_ref_gru_forward(int64_t rows, int64_t u, const real *xg, const real *hg, const real *h, real *keep,
                         real *h_next)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i++) {
            const real *x = xg + row * 3 * u + i;
            const real *s = hg + row * 3 * u + i;
            real *k = keep + row * 4 * u + i;
            double z = cpl_ref_sigmoid((double)x[0] + (double)s[0]);
            double r = cpl_ref_sigmoid((double)x[u] + (double)s[u]);
            double n = tanh((double)x[2 * u] + r * (double)s[2 * u]);

            k[0] = (real)z;
            k[u] = (real)r;
            k[2 * u] = (real)n;
            k[3 * u] = s[2 * u];
            h_next[row * u + i] = (real)(z * (double)h[row * u + i] + (1.0 - z) * n);
        }
    }
}

/* h' = z·h + (1−z)·n, so dz = dh·(h−n) and dn = dh·(1−z), each times the slope of its activation. */
void cpl_ref_gru_backward(int64_t rows, int64_t u, const real *keep, const real *h, const real *dh, real *dxg,
                          real *dhg, real *dh_prev)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i++) {
            const real *k = keep + row * 4 * u + i;
            real *dx = dxg + row * 3 * u + i;
            real *ds = dhg + row * 3 * u + i;
            double z = (double)k[0];
            double r = (double)k[u];
            double n = (double)k[2 * u];
            double d = (double)dh[row * u + i];
            double dn = d * (1.0 - z) * (1.0 - n * n);
            double dz = d * ((double)h[row * u + i] - n) * z * (1.0 - z);
            double dr = dn * (double)k[3 * u] * r * (1.0 - r);

            dx[0] = ds[0] = (real)dz;
            dx[u] = ds[u] = (real)dr;
            dx[2 * u] = (real)dn;
            ds[2 * u] = (real)(dn * r);
            dh_prev[row * u + i] = (real)(d * z);
        }
    }
}

void cpl_ref_gru_before_gates(int64_t rows, int64_t u, const real *xg, const real *hg2, const real *h, real *keep,
                              real *rh)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i++) {
            const real *x = xg + row * 3 * u + i;
            const real *s = hg2 + row * 2 * u + i;
            real *k = keep + row * 3 * u + i;
            double r = cpl_ref_sigmoid((double)x[u] + (double)s[u]);

            k[0] = (real)cpl_ref_sigmoid((double)x[0] + (double)s[0]);
            k[u] = (real)r;
            rh[row * u + i] = (real)(r * (double)h[row * u + i]);
        }
    }
}

void cpl_ref_gru_before_state(int64_t rows, int64_t u, const real *xg, const real *hn, const real *h, real *keep,
                              real *h_next)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i++) {
            real *k = keep + row * 3 * u + i;
            double z = (double)k[0];
            double n = tanh((double)xg[row * 3 * u + 2 * u + i] + (double)hn[row * u + i]);

            k[2 * u] = (real)n;
            h_next[row * u + i] = (real)(z * (double)h[row * u + i] + (1.0 - z) * n);
        }
    }
}

void cpl_ref_gru_before_backward_state(int64_t rows, int64_t u, const real *keep, const real *h, const real *dh,
                                       real *dxg, real *dh_prev)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i++) {
            const real *k = keep + row * 3 * u + i;
            real *dx = dxg + row * 3 * u + i;
            double z = (double)k[0];
            double n = (double)k[2 * u];
            double d = (double)dh[row * u + i];

            dx[0] = (real)(d * ((double)h[row * u + i] - n) * z * (1.0 - z));
            dx[2 * u] = (real)(d * (1.0 - z) * (1.0 - n * n));
            dh_prev[row * u + i] = (real)(d * z);
        }
    }
}

void cpl_ref_gru_before_backward_gates(int64_t rows, int64_t u, const real *keep, const real *h, const real *drh,
                                       real *dxg, real *dh_prev)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i++) {
            double r = (double)keep[row * 3 * u + u + i];
            double d = (double)drh[row * u + i];

            dxg[row * 3 * u + u + i] = (real)(d * (double)h[row * u + i] * r * (1.0 - r));
            dh_prev[row * u + i] = (real)((double)dh_prev[row * u + i] + d * r);
        }
    }
}
