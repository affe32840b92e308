/* geometry.c: lengths or a mask → packed rows. */
#include "graph/geometry.h"

#include <string.h>
#include "base/error.h"
#include "base/memory.h"

static int grow_to(int32_t **array, int64_t capacity)
{
    int32_t *bigger = cpl_resize(*array, (size_t)(capacity > 0 ? capacity : 1), sizeof(int32_t));
    if (!bigger)
        return -1;
    *array = bigger;
    return 0;
}

cpl_status cpl_geometry_reserve(cpl_geometry *g, int64_t batch, int64_t longest, int64_t rows, cpl_error *err)
{
    int failed = 0;
    if (batch > g->batch_capacity || !g->length) {
        failed |= grow_to(&g->length, batch) | grow_to(&g->sentence, batch) | grow_to(&g->position, batch);
        g->batch_capacity = failed ? g->batch_capacity : batch;
    }
    if (longest > g->longest_capacity || !g->offset) {
        failed |= grow_to(&g->offset, longest + 2); /* two more: the counting sort needs a slot past the end */
        g->longest_capacity = failed ? g->longest_capacity : longest;
    }
    if (rows > g->rows_capacity || !g->place) {
        failed |= grow_to(&g->place, rows);
        g->rows_capacity = failed ? g->rows_capacity : rows;
    }
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the rows of %lld sentences", (long long)batch);
    return CPL_OK;
}

/* Counting sort by length, longest first, stable; then the offsets of the steps. Fills all but place. */
static cpl_status sort_lengths(cpl_geometry *g, const int64_t *lengths, int64_t batch, int64_t width, cpl_error *err)
{
    int64_t rows = 0, longest = 0;
    for (int64_t i = 0; i < batch; i++) {
        if (lengths[i] < 0 || lengths[i] > width)
            CPL_FAIL(err, CPL_USAGE, "length of sentence %lld is %lld, expected 0 to %lld", (long long)i,
                     (long long)lengths[i], (long long)width);
        rows += lengths[i];
        longest = lengths[i] > longest ? lengths[i] : longest;
    }
    if (rows > INT32_MAX)
        CPL_FAIL(err, CPL_USAGE, "a batch of %lld tokens is too large, at most %d", (long long)rows, INT32_MAX);
    CPL_TRY(cpl_geometry_reserve(g, batch, longest, rows, err), err, "cannot lay out the batch");
    g->batch = batch, g->longest = longest, g->rows = rows, g->width = width, g->bound = 1;

    int32_t *count = g->offset; /* count[L] sentences of length L, then where they begin */
    memset(count, 0, (size_t)(longest + 2) * sizeof *count);
    for (int64_t i = 0; i < batch; i++)
        count[lengths[i]]++;
    int32_t begin = 0;
    for (int64_t length = longest; length >= 0; length--) {
        int32_t n = count[length];
        count[length] = begin;
        begin += n;
    }
    for (int64_t i = 0; i < batch; i++) {
        int32_t at = count[lengths[i]]++;
        g->sentence[at] = (int32_t)i;
        g->position[i] = at;
        g->length[at] = (int32_t)lengths[i];
    }
    int64_t active = batch, row = 0;
    for (int64_t step = 0; step <= longest; step++) {
        g->offset[step] = (int32_t)row;
        while (active > 0 && g->length[active - 1] <= step)
            active--;
        row += active;
    }
    return CPL_OK;
}

cpl_status cpl_geometry_set_lengths(cpl_geometry *g, const int64_t *lengths, int64_t batch, int64_t width,
                                    cpl_error *err)
{
    cpl_status status = sort_lengths(g, lengths, batch, width, err);
    if (status != CPL_OK)
        return status;
    for (int64_t step = 0; step < g->longest; step++)
        for (int32_t row = g->offset[step]; row < g->offset[step + 1]; row++)
            g->place[row] = (int32_t)step;
    return CPL_OK;
}

