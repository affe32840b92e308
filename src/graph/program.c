/* program.c: memory plans for a compiled program, and running it. */
#include "graph/program.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/hash.h"
#include "graph/attributes.h"
#include "graph/profile.h"

/* ---- plans ---- */

static cpl_status loop_memory(cpl_program *p, const cpl_binding *capacity, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    int64_t batch = capacity->batch;
    for (int i = 0; i < g->symbol_count; i++)
        if (g->symbols[i].nested)
            CPL_TRY(cpl_geometry_reserve(&p->loop.nest, batch, capacity->longest[g->symbols[i].inner], 0, err), err,
                    "cannot make room for a loop in a loop");
    if (g->loop_count == 0 || (p->loop.length && batch <= p->loop.length_capacity))
        return CPL_OK;
    int32_t *length = cpl_resize(p->loop.length, (size_t)batch + 1, sizeof *length);
    if (!length)
        CPL_FAIL(err, CPL_FAILED, "out of memory for a loop over %lld sentences", (long long)batch);
    p->loop.length = length;
    p->loop.length_capacity = batch;
    return CPL_OK;
}

static cpl_status make_block(cpl_program *p, size_t bytes, cpl_error *err)
{
    if (bytes <= p->block_bytes && p->block)
        return CPL_OK;
    cpl_release(p->block);
    p->block = cpl_alloc_aligned(bytes + 64, 64);
    p->block_bytes = p->block ? bytes : 0;
    if (!p->block) {
        char text[32];
        CPL_FAIL(err, CPL_FAILED, "out of memory: a run needs %s for its activations" CPL_HINT
                 "a smaller batch or shorter sentences need less", cpl_bytes_text(text, sizeof text, bytes));
    }
    memset(p->block, 0, bytes); /* touched now, so that it cannot fail later */
    return CPL_OK;
}

static cpl_status add_plan(cpl_program *p, cpl_mode mode, const cpl_binding *capacity, const char *reason,
                           const cpl_memory_plan **made, cpl_error *err)
{
    cpl_schedule *s = &p->schedule[mode];
    if (cpl_grow(&s->plans, &s->plan_capacity, s->plan_count + 1, sizeof *s->plans))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a plan");
    cpl_memory_plan *plan = &s->plans[s->plan_count];
    CPL_TRY(cpl_plan_make(plan, s->graph, capacity, p->engine->threads, err), err, "cannot plan '%s'", p->name);
    s->plan_count++;
    p->plans++;
    if (p->plan_made)
        p->plan_made(p->plan_user, reason, capacity, plan->bytes);
    *made = plan;
    return make_block(p, plan->bytes, err);
}

static cpl_status choose_plan(cpl_program *p, cpl_mode mode, const cpl_memory_plan **chosen, cpl_error *err)
{
    cpl_schedule *s = &p->schedule[mode];
    const cpl_memory_plan *best = NULL;
    for (size_t i = 0; i < s->plan_count; i++)
        if (cpl_binding_fits(&p->binding, &s->plans[i].capacity) && (!best || s->plans[i].bytes < best->bytes))
            best = &s->plans[i];
    *chosen = best;
    if (best)
        return make_block(p, best->bytes, err); /* there, unless memory was short when the plan was made */
    const char *reason = s->plan_count ? "larger than any plan before" : "the first that comes";
    cpl_status status = add_plan(p, mode, &p->binding, reason, chosen, err);
    if (status == CPL_OK && !p->plan_made)
        cpl_program_tell_plan(p, mode, reason, (*chosen)->bytes);
    return status;
}

static int is_now(const cpl_graph *g, int symbol)
{
    return g->symbols[symbol].kind == CPL_DIM_TIME && strcmp(g->symbols[symbol].name, "now") == 0;
}

/* A nested time has a row for each step of the inner time in each step of the outer one. */
static void size_nests(const cpl_program *p, cpl_binding *b)
{
    for (int i = 0; i < p->traced->symbol_count; i++) {
        const cpl_symbol *s = &p->traced->symbols[i];
        if (!s->nested)
            continue;
        b->rows[i] = b->pairs[s->outer][s->inner];
        b->longest[i] = b->longest[s->inner];
    }
}

/* Products of lengths that the caller left out get a bound that always holds. */
static cpl_binding complete(const cpl_program *p, const cpl_binding *capacity)
{
    cpl_binding b = *capacity;
    for (int i = 0; i < p->traced->symbol_count; i++)
        if (is_now(p->traced, i))
            b.rows[i] = b.batch, b.longest[i] = 1;
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++)
        for (int j = 0; j < CPL_MAX_SYMBOLS; j++)
            if (b.pairs[i][j] == 0) {
                int64_t one = b.rows[i] * b.longest[j], other = b.longest[i] * b.rows[j];
                b.pairs[i][j] = one < other ? one : other;
            }
    size_nests(p, &b);
    return b;
}

