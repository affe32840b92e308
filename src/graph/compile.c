/* compile.c: trace once, check, optimise, differentiate; and again, without tracing, when what trains has changed. */
#include "graph/program.h"

#include <string.h>
#include "base/error.h"

/* ---- compiling ---- */

static cpl_status make_schedule(cpl_program *p, cpl_mode mode, int passes, cpl_error *err)
{
    cpl_graph *g = cpl_graph_copy(p->traced);
    if (!g)
        CPL_FAIL(err, CPL_FAILED, "out of memory while compiling");
    p->schedule[mode].graph = g;
    if (mode == CPL_TRAIN) {
        /* Whole logits have no place in training: the loss works in blocks. Reading them is for CPL_EVALUATE. */
        size_t kept = 0;
        for (size_t i = 0; i < g->output_count; i++) {
            int v = g->outputs[i].value, used_by_loss = 0;
            for (size_t c = 0; c < g->call_count; c++)
                used_by_loss |= strcmp(g->calls[c].op->name, "cross_entropy") == 0 && g->calls[c].in[0] == v;
            if (!used_by_loss || g->outputs[i].gradient || !(passes & CPL_PASS_FUSE_LOSS))
                g->outputs[kept++] = g->outputs[i];
        }
        g->output_count = kept;
    }
    CPL_TRY(cpl_graph_optimize(g, passes, err), err, "cannot compile '%s'", p->name);
    if (mode == CPL_TRAIN) {
        CPL_TRY(cpl_graph_differentiate(g, err), err, "cannot differentiate '%s'", p->name);
        CPL_TRY(cpl_graph_verify(g, "differentiate", err), err, "cannot compile '%s'", p->name);
        cpl_pass_dead(g);
        CPL_TRY(cpl_graph_verify(g, "dead", err), err, "cannot compile '%s'", p->name);
        p->recomputed = 0;
        if (p->recompute != CPL_RECOMPUTE_NONE)
            CPL_TRY(cpl_pass_recompute(g, p->recompute, &p->recompute_for, &p->recomputed, err), err,
                    "cannot compile '%s'", p->name);
        CPL_TRY(cpl_graph_verify(g, "recompute", err), err, "cannot compile '%s'", p->name);
    } else {
        size_t kept = 0;
        for (size_t i = 0; i < g->output_count; i++)
            if (!g->outputs[i].gradient)
                g->outputs[kept++] = g->outputs[i];
        g->output_count = kept;
    }
    return CPL_OK;
}

/* Case A09: one warning, by layer, for what no gradient reaches. */
static void warn_unreached(const cpl_program *p)
{
    const cpl_parameters *store = p->engine->parameters;
    cpl_str text = {0};
    char last[200] = "";
    int64_t elements = 0;
    int layers = 0;
    for (size_t i = 0; i <= cpl_parameters_count(store); i++) {
        const cpl_parameter_info *info = i < cpl_parameters_count(store) ? cpl_parameters_at(store, i) : NULL;
        char layer[200] = "";
        if (info && !info->reached && info->trainable) {
            const char *dot = strrchr(info->path, '.');
            snprintf(layer, sizeof layer, "%.*s", (int)(dot ? dot - info->path : (long)strlen(info->path)), info->path);
        }
        if (strcmp(layer, last) != 0 && last[0])
            cpl_str_printf(&text, "%s'%s' (%lld parameters)", layers++ ? ", " : "", last, (long long)elements);
        if (strcmp(layer, last) != 0)
            elements = 0;
        elements += layer[0] ? info->elements : 0;
        snprintf(last, sizeof last, "%s", layer);
    }
    if (layers)
        cpl_log_warning(&p->log, "no gradient reaches %s: not on a path to the loss; %s will not change", text.data,
                        layers == 1 ? "it" : "they");
    cpl_str_free(&text);
}

static cpl_status trace(cpl_program *p, cpl_model_function model, const void *user, cpl_error *err)
{
    p->traced = cpl_graph_new(p->engine->parameters);
    if (!p->traced)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    p->traces++;
    model(p->traced, user);
    if (cpl_graph_failed(p->traced)) {
        if (err)
            *err = p->traced->error;
        return p->traced->error.status;
    }
    for (int i = 0; i < p->traced->symbol_count; i++)
        p->has_borders |= p->traced->symbols[i].kind == CPL_DIM_PADDED;
    for (size_t i = 0; i < p->traced->call_count; i++)
        p->has_borders |= strcmp(p->traced->calls[i].op->name, "put") == 0;
    for (char *line = p->traced->warnings.data, *end; line && (end = strchr(line, '\n')); line = end + 1)
        cpl_log_warning(&p->log, "%.*s", (int)(end - line), line);
    p->inputs = cpl_alloc(p->traced->input_count + 1, sizeof *p->inputs);
    if (!p->inputs)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    return CPL_OK;
}