cpl_status cpl_geometry_set_mask(cpl_geometry *g, const uint8_t *mask, int64_t batch, int64_t width, cpl_error *err)
{
    int64_t *lengths = cpl_alloc((size_t)batch, sizeof *lengths);
    if (!lengths)
        CPL_FAIL(err, CPL_FAILED, "out of memory for a mask of %lld sentences", (long long)batch);
    for (int64_t i = 0; i < batch; i++)
        for (int64_t k = 0; k < width; k++)
            lengths[i] += mask[i * width + k] != 0;
    cpl_status status = sort_lengths(g, lengths, batch, width, err);
    cpl_release(lengths);
    if (status != CPL_OK)
        return status;
    for (int64_t at = 0; at < batch; at++) {
        const uint8_t *row = mask + g->sentence[at] * width;
        int32_t step = 0;
        for (int64_t k = 0; k < width; k++)
            if (row[k])
                g->place[g->offset[step++] + at] = (int32_t)k;
    }
    return CPL_OK;
}

cpl_status cpl_geometry_set_single(cpl_geometry *g, int64_t batch, cpl_error *err)
{
    CPL_TRY(cpl_geometry_reserve(g, batch, 1, batch, err), err, "cannot lay out the batch");
    for (int64_t i = 0; i < batch; i++) {
        g->length[i] = 1;
        g->sentence[i] = g->position[i] = (int32_t)i;
        g->place[i] = 0;
    }
    g->offset[0] = 0, g->offset[1] = (int32_t)batch;
    g->batch = g->rows = batch, g->longest = batch > 0, g->width = 1, g->bound = 1;
    return CPL_OK;
}

cpl_status cpl_geometry_copy(cpl_geometry *to, const cpl_geometry *from, cpl_error *err)
{
    size_t batch = (size_t)from->batch * sizeof(int32_t);
    CPL_TRY(cpl_geometry_reserve(to, from->batch, from->longest, from->rows, err), err, "cannot lay out the batch");
    memcpy(to->length, from->length, batch);
    memcpy(to->sentence, from->sentence, batch);
    memcpy(to->position, from->position, batch);
    memcpy(to->offset, from->offset, (size_t)(from->longest + 1) * sizeof(int32_t));
    memcpy(to->place, from->place, (size_t)from->rows * sizeof(int32_t));
    to->batch = from->batch, to->longest = from->longest, to->rows = from->rows, to->width = from->width;
    to->bound = 1;
    return CPL_OK;
}

void cpl_geometry_free(cpl_geometry *g)
{
    cpl_release(g->length);
    cpl_release(g->sentence);
    cpl_release(g->position);
    cpl_release(g->offset);
    cpl_release(g->place);
    memset(g, 0, sizeof *g);
}

size_t cpl_geometry_bytes(const cpl_geometry *g)
{
    return sizeof(int32_t) * (size_t)(3 * g->batch_capacity + g->longest_capacity + 2 + g->rows_capacity);
}

int64_t cpl_geometry_pairs(const cpl_geometry *a, const cpl_geometry *b)
{
    int64_t pairs = 0;
    for (int64_t i = 0; i < a->batch && i < b->batch; i++)
        pairs += (int64_t)a->length[i] * b->length[b->position[a->sentence[i]]];
    return pairs;
}

size_t cpl_pair_index_bytes(int64_t batch, int64_t longest)
{
    return sizeof(int64_t) * (size_t)(batch + longest + 2);
}

cpl_pair_index cpl_pair_index_make(void *memory, const cpl_geometry *t, const cpl_geometry *s)
{
    int64_t *prefix = memory, *base = prefix + t->batch + 1;
    prefix[0] = base[0] = 0;
    for (int64_t i = 0; i < t->batch; i++)
        prefix[i + 1] = prefix[i] + s->length[s->position[t->sentence[i]]];
    for (int64_t step = 0; step < t->longest; step++)
        base[step + 1] = base[step] + prefix[cpl_geometry_active(t, step)];
    return (cpl_pair_index){.prefix = prefix, .base = base};
}
