/* attention.c: reference of scaled dot-product attention of one query. */
#include "kernel/ref/reference.h"

void cpl_ref_attention_step(const cpl_attention_step *a)
{
    int64_t row = a->heads * a->width;

    for (int64_t h = 0; h < a->heads; h++) {
        real *weights = a->weights + h * a->ld;

        for (int64_t j = 0; j < a->s; j++) {
            double sum = 0.0;

            for (int64_t p = h * a->width; p < (h + 1) * a->width; p++)
                sum += (double)a->q[p] * (double)a->k[a->at[j] * row + p];
            weights[j] = (real)sum;
        }
        cpl_ref_scale(a->s, a->scale, weights, weights);
        cpl_ref_softmax(1, a->s, weights, a->s);
        for (int64_t p = h * a->width; p < (h + 1) * a->width; p++) {
            double sum = 0.0;

            for (int64_t j = 0; j < a->s; j++)
                sum += (double)weights[j] * (double)a->v[a->at[j] * row + p];
            a->y[p] = (real)sum;
        }
    }
}
