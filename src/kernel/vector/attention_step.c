/* attention_step.c: scaled dot-product attention of one query: the steps of decoding, and of loops.
 *
 * A step uses each key and each value once, so nothing is gathered or packed first. Scores: blocks of keys are turned
 * in registers, so that each lane sums up the score of a key of its own. Values: rows are added up where they stand.
 * Each number is summed in the order of gemm, in slices of DEPTH_MOST, and so has its bits. */
#include "kernel/vector/gemm_pack.h"
#include "kernel/vector/turn.h"
#include "kernel/vector/vector.h"

enum { GROUPS = 2 /* of TURN keys at a time: as many chains of sums */ };

/* sum[g] += Σ over a slice of `depth` of q · the keys of group g. */
INLINE void slice_scores(const int G, const float *q, const float *const *row, int64_t depth, turn_vec *sum)
{
    int64_t p = 0;

    for (; p + TURN <= depth; p += TURN) {
        UNROLL
        for (int g = 0; g < G; g++) {
            const float *at[TURN];
            turn_vec column[TURN];

            UNROLL
            for (int i = 0; i < TURN; i++)
                at[i] = row[g * TURN + i] + p;
            turn_rows(at, column);
            UNROLL
            for (int i = 0; i < TURN; i++)
                sum[g] = turn_fma(turn_splat(q[p + i]), column[i], sum[g]);
        }
    }
    for (; p < depth; p++) {
        UNROLL
        for (int g = 0; g < G; g++) {
            turn_vec column;

            for (int i = 0; i < TURN; i++)
                column[i] = row[g * TURN + i][p];
            sum[g] = turn_fma(turn_splat(q[p]), column, sum[g]);
        }
    }
}

/* Scores of keys j … j + G·TURN − 1; where there are fewer, the last one stands for those that are missing. */
INLINE void scores_block(const int G, const cpl_attention_step *a, int64_t at, int64_t j, float *scores)
{
    const float *row[GROUPS * TURN], *q = a->q + at;
    turn_vec total[GROUPS] = {turn_splat(0.0f), turn_splat(0.0f)};
    float out[GROUPS * TURN];
    int64_t left = a->s - j, ld = a->heads * a->width;
    parts slices = cut_evenly(a->width, DEPTH_MOST);

    for (int i = 0; i < G * TURN; i++)
        row[i] = a->k + a->at[j + (i < left ? i : left - 1)] * ld + at;
    for (int64_t slice = 0, depth; slice < slices.count; slice++, q += depth) {
        turn_vec sum[GROUPS] = {turn_splat(0.0f), turn_splat(0.0f)};

        depth = part_size(slices, slice);
        slice_scores(G, q, row, depth, sum);
        for (int g = 0; g < G; g++) {
            if (slice > 0)
                sum[g] = total[g] + sum[g];
            total[g] = sum[g];
        }
        for (int i = 0; i < G * TURN; i++)
            row[i] += depth;
    }
    memcpy(out, total, sizeof(turn_vec) * (size_t)G);
    memcpy(scores + j, out, sizeof(float) * (size_t)(left < G * TURN ? left : G * TURN));
}

/* y[at …] = Σ weights · values, V vectors of columns; w: how many lanes of the last exist. */
INLINE void mix(const int V, const cpl_attention_step *a, const float *weights, int64_t at, int w)
{
    int64_t ld = a->heads * a->width, j = 0;
    parts slices = cut_evenly(a->s, DEPTH_MOST);
    float *y = a->y + at;

    for (int64_t slice = 0; slice < slices.count; slice++) {
        int64_t end = j + part_size(slices, slice);
        vec sum[8];

        UNROLL
        for (int v = 0; v < V; v++)
            sum[v] = splat(0.0f);
        for (; j < end; j++) {
            const float *row = a->v + a->at[j] * ld + at;
            vec weight = splat(weights[j]);

            UNROLL
            for (int v = 0; v < V; v++)
                sum[v] = fma_(weight, v + 1 < V ? load(row + v * LANES) : load_part(row + v * LANES, w), sum[v]);
        }
        UNROLL
        for (int v = 0; v < V; v++) {
            int lanes = v + 1 < V ? LANES : w;

            if (slice > 0)
                sum[v] = load_part(y + v * LANES, lanes) + sum[v];
            store_part(y + v * LANES, lanes, sum[v]);
        }
    }
}

void CPL_FN(attention_step)(const cpl_attention_step *a)
{
    for (int64_t h = 0; h < a->heads; h++) {
        float *weights = a->weights + h * a->ld;
        int64_t at = h * a->width, end = at + a->width, j = 0;

        for (; j + TURN < a->s; j += GROUPS * TURN)
            scores_block(GROUPS, a, at, j, weights);
        if (j < a->s)
            scores_block(1, a, at, j, weights);
        CPL_FN(scale)(a->s, a->scale, weights, weights);
        CPL_FN(softmax)(1, a->s, weights, a->s);
        for (; at + 8 * LANES <= end; at += 8 * LANES)
            mix(8, a, weights, at, LANES);
        for (; at + 4 * LANES <= end; at += 4 * LANES)
            mix(4, a, weights, at, LANES);
        for (; at < end; at += LANES)
            mix(1, a, weights, at, width(end - at));
    }
}
