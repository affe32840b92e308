/* model_test.h: a model of any configuration with random weights, its four graphs over one set of parameters, and
 * three sentences to run them on. */
#ifndef CPL_TESTS_MODEL_TEST_H
#define CPL_TESTS_MODEL_TEST_H

#include "support/run.h"

#include <math.h>
#include <string.h>
#include "decode/decode.h"
#include "graph/program.h"
#include "model/model.h"
#include "support/golden.h"
#include "text/text.h"

enum { COUNT = 3, LONGEST = 6, SOURCE_WORDS = 13, TARGET_WORDS = 11, STATE_UNITS = 6 };

static const int32_t source_ids[COUNT][LONGEST] = {{2, 7, 3}, {2, 5, 12, 9, 4, 3}, {2, 3}};
static const int64_t source_length[COUNT] = {3, 6, 2};
static const int32_t target_ids[COUNT][LONGEST] = {{2, 4, 9, 10}, {2, 5}, {2, 6, 7, 8, 4}};
static const int64_t target_length[COUNT] = {4, 2, 5};

typedef struct model_case {
    cpl_config *config;
    cpl_model_sizes sizes;
    const cpl_model_kind *kind;
    cpl_engine *engine;
} model_case;

/* The configuration alone; sets ends with a NULL. */
static inline cpl_config *configured(const char *const *sets)
{
    cpl_config *c;
    MUST(cpl_config_default(&c, err));
    MUST(cpl_config_set_pair(c, "model.units=6", err));
    for (; *sets; sets++)
        MUST(cpl_config_set_pair(c, *sets, err));
    return c;
}

/* Takes the configuration over. */
static inline model_case model_case_of(cpl_config *config)
{
    model_case m = {.config = config, .kind = cpl_model_kind_of(config)};
    m.sizes = (cpl_model_sizes){.config = config, .source_vocabulary = SOURCE_WORDS, .target_vocabulary = TARGET_WORDS};
    MUST(cpl_engine_new(&m.engine, 1, 7, err));
    return m;
}

static inline void model_case_close(model_case *m)
{
    cpl_engine_release(m->engine);
    cpl_config_free(m->config);
}

static inline cpl_program *compile_case(const model_case *m, cpl_model_function f, int inference)
{
    cpl_program shared = {.engine = m->engine}, *p;
    cpl_compile_options o = {.name = m->kind->name, .share = &shared, .inference = inference};
    MUST(cpl_compile(&p, f, &m->sizes, &o, err));
    return p;
}

/* Embeddings large enough that every gate works; no weight is left at zero, biases neither. */
static inline void enliven(const model_case *m)
{
    for (size_t i = 0; i < cpl_parameters_count(m->engine->parameters); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(m->engine->parameters, i);
        real *x = cpl_parameters_value(m->engine->parameters, i);
        for (int64_t k = 0; k < info->elements; k++)
            x[k] = strstr(info->path, "embedding") ? x[k] * 30 : x[k] + (real)(0.1 * sin((double)(k + 3 * (int64_t)i)));
    }
}

static inline void feed_rows(cpl_program *p, const char *input, const int32_t ids[COUNT][LONGEST],
                             const int64_t *length)
{
    const int32_t *rows[COUNT];
    for (int i = 0; i < COUNT; i++)
        rows[i] = ids[i];
    MUST(cpl_feed_ids(p, input, rows, length, COUNT, err));
}

static inline void feed_whole(cpl_program *p)
{
    feed_rows(p, "source", source_ids, source_length);
    feed_rows(p, "target_in", target_ids, target_length);
    feed_rows(p, "target_out", target_ids, target_length);
}

/* ---- steps ---- */

typedef struct stepper {
    cpl_model_description description;
    cpl_program *encode, *step; /* encode: NULL when nothing comes from it */
    float state[2][CPL_MODEL_PARTS][COUNT * 3 * STATE_UNITS]; /* a fed vector may be three times as wide */
    int now;
} stepper;

static inline void stepper_begin(stepper *s, const model_case *m)
{
    memset(s, 0, sizeof *s);
    m->kind->describe(&m->sizes, &s->description);
    s->step = compile_case(m, m->kind->step, 1);
    if (!s->description.memories && !s->description.starts)
        return;
    s->encode = compile_case(m, m->kind->encode, 1);
    feed_rows(s->encode, "source", source_ids, source_length);
    MUST(cpl_run(s->encode, CPL_EVALUATE, err));
    for (int i = 0; s->description.starts && i < s->description.states; i++) {
        const char *name = s->description.state[i].name;
        cpl_tensor t;
        if (cpl_program_output(s->encode, name, &t)) /* what it leaves out is zero */
            MUST(cpl_read(s->encode, name, s->state[0][i], COUNT * 3 * STATE_UNITS, NULL, NULL, err));
    }
}

/* Token k of the targets that have one. */
static inline void stepper_step(stepper *s, int k)
{
    const cpl_model_description *d = &s->description;
    const int32_t *rows[COUNT];
    int64_t alive[COUNT];
    for (int i = 0; i < COUNT; i++)
        rows[i] = &target_ids[i][k], alive[i] = k < target_length[i];
    MUST(cpl_feed_ids(s->step, "token", rows, alive, COUNT, err));
    if (d->memories)
        MUST(cpl_program_share_time(s->step, "s", s->encode, err));
    for (int i = 0; i < d->memories; i++) {
        cpl_tensor t;
        assert_non_null(cpl_program_output(s->encode, d->memory[i].name, &t));
        assert_int_equal(t.width, d->memory[i].width);
        MUST(cpl_program_bind(s->step, d->memory[i].name, t.data, err));
    }
    for (int i = 0; i < d->states; i++)
        MUST(cpl_program_bind(s->step, d->state[i].name, s->state[s->now][i], err));
    MUST(cpl_run(s->step, CPL_EVALUATE, err));
    for (int i = 0; i < d->states; i++)
        MUST(cpl_read(s->step, d->state[i].name, s->state[!s->now][i], COUNT * 3 * STATE_UNITS, NULL, NULL, err));
    s->now = !s->now;
}

static inline void stepper_end(stepper *s)
{
    cpl_program_free(s->encode);
    cpl_program_free(s->step);
}

#endif