cpl_status cpl_program_reserve(cpl_program *p, cpl_mode mode, const cpl_binding *capacity, cpl_error *err)
{
    const cpl_memory_plan *plan;
    cpl_binding whole = complete(p, capacity);
    CPL_TRY(loop_memory(p, capacity, err), err, "cannot plan '%s'", p->name);
    return add_plan(p, mode, &whole, "capacity of the data", &plan, err);
}

cpl_status cpl_program_block_bytes(const cpl_program *p, cpl_mode mode, const cpl_binding *capacity, size_t *bytes,
                                   cpl_error *err)
{
    cpl_memory_plan plan;
    cpl_binding whole = complete(p, capacity);
    CPL_TRY(cpl_plan_make(&plan, p->schedule[mode].graph, &whole, p->engine->threads, err), err, "cannot plan '%s'",
            p->name);
    *bytes = plan.bytes;
    cpl_plan_free(&plan);
    return CPL_OK;
}

/* ---- running ---- */

/* Elements of a tensor before the step of the running loop. */
static size_t loop_shift(const cpl_program *p, const cpl_type *type)
{
    int at = cpl_type_find(type, CPL_DIM_TIME);
    const cpl_symbol *time = at < 0 ? NULL : &p->traced->symbols[type->dim[at].symbol];
    if (time && time->nested && time->outer == p->loop.symbol) {
        int inside = p->loop.nest_active && p->loop.nest_symbol == type->dim[at].symbol;
        return (size_t)((p->loop.pairs[time->inner] + (inside ? p->loop.nest_row : 0)) * cpl_type_width(type));
    }
    if (at < 0 || type->dim[at].symbol != p->loop.symbol)
        return 0;
    if (cpl_type_times(type) == 1)
        return (size_t)(p->loop.row * cpl_type_width(type));
    return (size_t)p->loop.pairs[type->dim[at + 1].symbol];
}

static void set_tensor(const cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, int value, int present,
                       cpl_tensor *t)
{
    memset(t, 0, sizeof *t);
    if (value < 0)
        return;
    const cpl_value *v = &g->values[value];
    t->type = &v->type;
    t->rows = cpl_type_rows(&v->type, &p->binding);
    t->width = cpl_type_width(&v->type);
    if (!present)
        return;
    if (v->storage == CPL_STORE_PARAMETER)
        t->packed = cpl_parameters_at(p->engine->parameters, (size_t)v->parameter)->packed;
    if (t->packed)
        return;
    size_t element = v->type.element == CPL_ELEMENT_ID ? sizeof(int32_t) : sizeof(real);
    size_t shift = p->loop.active ? loop_shift(p, &v->type) * element : 0;
    if (v->input >= 0)
        t->data = p->inputs[v->input].data;
    else if (v->storage == CPL_STORE_PARAMETER)
        t->data = cpl_parameters_value(p->engine->parameters, (size_t)v->parameter);
    else if (v->storage == CPL_STORE_GRADIENT)
        t->data = p->gradients + cpl_parameters_at(p->engine->parameters, (size_t)v->parameter)->slot;
    else
        t->data = (real *)(void *)(p->block + plan->offset[value]);
    t->data = (real *)(void *)((char *)t->data + shift);
}

void cpl_program_run_call(cpl_program *p, const cpl_graph *g, const cpl_memory_plan *plan, size_t index)
{
    const cpl_call *c = &g->calls[index];
    cpl_run_context *r = &p->context;
    if (p->profile)
        cpl_profile_call_begin(p->profile, index);
    r->attributes = c->attributes;
    r->path = c->path;
    uint8_t *stage = p->block + plan->workspace[index];
    size_t stage_bytes = cpl_call_stage_bytes(g, c);
    r->workspace = c->op->workspace ? stage + stage_bytes : NULL;
    r->random_key = cpl_random_key(p->engine->seed, p->step, c->uid);
    for (int k = 0; k < CPL_MAX_INPUTS; k++) {
        set_tensor(p, g, plan, k < c->inputs ? c->in[k] : -1, cpl_call_reads_input(c, k), &r->in[k]);
        set_tensor(p, g, plan, c->backward && k < c->inputs ? c->din[k] : -1, 1, &r->din[k]);
    }
    for (int k = 0; k < CPL_MAX_OUTPUTS; k++) {
        int present = c->backward ? cpl_call_reads_output(c, k) : cpl_call_writes_output(c, k);
        set_tensor(p, g, plan, k < c->outputs ? c->out[k] : -1, present, &r->out[k]);
        set_tensor(p, g, plan, c->backward ? c->dout[k] : -1, 1, &r->dout[k]);
    }
    r->add = p->part.active ? cpl_call_adds(g, c) : 0;
    if (p->part.active && stage_bytes > 0)
        cpl_program_stage(p, g, c, stage);
    (c->backward ? c->op->backward : c->op->forward)(r);
    if (p->part.active && stage_bytes > 0)
        cpl_program_unstage(p, g, c, stage);
    if (p->profile)
        cpl_profile_call_end(p->profile, index);
}