/* An input that nothing reads is a mistake: the user thinks that it matters (reference A's unpacked list). */
static cpl_status check_inputs(const cpl_program *p, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    for (size_t i = 0; i < g->input_count; i++)
        if (cpl_graph_uses(g, g->inputs[i].value) == 0)
            CPL_FAIL(err, CPL_USAGE, "input '%s' is declared but never used", g->inputs[i].name);
    return CPL_OK;
}

static cpl_status make_gradients(cpl_program *p, cpl_error *err)
{
    cpl_release(p->gradients);
    p->gradients = cpl_alloc_aligned(cpl_parameters_gradient_bytes(p->engine->parameters) + 64, 64);
    if (!p->gradients)
        CPL_FAIL(err, CPL_FAILED, "out of memory for the gradients");
    return CPL_OK;
}

static void drop_schedule(cpl_schedule *s)
{
    for (size_t i = 0; i < s->plan_count; i++)
        cpl_plan_free(&s->plans[i]);
    cpl_release(s->plans);
    cpl_graph_free(s->graph);
    *s = (cpl_schedule){.graph = NULL};
}

static void read_as(const cpl_graph *g, int value, int how, int projects)
{
    if (value < 0 || g->values[value].storage != CPL_STORE_PARAMETER)
        return;
    cpl_parameter_info *info = cpl_parameters_at(g->parameters, (size_t)g->values[value].parameter);
    info->read_as |= how;
    info->projects |= projects;
}

/* Notes how the schedule reads each parameter, which decides whether it may be packed, and whether an update may pass
 * over rows of it. One call takes rows of a table, all others that know tables multiply by them. */
static void note_readers(const cpl_graph *g)
{
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        int takes_rows = strcmp(c->op->name, "embedding") == 0;
        for (int k = 0; k < c->inputs && !c->dead; k++) {
            int table = (c->op->tables & 1u << k) != 0;
            int how = c->op->weights & 1u << k ? CPL_READ_COLUMNS : table ? CPL_READ_ROWS : CPL_READ_PLAIN;
            read_as(g, c->in[k], how, table && !takes_rows);
        }
    }
    for (size_t i = 0; i < g->output_count; i++)
        read_as(g, g->outputs[i].value, CPL_READ_PLAIN, 0);
}

/* Weights that are packed must be read as before, and do not train. */
static cpl_status check_packed(const cpl_program *p, cpl_error *err)
{
    const cpl_parameters *store = p->engine->parameters;
    for (size_t i = 0; i < cpl_parameters_count(store); i++) {
        const cpl_parameter_info *info = cpl_parameters_at(store, i);
        if (info->packed && p->schedule[CPL_TRAIN].graph)
            CPL_FAIL(err, CPL_USAGE, "the weights are for inference: '%s' is packed for products", info->path);
        if (info->packed && !cpl_parameters_packable(info, info->packed->type))
            CPL_FAIL(err, CPL_FAILED, "'%s' is packed for products, but '%s' reads it as plain numbers", info->path,
                     p->name);
    }
    return CPL_OK;
}

static cpl_status compile(cpl_program *p, cpl_model_function model, const void *user, const cpl_compile_options *o,
                          cpl_error *err)
{
    CPL_TRY(trace(p, model, user, err), err, "cannot build '%s'", p->name);
    CPL_TRY(check_inputs(p, err), err, "cannot build '%s'", p->name);
    p->passes = o->no_passes ? 0 : CPL_PASS_ALL;
    for (int i = 0; i < o->freeze_count; i++)
        CPL_TRY(cpl_parameters_set_trainable(p->engine->parameters, o->freeze[i], 0, err), err, "cannot freeze a part");
    p->layout = cpl_parameters_layout(p->engine->parameters);
    cpl_status status = make_schedule(p, CPL_EVALUATE, p->passes, err);
    if (status == CPL_OK && p->traced->loss >= 0 && !o->inference) {
        status = make_schedule(p, CPL_TRAIN, p->passes, err);
        if (status == CPL_OK)
            warn_unreached(p);
    }
    if (status == CPL_OK) {
        note_readers(p->schedule[CPL_EVALUATE].graph);
        status = check_packed(p, err);
    }
    if (status == CPL_OK)
        cpl_program_tell_graph(p);
    if (status == CPL_OK)
        status = cpl_parameters_allocate(p->engine->parameters, p->engine->seed, err);
    if (status == CPL_OK && p->schedule[CPL_TRAIN].graph)
        status = make_gradients(p, err);
    return status;
}

