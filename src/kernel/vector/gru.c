/* gru.c: gates of one GRU step, one vector of units at a time. The formulas are those of ref/gru.c. */
#include "kernel/vector/vector.h"
#include "kernel/vector/vmath.h"

/* z·h + (1−z)·n as n + z·(h−n): one product less. */
INLINE vec blend(vec z, vec h, vec n)
{
    return fma_(z, h - n, n);
}

void CPL_FN(gru_forward)(int64_t rows, int64_t u, const float *xg, const float *hg, const float *h, float *keep,
                         float *h_next)
{
    for (int64_t row = 0; row < rows; row++, xg += 3 * u, hg += 3 * u, h += u, keep += 4 * u, h_next += u) {
        for (int64_t i = 0; i < u; i += LANES) {
            int w = width(u - i);
            vec z = vsigmoid(load_part(xg + i, w) + load_part(hg + i, w));
            vec r = vsigmoid(load_part(xg + u + i, w) + load_part(hg + u + i, w));
            vec hh = load_part(hg + 2 * u + i, w);
            vec n = vtanh(fma_(r, hh, load_part(xg + 2 * u + i, w)));

            store_part(keep + i, w, z);
            store_part(keep + u + i, w, r);
            store_part(keep + 2 * u + i, w, n);
            store_part(keep + 3 * u + i, w, hh);
            store_part(h_next + i, w, blend(z, load_part(h + i, w), n));
        }
    }
}

/* y·(1−y) and 1−y², the slopes of sigmoid and tanh. */
INLINE vec sigmoid_slope(vec y)
{
    return fma_(-y, y, y);
}

INLINE vec tanh_slope(vec y)
{
    return fma_(-y, y, splat(1.0f));
}

void CPL_FN(gru_backward)(int64_t rows, int64_t u, const float *keep, const float *h, const float *dh, float *dxg,
                          float *dhg, float *dh_prev)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = 0; i < u; i += LANES) {
            int w = width(u - i);
            vec z = load_part(keep + i, w);
            vec r = load_part(keep + u + i, w);
            vec n = load_part(keep + 2 * u + i, w);
            vec d = load_part(dh + i, w);
            vec dn = d * (splat(1.0f) - z) * tanh_slope(n);
            vec dz = d * (load_part(h + i, w) - n) * sigmoid_slope(z);
            vec dr = dn * load_part(keep + 3 * u + i, w) * sigmoid_slope(r);

            store_part(dxg + i, w, dz);
            store_part(dxg + u + i, w, dr);
            store_part(dxg + 2 * u + i, w, dn);
            store_part(dhg + i, w, dz);
            store_part(dhg + u + i, w, dr);
            store_part(dhg + 2 * u + i, w, dn * r);
            store_part(dh_prev + i, w, d * z);
        }
        keep += 4 * u;
        h += u;
        dh += u;
        dxg += 3 * u;
        dhg += 3 * u;
        dh_prev += u;
    }
}

void CPL_FN(gru_before_gates)(int64_t rows, int64_t u, const float *xg, const float *hg2, const float *h, float *keep,
                              float *rh)
{
    for (int64_t row = 0; row < rows; row++, xg += 3 * u, hg2 += 2 * u, h += u, keep += 3 * u, rh += u) {
        for (int64_t i = 0; i < u; i += LANES) {
            int w = width(u - i);
            vec r = vsigmoid(load_part(xg + u + i, w) + load_part(hg2 + u + i, w));

            store_part(keep + i, w, vsigmoid(load_part(xg + i, w) + load_part(hg2 + i, w)));
            store_part(keep + u + i, w, r);
            store_part(rh + i, w, r * load_part(h + i, w));
        }
    }
}

void CPL_FN(gru_before_state)(int64_t rows, int64_t u, const float *xg, const float *hn, const float *h, float *keep,
                              float *h_next)
{
    for (int64_t row = 0; row < rows; row++, xg += 3 * u, hn += u, h += u, keep += 3 * u, h_next += u) {
        for (int64_t i = 0; i < u; i += LANES) {
            int w = width(u - i);
            vec n = vtanh(load_part(xg + 2 * u + i, w) + load_part(hn + i, w));

            store_part(keep + 2 * u + i, w, n);
            store_part(h_next + i, w, blend(load_part(keep + i, w), load_part(h + i, w), n));
        }
    }
}

void CPL_FN(gru_before_backward_state)(int64_t rows, int64_t u, const float *keep, const float *h, const float *dh,
                                       float *dxg, float *dh_prev)
{
    for (int64_t row = 0; row < rows; row++, keep += 3 * u, h += u, dh += u, dxg += 3 * u, dh_prev += u) {
        for (int64_t i = 0; i < u; i += LANES) {
            int w = width(u - i);
            vec z = load_part(keep + i, w);
            vec n = load_part(keep + 2 * u + i, w);
            vec d = load_part(dh + i, w);

            store_part(dxg + i, w, d * (load_part(h + i, w) - n) * sigmoid_slope(z));
            store_part(dxg + 2 * u + i, w, d * (splat(1.0f) - z) * tanh_slope(n));
            store_part(dh_prev + i, w, d * z);
        }
    }
}

void CPL_FN(gru_before_backward_gates)(int64_t rows, int64_t u, const float *keep, const float *h, const float *drh,
                                       float *dxg, float *dh_prev)
{
    for (int64_t row = 0; row < rows; row++, keep += 3 * u, h += u, drh += u, dxg += 3 * u, dh_prev += u) {
        for (int64_t i = 0; i < u; i += LANES) {
            int w = width(u - i);
            vec r = load_part(keep + u + i, w);
            vec d = load_part(drh + i, w);

            store_part(dxg + u + i, w, d * load_part(h + i, w) * sigmoid_slope(r));
            store_part(dh_prev + i, w, fma_(d, r, load_part(dh_prev + i, w)));
        }
    }
}
