/* graph.c: making graphs: values, calls, names, inputs, outputs, parameters, and the sticky first error. */
#include "graph/graph.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

cpl_graph *cpl_graph_new(cpl_parameters *parameters)
{
    cpl_graph *g = cpl_alloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->arena = cpl_arena_new(1 << 14);
    if (!g->arena) {
        cpl_release(g);
        return NULL;
    }
    g->parameters = parameters;
    g->loss = g->seed = -1;
    g->poison = (cpl_node){.graph = g, .value = -1};
    return g;
}

static int copy_array(void *to, const void *from, size_t count, size_t size)
{
    void *copy = cpl_alloc(count ? count : 1, size);
    if (!copy)
        return -1;
    if (count)
        memcpy(copy, from, count * size);
    *(void **)to = copy;
    return 0;
}

/* Strings and attributes stay in the original's arena, which therefore must outlive the copy. */
cpl_graph *cpl_graph_copy(const cpl_graph *g)
{
    cpl_graph *c = cpl_graph_new(g->parameters);
    if (!c)
        return NULL;
    cpl_arena *arena = c->arena;
    *c = *g;
    c->arena = arena;
    c->path = c->warnings = (cpl_str){0};
    c->layers = NULL, c->layer_records = NULL, c->layer_count = c->layer_capacity = 0;
    c->values = NULL, c->calls = NULL, c->inputs = NULL, c->outputs = NULL;
    c->poison.graph = c;
    c->value_capacity = g->value_count, c->call_capacity = g->call_count;
    c->input_capacity = g->input_count, c->output_capacity = g->output_count;
    if (copy_array(&c->values, g->values, g->value_count, sizeof *g->values) ||
        copy_array(&c->calls, g->calls, g->call_count, sizeof *g->calls) ||
        copy_array(&c->inputs, g->inputs, g->input_count, sizeof *g->inputs) ||
        copy_array(&c->outputs, g->outputs, g->output_count, sizeof *g->outputs)) {
        cpl_graph_free(c);
        return NULL;
    }
    return c;
}

void cpl_graph_free(cpl_graph *g)
{
    if (!g)
        return;
    cpl_arena_free(g->arena);
    cpl_release(g->values);
    cpl_release(g->calls);
    cpl_release(g->inputs);
    cpl_release(g->outputs);
    cpl_str_free(&g->path);
    cpl_str_free(&g->warnings);
    cpl_map_free(g->layers);
    cpl_release(g->layer_records);
    cpl_release(g);
}

