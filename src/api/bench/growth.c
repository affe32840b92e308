/* growth.c: how the time and the memory of a translator's training step grow: with the batch, and with the lengths of
 * sources and of targets, each alone. */
#include <string.h>

#include "api/bench/bench.h"
#include "base/error.h"

enum { LENGTH = 16 };

typedef struct series {
    const char *name;
    int64_t size[5];
} series;

static const series all[] = {
    {"batch", {16, 32, 64, 128, 256}}, {"source", {8, 16, 32, 64, 128}}, {"target", {8, 16, 32, 64, 128}}};

static cpl_status measure(cpl_bench *b, const series *s, int64_t size, cpl_error *err)
{
    int64_t fixed[2] = {strcmp(s->name, "source") == 0 ? size : LENGTH, strcmp(s->name, "target") == 0 ? size : LENGTH};
    int batches = strcmp(s->name, "batch") == 0;
    cpl_bench_work *w = NULL;
    cpl_bench_row *row = cpl_bench_add(b, "growth", err);
    if (!row)
        return CPL_FAILED;
    strcpy(row->name, s->name);
    row->size = size;
    cpl_status status = cpl_bench_work_new(&w, b, "translator", batches ? size : 0, batches ? NULL : fixed, err);
    if (status == CPL_OK)
        status = cpl_bench_train(b, w, row, err);
    cpl_bench_work_free(w);
    return status;
}

cpl_status cpl_bench_growth(cpl_bench *b, cpl_error *err)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cpl_bench_tell(b, "growth with the %s …", all[i].name);
        for (size_t k = 0; k < sizeof all[i].size / sizeof *all[i].size; k++)
            CPL_TRY(measure(b, &all[i], all[i].size[k], err), err, "cannot measure the growth with the %s, at %lld",
                    all[i].name, (long long)all[i].size[k]);
    }
    return CPL_OK;
}