static cpl_status bind_sizes(cpl_program *p, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    for (int i = 0; i < g->symbol_count; i++) {
        int padded = g->symbols[i].kind == CPL_DIM_PADDED && p->binding.rows[i] == 0;
        for (int k = 0; padded && k < g->symbol_count; k++) /* no rectangle came in: as wide as what was fed */
            if (g->symbols[k].kind == CPL_DIM_TIME && p->geometry[k].width > p->binding.rows[i])
                p->binding.rows[i] = p->geometry[k].width;
        if (g->symbols[i].kind != CPL_DIM_TIME || g->symbols[i].nested)
            continue;
        cpl_geometry *a = &p->geometry[i];
        if (!a->bound && is_now(g, i))
            CPL_TRY(cpl_geometry_set_single(a, p->binding.batch, err), err, "cannot run '%s'", p->name);
        if (!a->bound)
            CPL_FAIL(err, CPL_USAGE, "the lengths of '%s' are not known" CPL_HINT
                     "feed an input over '%s' with its lengths, or use cpl_feed_mask", g->symbols[i].name,
                     g->symbols[i].name);
        if (a->batch != p->binding.batch)
            CPL_FAIL(err, CPL_USAGE, "'%s' has lengths of %lld sentences but the batch has %lld", g->symbols[i].name,
                     (long long)a->batch, (long long)p->binding.batch);
        p->binding.rows[i] = a->rows;
        p->binding.longest[i] = a->longest;
    }
    for (int i = 0; i < g->symbol_count; i++)
        for (int j = 0; j < g->symbol_count; j++)
            if (g->symbols[i].kind == CPL_DIM_TIME && g->symbols[j].kind == CPL_DIM_TIME && !g->symbols[i].nested &&
                !g->symbols[j].nested)
                p->binding.pairs[i][j] = cpl_geometry_pairs(&p->geometry[i], &p->geometry[j]);
    size_nests(p, &p->binding);
    return loop_memory(p, &p->binding, err);
}

/* pack and unpack put a time's rows at places of a rectangle: it must be as wide as what gave the lengths. A stack of
 * steps must have as many as the longest sentence. */
static cpl_status check_widths(const cpl_program *p, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    for (size_t i = 0; i < g->call_count; i++) {
        const cpl_call *c = &g->calls[i];
        const cpl_type *in = c->in[0] >= 0 ? &g->values[c->in[0]].type : NULL, *out = &g->values[c->out[0]].type;
        if (strcmp(c->op->name, "put") == 0) {
            const cpl_put_attributes *a = c->attributes;
            if (p->geometry[a->symbol].longest > a->steps)
                CPL_FAIL(err, CPL_USAGE, "stack: a sentence has %lld steps of '%s' but %d were stacked" CPL_HINT
                         "unroll as many steps as the longest sentence has, or use cpl_scan",
                         (long long)p->geometry[a->symbol].longest, g->symbols[a->symbol].name, (int)a->steps);
        }
        int unpack = strcmp(c->op->name, "unpack") == 0;
        if (!unpack && strcmp(c->op->name, "pack") != 0)
            continue;
        const cpl_type *packed = unpack ? in : out, *padded = unpack ? out : in;
        int time = packed->dim[cpl_type_find(packed, CPL_DIM_TIME)].symbol;
        int rectangle = padded->dim[cpl_type_find(padded, CPL_DIM_PADDED)].symbol;
        if (p->binding.rows[rectangle] < p->geometry[time].width)
            CPL_FAIL(err, CPL_USAGE, "%s: the rectangle '%s' is %lld wide but '%s' was given %lld positions",
                     c->op->name, g->values[c->in[0]].path, (long long)p->binding.rows[rectangle],
                     g->symbols[time].name, (long long)p->geometry[time].width);
    }
    return CPL_OK;
}

