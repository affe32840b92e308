/* greedy.c: cpl_greedy: the loop over a step program of the user's own, until every sentence has ended. */
#include "base/error.h"
#include "base/memory.h"
#include "couplet.h"

typedef struct greedy {
    cpl_program *step;
    const cpl_greedy_options *options;
    int64_t batch;
    int32_t *now; /* [batch] the tokens that the coming step reads, then those that it gave */
    int32_t *tokens;
    int64_t *lengths;
    int64_t ended;
} greedy;

static cpl_status run_step(greedy *x, int64_t number, cpl_error *err)
{
    const cpl_greedy_options *o = x->options;
    cpl_array token = {.type = CPL_INT32, .rank = 1, .shape = {x->batch}, .data = x->now};
    int64_t shape[6];
    int rank;
    cpl_status status = cpl_feed(x->step, o->input, &token, err);
    if (status == CPL_OK && o->feed)
        status = o->feed(x->step, number, o->user, err);
    if (status == CPL_OK)
        status = cpl_run(x->step, CPL_EVALUATE, err);
    return status == CPL_OK ? cpl_read_ids(x->step, o->output, x->now, (size_t)x->batch, shape, &rank, err) : status;
}

/* Sentences that have ended stay ended, whatever the program says about them. */
static void keep(greedy *x, int64_t number)
{
    int64_t width = x->options->max_steps;
    int32_t end = x->options->end;
    for (int64_t i = 0; i < x->batch; i++) {
        int goes_on = x->lengths[i] == number;
        if (goes_on && x->now[i] != end)
            x->tokens[i * width + x->lengths[i]++] = x->now[i];
        else
            x->now[i] = end;
        x->ended += goes_on && x->now[i] == end;
    }
}

static cpl_status run_steps(greedy *x, int64_t *steps, cpl_error *err)
{
    const cpl_greedy_options *o = x->options;
    for (int64_t i = 0; i < x->batch; i++)
        x->now[i] = o->start, x->lengths[i] = 0;
    for (int64_t i = 0; i < x->batch * o->max_steps; i++)
        x->tokens[i] = o->end;
    int64_t number = 0;
    for (; number < o->max_steps && x->ended < x->batch; number++) {
        CPL_TRY(run_step(x, number, err), err, "cannot decode at step %lld", (long long)number);
        keep(x, number);
    }
    if (steps)
        *steps = number;
    return CPL_OK;
}

cpl_status cpl_greedy(cpl_program *step, int64_t batch, const cpl_greedy_options *options, int32_t *tokens,
                      int64_t *lengths, int64_t *steps, cpl_error *err)
{
    greedy x = {.step = step, .options = options, .batch = batch, .tokens = tokens, .lengths = lengths};
    if (batch < 0 || options->max_steps < 0)
        CPL_FAIL(err, CPL_USAGE, "cannot decode %lld sentences in %lld steps", (long long)batch,
                 (long long)options->max_steps);
    CPL_TRY(cpl_carry_reset(step, NULL, 0, err), err, "cannot decode");
    x.now = cpl_alloc((size_t)batch + 1, sizeof *x.now);
    if (!x.now)
        CPL_FAIL(err, CPL_FAILED, "out of memory for %lld sentences", (long long)batch);
    cpl_status status = run_steps(&x, steps, err);
    cpl_release(x.now);
    return status;
}