cpl_status cpl_program_remake(cpl_program *p, cpl_error *err)
{
    cpl_schedule *s = &p->schedule[CPL_TRAIN];
    if (p->profile)
        CPL_FAIL(err, CPL_USAGE, "the training schedule of '%s' cannot change while a profile of it is taken", p->name);
    int staged = s->graph->staged, block_rows = s->graph->block_rows;
    drop_schedule(s);
    cpl_status status = make_schedule(p, CPL_TRAIN, p->passes, err);
    if (s->graph) {
        s->graph->staged = staged;
        s->graph->block_rows = block_rows;
    }
    return status;
}

/* Something was frozen or thawed since the training schedule was made: another one of the same traced graph. */
cpl_status cpl_program_follow_layout(cpl_program *p, cpl_error *err)
{
    cpl_schedule *s = &p->schedule[CPL_TRAIN];
    if (!s->graph || p->layout == cpl_parameters_layout(p->engine->parameters))
        return CPL_OK;
    CPL_TRY(cpl_program_remake(p, err), err, "cannot train '%s' any longer", p->name);
    p->layout = cpl_parameters_layout(p->engine->parameters);
    return make_gradients(p, err);
}

cpl_status cpl_set_trainable(cpl_program *p, const char *pattern, int trainable, cpl_error *err)
{
    CPL_TRY(cpl_parameters_set_trainable(p->engine->parameters, pattern, trainable, err), err,
            trainable ? "cannot thaw a part of '%s'" : "cannot freeze a part of '%s'", p->name);
    return CPL_OK;
}

/* What training runs compute with. */
static void choose_precision(cpl_program *p, int bfloat16)
{
    const cpl_kernels *k = p->engine->kernels;
    p->training = bfloat16 ? cpl_kernels_in_bf16(k) : *k;
    if (bfloat16 && !k->multiplies_bf16)
        cpl_log_warning(&p->log, "precision bfloat16: the kernels of this processor (%s) have no bfloat16 products; "
                        "they are emulated (same results, not faster)", k->name);
}

cpl_status cpl_compile(cpl_program **program, cpl_model_function model, const void *user,
                       const cpl_compile_options *options, cpl_error *err)
{
    static const cpl_compile_options defaults;
    const cpl_compile_options *o = options ? options : &defaults;
    cpl_program *p = cpl_alloc(1, sizeof *p);
    if (!p)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    *program = NULL;
    p->name = o->name ? o->name : "model";
    p->ran = 1;
    p->log = (cpl_log){.sink = (cpl_log_sink)o->message, .user = o->user};
    cpl_status status = CPL_OK;
    if (o->share)
        p->engine = cpl_engine_hold(o->share->engine);
    else
        status = cpl_engine_new(&p->engine, o->threads, o->seed, err);
    if (status == CPL_OK)
        choose_precision(p, o->bfloat16);
    size_t known = status == CPL_OK ? cpl_parameters_count(p->engine->parameters) : 0;
    if (status == CPL_OK)
        status = compile(p, model, user, o, err);
    if (status != CPL_OK) {
        if (p->engine)
            cpl_parameters_truncate(p->engine->parameters, known);
        cpl_program_free(p);
        return status;
    }
    *program = p;
    return CPL_OK;
}

void cpl_program_free(cpl_program *p)
{
    if (!p)
        return;
    if (p->free_optimizer)
        p->free_optimizer(p->optimizer);
    for (int m = 0; m < CPL_MODES; m++)
        drop_schedule(&p->schedule[m]);
    for (size_t i = 0; p->traced && p->inputs && i < p->traced->input_count; i++)
        cpl_release(p->inputs[i].buffer);
    cpl_release(p->inputs);
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++)
        cpl_geometry_free(&p->geometry[i]);
    cpl_release(p->loop.length);
    cpl_geometry_free(&p->loop.nest);
    cpl_program_carry_free(p);
    cpl_graph_free(p->traced);
    cpl_release(p->block);
    cpl_release(p->gradients);
    cpl_engine_release(p->engine);
    cpl_release(p);
}