static cpl_status check_fed(const cpl_program *p, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    for (size_t i = 0; i < g->input_count; i++) {
        if (p->inputs[i].fed)
            continue;
        cpl_str list = {0};
        for (size_t k = 0; k < g->input_count; k++) {
            cpl_str_printf(&list, "%s%s ", k ? ", " : "", g->inputs[k].name);
            cpl_type_print(&g->values[g->inputs[k].value].type, &list);
        }
        cpl_error_set(err, CPL_USAGE, "input '%s' was not fed; '%s' needs %s", g->inputs[i].name, p->name,
                      list.failed ? "more" : list.data);
        cpl_str_free(&list);
        return CPL_USAGE;
    }
    return CPL_OK;
}

cpl_status cpl_run(cpl_program *p, cpl_mode mode, cpl_error *err)
{
    if (mode == CPL_TRAIN)
        CPL_TRY(cpl_program_follow_layout(p, err), err, "cannot run '%s'", p->name);
    const cpl_graph *g = p->schedule[mode].graph;
    if (!g)
        CPL_FAIL(err, CPL_USAGE, "'%s' cannot be trained: it has no loss, or was compiled for inference", p->name);
    if (p->profile)
        cpl_profile_run_begin(p->profile, mode);
    CPL_TRY(cpl_program_carry_in(p, err), err, "cannot run '%s'", p->name);
    CPL_TRY(check_fed(p, err), err, "cannot run '%s'", p->name);
    CPL_TRY(bind_sizes(p, err), err, "cannot run '%s'", p->name);
    if (p->has_borders)
        CPL_TRY(check_widths(p, err), err, "cannot run '%s'", p->name);
    if (mode == CPL_TRAIN && !p->looked++)
        cpl_program_warn_leak(p);
    const cpl_memory_plan *plan;
    CPL_TRY(choose_plan(p, mode, &plan, err), err, "cannot run '%s'", p->name);
    p->last_plan = *plan;
    cpl_run_context *r = &p->context;
    r->kernels = mode == CPL_TRAIN ? &p->training : p->engine->kernels;
    r->pool = p->engine->pool;
    r->scratch = p->engine->scratch;
    r->geometry = p->geometry;
    r->binding = &p->binding;
    r->log = &p->log;
    r->training = mode == CPL_TRAIN;
    r->first_sentence = p->part.first_sentence;
    r->block_rows = g->block_rows;
    r->add_first = p->part.first;
    r->add_weight = (real)p->part.weight;
    if (g->seed >= 0)
        *(real *)(void *)(p->block + plan->offset[g->seed]) = 1;
    for (size_t i = 0; i < g->call_count; i++) {
        if (g->calls[i].loop) {
            size_t last = cpl_graph_loop_end(g, i);
            cpl_program_run_loop(p, g, plan, i, last);
            i = last;
        } else if (!g->calls[i].dead)
            cpl_program_run_call(p, g, plan, i);
    }
    p->ran = 1;
    p->last_mode = mode;
    p->step += mode == CPL_TRAIN;
    cpl_status status = cpl_program_carry_out(p, err);
    if (p->profile)
        cpl_profile_run_end(p->profile);
    return status;
}

int cpl_program_place(const cpl_program *p, const char *word)
{
    int symbol = cpl_program_symbol(p, word);
    return symbol >= 0 ? symbol : CPL_MAX_SYMBOLS - (word[0] == 's' ? 1 : 2);
}

/* The gradient of a product is two products, one for its first input and one for the weights: what is frozen has none,
 * and of a loop's call the second may be a call of its own after it. Gradients that are ready were counted where they
 * were made. */
static int products_of(const cpl_call *c)
{
    int others = 0;
    if (!c->backward)
        return 1;
    for (int k = 1; k < c->inputs; k++)
        others |= c->din[k] >= 0;
    return c->op->flags & CPL_OP_READY ? 0 : others + (c->din[0] >= 0);
}

double cpl_call_flops(const cpl_graph *g, const cpl_call *c, const cpl_binding *b, int threads)
{
    int products = c->op->flops ? products_of(c) : 0;
    if (products == 0)
        return 0;
    cpl_size_context s;
    cpl_call_sizes(g, c, b, threads, &s);
    return c->op->flops(&s) * products;
}

double cpl_program_flops(const cpl_program *p, cpl_mode mode, const cpl_binding *b)
{
    const cpl_graph *g = p->schedule[mode].graph;
    double flops = 0;
    for (size_t i = 0; g && i < g->call_count; i++)
        if (!g->calls[i].dead)
            flops += cpl_call_flops(g, &g->calls[i], b, p->engine->threads);
    return flops;
}
