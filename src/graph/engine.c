/* engine.c: what the programs of one model share. */
#include "base/error.h"
#include "graph/program.h"

static cpl_status fill(cpl_engine *e, int threads, cpl_error *err)
{
    CPL_TRY(cpl_kernels_pick(&e->kernels, err), err, "cannot choose the kernels");
    CPL_TRY(cpl_pool_new(&e->pool, threads, err), err, "cannot start the threads");
    e->threads = cpl_pool_threads(e->pool);
    e->parameters = cpl_parameters_new();
    e->scratch = cpl_alloc((size_t)e->threads, sizeof *e->scratch);
    int ok = e->parameters && e->scratch;
    for (int i = 0; ok && i < e->threads && e->kernels->gemm_scratch; i++)
        ok = (e->scratch[i] = cpl_alloc_aligned(e->kernels->gemm_scratch, 64)) != NULL;
    if (!ok)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the scratch of %d threads", e->threads);
    return CPL_OK;
}

cpl_status cpl_engine_new(cpl_engine **out, int threads, uint64_t seed, cpl_error *err)
{
    cpl_engine *e = cpl_alloc(1, sizeof *e);
    if (!e)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    e->references = 1;
    e->seed = seed;
    cpl_status status = fill(e, threads, err);
    if (status != CPL_OK) {
        cpl_engine_release(e);
        return status;
    }
    *out = e;
    return CPL_OK;
}

cpl_engine *cpl_engine_hold(cpl_engine *e)
{
    e->references++;
    return e;
}

void cpl_engine_release(cpl_engine *e)
{
    if (!e || --e->references > 0)
        return;
    for (int i = 0; e->scratch && i < e->threads; i++)
        cpl_release(e->scratch[i]);
    cpl_release(e->scratch);
    cpl_pool_free(e->pool);
    cpl_parameters_free(e->parameters);
    cpl_release(e);
}