void cpl_graph_fail(cpl_graph *g, const char *path, const char *format, ...)
{
    if (g->error.status != CPL_OK)
        return;
    char text[CPL_ERROR_WIDTH * 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *hint = strchr(format, '\n') ? strrchr(text, '\n') : NULL; /* the mark counts in the format alone */
    if (hint)
        *hint++ = '\0';
    if (hint)
        cpl_error_set(&g->error, CPL_USAGE, "%s" CPL_HINT "%s", text, hint);
    else
        cpl_error_set(&g->error, CPL_USAGE, "%s", text);
    if (path && path[0])
        cpl_error_context(&g->error, CPL_USAGE, "cannot build '%s'", path);
}

int cpl_graph_failed(const cpl_graph *g)
{
    return g->error.status != CPL_OK;
}

static void out_of_memory(cpl_graph *g)
{
    if (g->error.status == CPL_OK)
        cpl_error_set(&g->error, CPL_FAILED, "out of memory while tracing the model");
}

int cpl_graph_add_value(cpl_graph *g, const cpl_type *type, const char *path)
{
    if (cpl_grow(&g->values, &g->value_capacity, g->value_count + 1, sizeof *g->values)) {
        out_of_memory(g);
        return -1;
    }
    g->values[g->value_count] = (cpl_value){
        .type = *type, .path = path, .producer = -1, .storage = CPL_STORE_BLOCK, .parameter = -1, .input = -1};
    return (int)g->value_count++;
}

cpl_call *cpl_graph_add_call(cpl_graph *g)
{
    if (cpl_grow(&g->calls, &g->call_capacity, g->call_count + 1, sizeof *g->calls)) {
        out_of_memory(g);
        return NULL;
    }
    cpl_call *c = &g->calls[g->call_count++];
    memset(c, 0, sizeof *c);
    for (int i = 0; i < CPL_MAX_INPUTS; i++)
        c->in[i] = c->din[i] = -1;
    for (int i = 0; i < CPL_MAX_OUTPUTS; i++)
        c->out[i] = c->dout[i] = -1;
    c->uid = g->next_uid++;
    return c;
}

cpl_node *cpl_graph_node(cpl_graph *g, int value)
{
    cpl_node *n = value < 0 ? NULL : cpl_arena_alloc(g->arena, sizeof *n);
    if (!n && value >= 0)
        out_of_memory(g);
    if (!n)
        return &g->poison;
    *n = (cpl_node){.graph = g, .value = value};
    return n;
}

const cpl_type *cpl_node_type(const cpl_node *x)
{
    return x->value < 0 ? NULL : &x->graph->values[x->value].type;
}

int64_t cpl_node_last_size(const cpl_node *x)
{
    const cpl_type *type = cpl_node_type(x);
    return type && type->rank ? type->dim[type->rank - 1].size : 0;
}

cpl_node *cpl_node_output(cpl_node *first, int i)
{
    cpl_graph *g = first->graph;
    if (first->value < 0)
        return &g->poison;
    const cpl_call *c = &g->calls[g->values[first->value].producer];
    return i < c->visible ? cpl_graph_node(g, c->out[i]) : &g->poison;
}

/* ---- paths ---- */

const char *cpl_graph_path(cpl_graph *g, const char *name)
{
    const char *here = g->path.length ? g->path.data : "";
    const char *path = cpl_arena_printf(g->arena, "%s%s%s", here, here[0] && name[0] ? "." : "", name);
    if (!path)
        out_of_memory(g);
    return path ? path : "";
}

void cpl_enter(cpl_graph *g, const char *name)
{
    if (!name[0] || strchr(name, '.'))
        cpl_graph_fail(g, cpl_graph_path(g, ""), "a layer cannot be called '%s': a name has a letter and no '.', which "
                       "stands between names", name);
    if (g->path.length)
        cpl_str_add_char(&g->path, '.');
    cpl_str_add(&g->path, name);
    if (g->path.failed)
        out_of_memory(g);
}

void cpl_leave(cpl_graph *g)
{
    char *dot = g->path.length ? strrchr(g->path.data, '.') : NULL;
    if (!g->path.length)
        cpl_graph_fail(g, "", "cpl_leave without a cpl_enter before it");
    g->path.length = dot ? (size_t)(dot - g->path.data) : 0;
    if (g->path.data)
        g->path.data[g->path.length] = 0;
}

/* ---- layers ---- */

typedef struct cpl_layer_record {
    const char *words, *where;
} cpl_layer_record;

void cpl_at(cpl_graph *g, const char *file, int line)
{
    g->place_file = file;
    g->place_line = line;
}

static const char *place(cpl_graph *g)
{
    const char *slash = g->place_file ? strrchr(g->place_file, '/') : NULL;
    if (!g->place_file)
        return "an unknown place";
    return cpl_arena_printf(g->arena, "%s:%d", slash ? slash + 1 : g->place_file, g->place_line);
}

void cpl_graph_layer(cpl_graph *g, const char *format, ...)
{
    if (cpl_graph_failed(g))
        return;
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *path = cpl_graph_path(g, "");
    if (!g->layers)
        g->layers = cpl_map_new();
    int is_new = 0;
    int64_t *slot = g->layers ? cpl_map_insert(g->layers, path, strlen(path), &is_new) : NULL;
    if (!slot || cpl_grow(&g->layer_records, &g->layer_capacity, g->layer_count + 1, sizeof *g->layer_records)) {
        out_of_memory(g);
        return;
    }
    if (is_new) {
        *slot = (int64_t)g->layer_count;
        g->layer_records[g->layer_count++] =
            (cpl_layer_record){cpl_arena_strndup(g->arena, text, strlen(text)), place(g)};
        return;
    }
    const cpl_layer_record *have = &g->layer_records[*slot];
    if (have->words && have->where && strcmp(have->words, text) != 0)
        cpl_graph_fail(g, path, "layer '%s' is %s at %s but %s at %s" CPL_HINT
                       "give the second layer another name, or the same options to share the weights", path,
                       have->words, have->where, text, place(g));
}

/* ---- shapes ---- */

int cpl_graph_symbol(cpl_graph *g, const char *word, size_t length, cpl_dim_kind kind, const char *from)
{
    for (int i = 0; i < g->symbol_count; i++)
        if (strlen(g->symbols[i].name) == length && memcmp(g->symbols[i].name, word, length) == 0)
            return i;
    if (g->symbol_count == CPL_MAX_SYMBOLS) {
        cpl_graph_fail(g, from, "more than %d different symbols in one model", CPL_MAX_SYMBOLS);
        return CPL_NO_SYMBOL;
    }
    g->symbols[g->symbol_count] =
        (cpl_symbol){.name = cpl_arena_strndup(g->arena, word, length), .kind = kind, .from = from};
    return g->symbol_count++;
}

/* One word, "batch" or "units=8", into d. */
static int parse_word(cpl_graph *g, const char *word, size_t length, const char *from, cpl_dim *d)
{
    const char *equals = memchr(word, '=', length);
    size_t name = equals ? (size_t)(equals - word) : length;
    *d = (cpl_dim){.kind = cpl_dim_word(word, name), .symbol = CPL_NO_SYMBOL};
    d->name = cpl_arena_strndup(g->arena, word, name);
    if (d->kind != CPL_DIM_FEATURE)
        d->symbol = cpl_graph_symbol(g, word, name, d->kind, from);
    else if (equals)
        d->size = strtoll(equals + 1, NULL, 10);
    return d->name ? 0 : -1;
}

int cpl_graph_parse_shape(cpl_graph *g, const char *shape, int64_t size_last, const char *from, cpl_type *type)
{
    memset(type, 0, sizeof *type);
    type->order = CPL_ORDER_CALLER;
    const char *p = shape;
    while (*p) {
        size_t length = strcspn(p, " ");
        if (length) {
            if (type->rank < CPL_MAX_RANK && parse_word(g, p, length, from, &type->dim[type->rank])) {
                out_of_memory(g);
                return -1;
            }
            if (type->rank == CPL_MAX_RANK) {
                cpl_graph_fail(g, from, "shape '%s' has more than %d dimensions", shape, CPL_MAX_RANK);
                return -1;
            }
            type->rank++;
        }
        p += length;
        while (*p == ' ')
            p++;
    }
    cpl_dim *last = type->rank ? &type->dim[type->rank - 1] : NULL;
    if (last && last->kind == CPL_DIM_FEATURE && last->size == 0)
        last->size = size_last;
    for (int i = 0; i < type->rank; i++)
        if (type->dim[i].kind == CPL_DIM_FEATURE && type->dim[i].size <= 0) {
            cpl_graph_fail(g, from, "dimension '%s' of shape '%s' needs a size, such as '%s=8'", type->dim[i].name,
                           shape, type->dim[i].name);
            return -1;
        }
    int time = cpl_type_find(type, CPL_DIM_TIME);
    type->order = time >= 0 ? type->dim[time].symbol : CPL_ORDER_CALLER;
    return 0;
}

void cpl_expect(cpl_graph *g, cpl_node *x, const char *shape)
{
    if (cpl_graph_failed(g) || x->value < 0)
        return;
    const cpl_value *v = &g->values[x->value];
    const char *p = shape + strspn(shape, " ");
    int k = 0, same = 1;
    while (same && *p) {
        size_t length = strcspn(p, " ");
        const char *equals = memchr(p, '=', length);
        size_t name = equals ? (size_t)(equals - p) : length;
        if (k >= v->type.rank)
            same = 0;
        else
            same = strlen(v->type.dim[k].name) == name && memcmp(v->type.dim[k].name, p, name) == 0 &&
                   (!equals || strtoll(equals + 1, NULL, 10) == v->type.dim[k].size);
        k++;
        p += length;
        while (*p == ' ')
            p++;
    }
    if (same && k == v->type.rank)
        return;
    char type[160];
    cpl_graph_fail(g, g->path.length ? g->path.data : "", "expected [%s] but '%s' is %s", shape, v->path,
                   cpl_type_text(&v->type, type, sizeof type));
}

/* ---- inputs, parameters, outputs ---- */

cpl_node *cpl_input(cpl_graph *g, const char *name, cpl_input_type declared, const char *shape)
{
    if (cpl_graph_failed(g))
        return &g->poison;
    for (size_t i = 0; i < g->input_count; i++)
        if (strcmp(g->inputs[i].name, name) == 0) {
            cpl_graph_fail(g, name, "input '%s' is declared twice", name);
            return &g->poison;
        }
    const char *kept = cpl_arena_strndup(g->arena, name, strlen(name));
    cpl_type type;
    if (!kept)
        out_of_memory(g);
    if (!kept || cpl_graph_parse_shape(g, shape, declared.id ? 0 : declared.size, kept, &type))
        return &g->poison;
    type.element = declared.id ? CPL_ELEMENT_ID : CPL_ELEMENT_REAL;
    if (declared.id) {
        type.vocabulary = cpl_arena_strndup(g->arena, declared.vocabulary ? declared.vocabulary : "",
                                            strlen(declared.vocabulary ? declared.vocabulary : ""));
        type.entries = declared.size;
    }
    int v = cpl_graph_add_value(g, &type, kept);
    if (v < 0 || cpl_grow(&g->inputs, &g->input_capacity, g->input_count + 1, sizeof *g->inputs)) {
        out_of_memory(g);
        return &g->poison;
    }
    g->values[v].input = (int)g->input_count;
    g->inputs[g->input_count++] = (cpl_graph_input){.name = kept, .value = v, .declared = declared};
    return cpl_graph_node(g, v);
}

cpl_node *cpl_parameter_at(cpl_graph *g, const char *name, cpl_initializer init, const char *file, int line,
                           const char *shape_format, ...)
{
    if (cpl_graph_failed(g))
        return &g->poison;
    char shape[200];
    va_list arguments;
    va_start(arguments, shape_format);
    vsnprintf(shape, sizeof shape, shape_format, arguments);
    va_end(arguments);
    const char *path = cpl_graph_path(g, name);
    cpl_type type;
    if (cpl_graph_parse_shape(g, shape, 0, path, &type))
        return &g->poison;
    if (type.rank > CPL_PARAMETER_RANK || cpl_type_find(&type, CPL_DIM_BATCH) >= 0) {
        cpl_graph_fail(g, path, "a parameter has up to %d fixed dimensions, got '%s'", CPL_PARAMETER_RANK, shape);
        return &g->poison;
    }
    const char *slash = strrchr(file, '/');
    cpl_parameter_info info = {.path = path, .rank = type.rank, .initializer = init};
    info.where = cpl_arena_printf(g->arena, "%s:%d", slash ? slash + 1 : file, line);
    for (int i = 0; i < type.rank; i++)
        info.size[i] = type.dim[i].size, info.dim[i] = type.dim[i].name;
    if (!info.where)
        out_of_memory(g);
    int p = info.where ? cpl_parameters_add(g->parameters, &info, &g->error) : -1;
    int v = p < 0 ? -1 : cpl_graph_add_value(g, &type, path);
    if (v < 0)
        return &g->poison;
    g->values[v].storage = CPL_STORE_PARAMETER;
    g->values[v].parameter = p;
    return cpl_graph_node(g, v);
}

static void add_output(cpl_graph *g, const char *name, cpl_node *x, int gradient)
{
    if (cpl_graph_failed(g) || x->value < 0)
        return;
    for (size_t i = 0; i < g->output_count; i++)
        if (strcmp(g->outputs[i].name, name) == 0) {
            cpl_graph_fail(g, name, "output '%s' is declared twice", name);
            return;
        }
    int nested = cpl_type_nested(g, cpl_node_type(x));
    if (nested >= 0) {
        cpl_graph_fail(g, name, "output '%s' would have the steps of '%s', a loop in the steps of another" CPL_HINT
                       "read what the outer loop emits", name, g->symbols[nested].name);
        return;
    }
    const char *kept = cpl_arena_strndup(g->arena, name, strlen(name));
    if (!kept || cpl_grow(&g->outputs, &g->output_capacity, g->output_count + 1, sizeof *g->outputs)) {
        out_of_memory(g);
        return;
    }
    g->outputs[g->output_count++] = (cpl_graph_output){.name = kept, .value = x->value, .gradient = gradient};
}

void cpl_output(cpl_graph *g, const char *name, cpl_node *x)
{
    add_output(g, name, x, 0);
}

void cpl_watch(cpl_graph *g, const char *name, cpl_node *x)
{
    add_output(g, name, x, 1);
}

void cpl_minimize(cpl_graph *g, cpl_node *loss)
{
    if (cpl_graph_failed(g) || loss->value < 0)
        return;
    const cpl_value *v = &g->values[loss->value];
    char type[160];
    if (v->type.rank != 0)
        cpl_graph_fail(g, v->path, "a loss must be one number, got %s from '%s'" CPL_HINT
                       "use cpl_masked_cross_entropy, or cpl_sum over all elements",
                       cpl_type_text(&v->type, type, sizeof type), v->path);
    g->loss = loss->value;
}
