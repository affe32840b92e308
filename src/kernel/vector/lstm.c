/* lstm.c: gates of one LSTM step, one vector of units at a time. The formulas are those of ref/lstm.c. */
#include "kernel/vector/vector.h"
#include "kernel/vector/vmath.h"

void CPL_FN(lstm_forward)(int64_t rows, int64_t u, const float *xg, const float *hg, const float *c, float *keep,
                          float *c_next, float *h_next)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t j = 0; j < u; j += LANES) {
            int w = width(u - j);
            vec i = vsigmoid(load_part(xg + j, w) + load_part(hg + j, w));
            vec f = vsigmoid(load_part(xg + u + j, w) + load_part(hg + u + j, w));
            vec g = vtanh(load_part(xg + 2 * u + j, w) + load_part(hg + 2 * u + j, w));
            vec o = vsigmoid(load_part(xg + 3 * u + j, w) + load_part(hg + 3 * u + j, w));
            vec cell = fma_(f, load_part(c + j, w), i * g);

            store_part(keep + j, w, i);
            store_part(keep + u + j, w, f);
            store_part(keep + 2 * u + j, w, g);
            store_part(keep + 3 * u + j, w, o);
            store_part(c_next + j, w, cell);
            store_part(h_next + j, w, o * vtanh(cell));
        }
        xg += 4 * u;
        hg += 4 * u;
        c += u;
        keep += 4 * u;
        c_next += u;
        h_next += u;
    }
}

void CPL_FN(lstm_backward)(int64_t rows, int64_t u, const float *keep, const float *c, const float *c_next,
                           const float *dh, const float *dc, float *da, float *dc_prev)
{
    const vec one = splat(1.0f);

    for (int64_t row = 0; row < rows; row++) {
        for (int64_t j = 0; j < u; j += LANES) {
            int w = width(u - j);
            vec i = load_part(keep + j, w);
            vec f = load_part(keep + u + j, w);
            vec g = load_part(keep + 2 * u + j, w);
            vec o = load_part(keep + 3 * u + j, w);
            vec t = vtanh(load_part(c_next + j, w));
            vec out = load_part(dh + j, w);
            vec cell = fma_(out * o, fma_(-t, t, one), load_part(dc + j, w));

            store_part(da + j, w, cell * g * fma_(-i, i, i));
            store_part(da + u + j, w, cell * load_part(c + j, w) * fma_(-f, f, f));
            store_part(da + 2 * u + j, w, cell * i * fma_(-g, g, one));
            store_part(da + 3 * u + j, w, out * t * fma_(-o, o, o));
            store_part(dc_prev + j, w, cell * f);
        }
        keep += 4 * u;
        c += u;
        c_next += u;
        dh += u;
        dc += u;
        da += 4 * u;
        dc_prev += u;
    }
}
