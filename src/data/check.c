/* check.c: every id is looked at before the first step, so that no rare word ends a run after hours (A03). */
#include "base/error.h"
#include "data/data.h"

enum { PLACES_SHOWN = 3, PLACES_SIZE = 200 };

/* Ids out of range: how many, and the first few written out by `place`. */
typedef struct finding {
    int64_t count;
    size_t used;
    char places[PLACES_SIZE];
} finding;

static void found(finding *f, const char *place, int64_t column, int32_t id)
{
    if (f->count < PLACES_SHOWN && f->used < sizeof f->places) {
        int n = snprintf(f->places + f->used, sizeof f->places - f->used, "%s%s column %lld has id %d",
                         f->count ? ", " : "", place, (long long)column, id);
        f->used += n > 0 ? (size_t)n : 0;
    }
    f->count++;
}

static void scan(finding *f, const int32_t *ids, int64_t length, int64_t size, const char *place)
{
    for (int64_t k = 0; k < length; k++)
        if (ids[k] < 0 || ids[k] >= size)
            found(f, place, k, ids[k]);
}

static cpl_status refuse(const finding *f, const char *layer, int64_t size, cpl_error *err)
{
    CPL_FAIL(err, CPL_USAGE,
             "'%s' cannot look up %lld %s: %s%s; valid are 0..%lld: the vocabulary has %lld entries including padding "
             "and unknown", layer, (long long)f->count, f->count == 1 ? "id" : "ids", f->places,
             f->count > PLACES_SHOWN ? " …" : "", (long long)size - 1, (long long)size);
}

cpl_status cpl_check_ids(const char *layer, const int32_t *const *rows, const int64_t *lengths, int64_t count,
                         int64_t size, cpl_error *err)
{
    finding f = {0};
    for (int64_t i = 0; i < count; i++) {
        char place[40];
        snprintf(place, sizeof place, "row %lld", (long long)i);
        scan(&f, rows[i], lengths[i], size, place);
    }
    return f.count ? refuse(&f, layer, size, err) : CPL_OK;
}

/* Whether all ids fit: one comparison each, since a negative id is a large unsigned one. */
static int fits(const int32_t *ids, int32_t n, int64_t size)
{
    int bad = 0;
    for (int32_t k = 0; k < n; k++)
        bad |= (uint32_t)ids[k] >= (uint64_t)size;
    return !bad;
}

cpl_status cpl_dataset_check_ids(const cpl_dataset *d, int64_t source_size, int64_t target_size, cpl_error *err)
{
    finding f[2] = {{0}, {0}};
    const cpl_rows *splits[2] = {&d->train, &d->valid};
    for (int s = 0; s < 2; s++) {
        for (int64_t i = 0; i < splits[s]->count; i++) {
            const cpl_row *row = &splits[s]->items[i];
            const int32_t *source = cpl_row_source(splits[s], i), *target = cpl_row_target(splits[s], i);
            if (fits(source, row->source, source_size) && fits(target, row->target, target_size))
                continue;
            char place[160];
            cpl_dataset_place(d, row->file, row->line, place, sizeof place);
            scan(&f[0], source, row->source, source_size, place);
            scan(&f[1], target, row->target, target_size, place);
        }
    }
    if (f[0].count)
        return refuse(&f[0], "encoder.embedding", source_size, err);
    return f[1].count ? refuse(&f[1], "decoder.embedding", target_size, err) : CPL_OK;
}
