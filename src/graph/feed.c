/* feed.c: data into a program's inputs: checked by name, type, shape and id range, packed on the way. */
#include <string.h>
#include "base/error.h"
#include "graph/program.h"

void cpl_program_begin(cpl_program *p)
{
    if (!p->ran)
        return;
    p->ran = 0;
    memset(&p->binding, 0, sizeof p->binding);
    p->binding.batch = -1;
    p->batch_from = NULL;
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++) {
        p->geometry[i].bound = 0;
        p->geometry_from[i] = NULL;
    }
    for (size_t i = 0; i < p->traced->input_count; i++)
        p->inputs[i].fed = 0;
}

cpl_status cpl_program_batch(cpl_program *p, const char *input, int64_t batch, cpl_error *err)
{
    if (p->binding.batch < 0) {
        p->binding.batch = batch;
        p->batch_from = input;
    }
    if (p->binding.batch != batch)
        CPL_FAIL(err, CPL_USAGE, "'%s' has batch=%lld but '%s' has batch=%lld" CPL_HINT
                 "every input of one run holds the same sentences; the last batch of a data set may be smaller", input,
                 (long long)batch, p->batch_from, (long long)p->binding.batch);
    return CPL_OK;
}

static int find_input(const cpl_program *p, const char *name, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    const char *names[64];
    for (size_t i = 0; i < g->input_count; i++) {
        if (strcmp(g->inputs[i].name, name) == 0)
            return (int)i;
        if (i < 64)
            names[i] = g->inputs[i].name;
    }
    cpl_str list = {0};
    for (size_t i = 0; i < g->input_count; i++) {
        cpl_str_printf(&list, "%s%s ", i ? ", " : "", g->inputs[i].name);
        cpl_type_print(&g->values[g->inputs[i].value].type, &list);
    }
    const char *near = cpl_nearest(name, names, g->input_count < 64 ? g->input_count : 64);
    cpl_error_set(err, CPL_USAGE, "'%s' has no input '%s'; it needs %s%s%s%s", p->name, name,
                  list.data ? list.data : "none", near ? CPL_HINT "did you mean '" : "", near ? near : "",
                  near ? "'?" : "");
    cpl_str_free(&list);
    return -1;
}

/* What a feed may bind. One that fails gives it back, so that the data can be mended and fed again. */
typedef struct bound {
    cpl_binding binding;
    const char *batch_from;
    int time[CPL_MAX_SYMBOLS];
} bound;

static bound bound_now(const cpl_program *p)
{
    bound b = {.binding = p->binding, .batch_from = p->batch_from};
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++)
        b.time[i] = p->geometry[i].bound;
    return b;
}

static cpl_status undo_failed(cpl_program *p, const bound *before, cpl_status status)
{
    if (status == CPL_OK)
        return status;
    p->binding = before->binding;
    p->batch_from = before->batch_from;
    for (int i = 0; i < CPL_MAX_SYMBOLS; i++)
        p->geometry[i].bound = p->geometry[i].bound && before->time[i];
    return status;
}

int cpl_program_symbol(const cpl_program *p, const char *word)
{
    for (int i = 0; i < p->traced->symbol_count; i++)
        if (strcmp(p->traced->symbols[i].name, word) == 0)
            return i;
    return -1;
}

static cpl_status slot_memory(cpl_program *p, int input, size_t bytes, cpl_error *err)
{
    cpl_input_slot *s = &p->inputs[input];
    if (bytes > s->capacity || !s->buffer) {
        cpl_release(s->buffer);
        s->buffer = cpl_alloc_aligned(bytes + 64, 64);
        s->capacity = s->buffer ? bytes : 0;
        if (!s->buffer)
            CPL_FAIL(err, CPL_FAILED, "out of memory for input '%s'", p->traced->inputs[input].name);
    }
    s->data = s->buffer;
    return CPL_OK;
}

/* ---- lengths ---- */

/* Two inputs over one time word must agree in every length (case A02). */
static cpl_status same_lengths(const cpl_program *p, int symbol, const char *input, const int64_t *lengths,
                               int64_t batch, cpl_error *err)
{
    const cpl_geometry *g = &p->geometry[symbol];
    const char *word = p->traced->symbols[symbol].name, *other = p->geometry_from[symbol];
    for (int64_t i = 0; i < batch && batch == g->batch; i++) {
        int32_t have = g->length[g->position[i]];
        if (have != lengths[i])
            CPL_FAIL(err, CPL_USAGE, "sentence %lld has %s=%lld in '%s' but %s=%d in '%s'; both are over '%s'" CPL_HINT
                     "START and END must be added on both sides alike, and neither side cut alone", (long long)i, word,
                     (long long)lengths[i], input, word, have, other, word);
    }
    return CPL_OK;
}

static cpl_status set_lengths(cpl_program *p, int symbol, const char *input, const int64_t *lengths, int64_t batch,
                              int64_t width, cpl_error *err)
{
    if (p->geometry[symbol].bound)
        return same_lengths(p, symbol, input, lengths, batch, err);
    CPL_TRY(cpl_geometry_set_lengths(&p->geometry[symbol], lengths, batch, width, err), err, "cannot feed '%s'", input);
    p->geometry_from[symbol] = input;
    return CPL_OK;
}

cpl_status cpl_feed_mask(cpl_program *p, const char *time, const uint8_t *mask, int64_t batch, int64_t width,
                         cpl_error *err)
{
    cpl_program_begin(p);
    int symbol = cpl_program_symbol(p, time);
    if (symbol < 0 || p->traced->symbols[symbol].kind != CPL_DIM_TIME || p->traced->symbols[symbol].nested)
        CPL_FAIL(err, CPL_USAGE, "'%s' has no time '%s'", p->name, time);
    if (p->geometry[symbol].bound)
        CPL_FAIL(err, CPL_USAGE, "'%s' has the lengths of '%s' already" CPL_HINT
                 "feed a mask before the inputs that it is for", time, p->geometry_from[symbol]);
    bound before = bound_now(p);
    cpl_status status = cpl_program_batch(p, time, batch, err);
    if (status == CPL_OK)
        status = cpl_geometry_set_mask(&p->geometry[symbol], mask, batch, width, err);
    CPL_TRY(undo_failed(p, &before, status), err, "cannot feed the mask of '%s'", time);
    p->geometry_from[symbol] = p->traced->symbols[symbol].name;
    return CPL_OK;
}

/* ---- ids ---- */

static cpl_status check_id(const cpl_program *p, int input, int64_t id, int64_t row, int64_t column, cpl_error *err)
{
    const cpl_type *type = &p->traced->values[p->traced->inputs[input].value].type;
    if (id >= 0 && id < type->entries)
        return CPL_OK;
    CPL_FAIL(err, CPL_USAGE, "id %lld at row %lld, column %lld of '%s' is outside 0 to %lld: vocabulary '%s' has %lld "
             "entries including padding and unknown", (long long)id, (long long)row, (long long)column,
             p->traced->inputs[input].name, (long long)(type->entries - 1), type->vocabulary, (long long)type->entries);
}

static cpl_status feed_rows(cpl_program *p, int input, const int32_t *const *rows, const int64_t *lengths,
                            int64_t batch, cpl_error *err)
{
    const char *name = p->traced->inputs[input].name;
    const cpl_type *type = &p->traced->values[p->traced->inputs[input].value].type;
    int time = cpl_type_find(type, CPL_DIM_TIME);
    if (type->element != CPL_ELEMENT_ID || time < 0 || type->rank != 2) {
        char text[160];
        CPL_FAIL(err, CPL_USAGE, "'%s' is %s, not sentences of ids", name, cpl_type_text(type, text, sizeof text));
    }
    int64_t width = 0;
    for (int64_t i = 0; i < batch; i++)
        width = lengths[i] > width ? lengths[i] : width;
    CPL_TRY(cpl_program_batch(p, name, batch, err), err, "cannot feed '%s'", name);
    CPL_TRY(set_lengths(p, type->dim[time].symbol, name, lengths, batch, width, err), err, "cannot feed '%s'", name);
    const cpl_geometry *g = &p->geometry[type->dim[time].symbol];
    CPL_TRY(slot_memory(p, input, (size_t)g->rows * sizeof(int32_t), err), err, "cannot feed '%s'", name);
    int32_t *to = p->inputs[input].data;
    for (int64_t i = 0; i < batch; i++) {
        int32_t at = g->position[i];
        for (int64_t k = 0; k < lengths[i]; k++) {
            CPL_TRY(check_id(p, input, rows[i][k], i, k, err), err, "cannot feed '%s'", name);
            to[g->offset[k] + at] = rows[i][k];
        }
    }
    return CPL_OK;
}

cpl_status cpl_feed_ids(cpl_program *p, const char *name, const int32_t *const *rows, const int64_t *lengths,
                        int64_t batch, cpl_error *err)
{
    cpl_program_begin(p);
    int input = find_input(p, name, err);
    if (input < 0)
        return CPL_USAGE;
    bound before = bound_now(p);
    cpl_status status = undo_failed(p, &before, feed_rows(p, input, rows, lengths, batch, err));
    p->inputs[input].fed = status == CPL_OK;
    return status;
}

/* ---- rectangles ---- */

static const char *const array_types[] = {"int32", "int64", "float32", "float64"};

static double element(const cpl_array *a, int64_t i)
{
    switch (a->type) {
    case CPL_INT32:
        return ((const int32_t *)a->data)[i];
    case CPL_INT64:
        return (double)((const int64_t *)a->data)[i];
    case CPL_FLOAT32:
        return (double)((const float *)a->data)[i];
    default:
        return ((const double *)a->data)[i];
    }
}

static int64_t id_element(const cpl_array *a, int64_t i)
{
    return a->type == CPL_INT32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
}

static void array_text(const cpl_array *a, char *buffer, size_t size)
{
    size_t n = (size_t)snprintf(buffer, size, "(");
    for (int i = 0; i < a->rank && n < size; i++)
        n += (size_t)snprintf(buffer + n, size - n, "%s%lld", i ? ", " : "", (long long)a->shape[i]);
    if (n < size)
        snprintf(buffer + n, size - n, ")");
}

/* Element type and shape of the array against the declared input; a padded symbol takes its width from it. */
static cpl_status check_array(cpl_program *p, int input, const cpl_array *a, cpl_error *err)
{
    const char *name = p->traced->inputs[input].name;
    const cpl_type *type = &p->traced->values[p->traced->inputs[input].value].type;
    int whole = a->type == CPL_INT32 || a->type == CPL_INT64;
    char want[160], got[80];
    array_text(a, got, sizeof got);
    cpl_type_text(type, want, sizeof want);
    if ((type->element == CPL_ELEMENT_ID) != whole)
        CPL_FAIL(err, CPL_USAGE, "'%s' is %s, expected %s", name, array_types[a->type],
                 type->element == CPL_ELEMENT_ID ? "int32 or int64: ids are whole numbers" : "float32 or float64");
    int same = a->rank == type->rank && a->rank <= 4;
    for (int i = 0; same && i < a->rank; i++) {
        const cpl_dim *d = &type->dim[i];
        if (d->kind == CPL_DIM_FEATURE)
            same = d->size == a->shape[i];
        else if (d->kind == CPL_DIM_BATCH && p->binding.batch >= 0 && a->shape[i] != p->binding.batch)
            CPL_FAIL(err, CPL_USAGE, "'%s' is %s, expected %s with batch=%lld as in '%s'", name, got, want,
                     (long long)p->binding.batch, p->batch_from);
        else if (d->kind == CPL_DIM_PADDED && p->binding.rows[d->symbol] && a->shape[i] != p->binding.rows[d->symbol])
            CPL_FAIL(err, CPL_USAGE, "'%s' is %s, expected %s with %s=%lld as in the rectangle before it", name, got,
                     want, d->name, (long long)p->binding.rows[d->symbol]);
        else if (d->kind == CPL_DIM_PADDED)
            p->binding.rows[d->symbol] = a->shape[i];
    }
    if (!same)
        CPL_FAIL(err, CPL_USAGE, "'%s' is %s, expected %s", name, got, want);
    return CPL_OK;
}

/* The lengths that apply to a rectangle: its own, those bound already, or whole rows. */
static cpl_status array_lengths(cpl_program *p, int symbol, const char *name, const cpl_array *a, cpl_error *err)
{
    int64_t batch = a->shape[0], width = a->shape[1];
    cpl_geometry *g = &p->geometry[symbol];
    if (a->lengths)
        return set_lengths(p, symbol, name, a->lengths, batch, width, err);
    if (g->bound) {
        int64_t needed = 0; /* columns: a mask may leave gaps */
        for (int64_t row = 0; row < g->rows; row++)
            needed = g->place[row] >= needed ? g->place[row] + 1 : needed;
        if (width < needed || (width != g->width && width != g->longest))
            CPL_FAIL(err, CPL_USAGE, "'%s' has %s=%lld but '%s' has %s=%lld" CPL_HINT
                     "give lengths with the array, or cut both to the same steps", name,
                     p->traced->symbols[symbol].name, (long long)width, p->geometry_from[symbol],
                     p->traced->symbols[symbol].name, (long long)g->width);
        return CPL_OK;
    }
    int64_t *whole = cpl_alloc((size_t)batch, sizeof *whole);
    if (!whole)
        CPL_FAIL(err, CPL_FAILED, "out of memory");
    for (int64_t i = 0; i < batch; i++)
        whole[i] = width;
    cpl_status status = set_lengths(p, symbol, name, whole, batch, width, err);
    cpl_release(whole);
    return status;
}

/* Copies one row of `width` features from element `from` of the array to row `to` of the slot. */
static cpl_status copy_row(cpl_program *p, int input, const cpl_array *a, int64_t from, int64_t to, int64_t width,
                           cpl_error *err)
{
    int id = p->traced->inputs[input].declared.id;
    for (int64_t k = 0; k < width; k++) {
        if (!id) {
            ((real *)p->inputs[input].data)[to * width + k] = (real)element(a, from * width + k);
            continue;
        }
        int64_t columns = a->rank > 1 ? a->shape[1] : 1, at = from * width + k, v = id_element(a, at);
        CPL_TRY(check_id(p, input, v, at / columns, at % columns, err), err, "cannot feed '%s'",
                p->traced->inputs[input].name);
        ((int32_t *)p->inputs[input].data)[to * width + k] = (int32_t)v;
    }
    return CPL_OK;
}

/* [lead batch t s] as a rectangle: each lead, then the rows of t in packed order, each as long as its sentence in s. */
static cpl_status copy_pairs(cpl_program *p, int input, const cpl_array *a, cpl_error *err)
{
    const cpl_type *type = &p->traced->values[p->traced->inputs[input].value].type;
    int at = cpl_type_find(type, CPL_DIM_BATCH);
    const cpl_geometry *t = &p->geometry[type->dim[at + 1].symbol], *s = &p->geometry[type->dim[at + 2].symbol];
    int64_t lead = at ? a->shape[0] : 1, row = 0, tw = a->shape[at + 1], sw = a->shape[at + 2];
    if (!t->bound || !s->bound || tw != t->width || sw != s->width)
        CPL_FAIL(err, CPL_USAGE, "'%s' is over two times: feed the inputs that give their lengths first",
                 p->traced->inputs[input].name);
    size_t bytes = (size_t)(lead * cpl_geometry_pairs(t, s)) * sizeof(real);
    cpl_status status = slot_memory(p, input, bytes, err);
    for (int64_t h = 0; h < lead; h++)
        for (int64_t k = 0; k < t->longest; k++)
            for (int64_t i = 0; i < cpl_geometry_active(t, k); i++) {
                int32_t source = s->position[t->sentence[i]];
                int64_t base = ((h * t->batch + t->sentence[i]) * tw + t->place[t->offset[k] + i]) * sw;
                for (int64_t j = 0; j < s->length[source] && status == CPL_OK; j++)
                    status = copy_row(p, input, a, base + s->place[s->offset[j] + source], row++, 1, err);
            }
    return status;
}

static cpl_status copy_array(cpl_program *p, int input, const cpl_array *a, cpl_error *err)
{
    const cpl_type *type = &p->traced->values[p->traced->inputs[input].value].type;
    int time = cpl_type_find(type, CPL_DIM_TIME);
    const cpl_geometry *g = time >= 0 ? &p->geometry[type->dim[time].symbol] : NULL;
    int64_t width = cpl_type_width(type), count = 1;
    for (int i = 0; i < a->rank; i++)
        count *= a->shape[i];
    int64_t rows = g ? g->rows : width ? count / width : 0;
    CPL_TRY(slot_memory(p, input, (size_t)(rows * width) * 4 * (sizeof(real) / 4), err), err, "cannot feed '%s'",
            p->traced->inputs[input].name);
    cpl_status status = CPL_OK;
    if (!g) {
        for (int64_t r = 0; r < rows && status == CPL_OK; r++)
            status = copy_row(p, input, a, r, r, width, err);
        return status;
    }
    for (int64_t step = 0; step < g->longest; step++)
        for (int64_t i = 0; i < cpl_geometry_active(g, step) && status == CPL_OK; i++) {
            int64_t row = g->offset[step] + i;
            int64_t place = a->lengths ? step : g->place[row];
            status = copy_row(p, input, a, g->sentence[i] * a->shape[1] + place, row, width, err);
        }
    return status;
}

static cpl_status feed_array(cpl_program *p, int input, const cpl_array *array, cpl_error *err)
{
    const char *name = p->traced->inputs[input].name;
    const cpl_type *type = &p->traced->values[p->traced->inputs[input].value].type;
    CPL_TRY(check_array(p, input, array, err), err, "cannot feed '%s'", name);
    int batch = cpl_type_find(type, CPL_DIM_BATCH), time = cpl_type_find(type, CPL_DIM_TIME);
    if (batch >= 0)
        CPL_TRY(cpl_program_batch(p, name, array->shape[batch], err), err, "cannot feed '%s'", name);
    if (cpl_type_times(type) == 2) {
        CPL_TRY(copy_pairs(p, input, array, err), err, "cannot feed '%s'", name);
        return CPL_OK;
    }
    if (time >= 0)
        CPL_TRY(array_lengths(p, type->dim[time].symbol, name, array, err), err, "cannot feed '%s'", name);
    CPL_TRY(copy_array(p, input, array, err), err, "cannot feed '%s'", name);
    return CPL_OK;
}

cpl_status cpl_feed(cpl_program *p, const char *name, const cpl_array *array, cpl_error *err)
{
    cpl_program_begin(p);
    int input = find_input(p, name, err);
    if (input < 0)
        return CPL_USAGE;
    bound before = bound_now(p);
    cpl_status status = undo_failed(p, &before, feed_array(p, input, array, err));
    p->inputs[input].fed = status == CPL_OK;
    return status;
}

cpl_status cpl_program_bind(cpl_program *p, const char *name, void *data, cpl_error *err)
{
    cpl_program_begin(p);
    int input = find_input(p, name, err);
    if (input < 0)
        return CPL_USAGE;
    p->inputs[input].data = data;
    p->inputs[input].fed = 1;
    return CPL_OK;
}

cpl_status cpl_program_share_time(cpl_program *p, const char *time, const cpl_program *from, cpl_error *err)
{
    cpl_program_begin(p);
    int a = cpl_program_symbol(p, time), b = cpl_program_symbol(from, time);
    if (a < 0 || b < 0)
        CPL_FAIL(err, CPL_FAILED, "'%s' and '%s' do not share the time '%s'", p->name, from->name, time);
    if (p->geometry[a].bound)
        CPL_FAIL(err, CPL_FAILED, "'%s' was given before the lengths of another program", p->geometry_from[a]);
    CPL_TRY(cpl_program_batch(p, time, from->geometry[b].batch, err), err, "cannot share '%s'", time);
    CPL_TRY(cpl_geometry_copy(&p->geometry[a], &from->geometry[b], err), err, "cannot share '%s'", time);
    p->geometry_from[a] = p->traced->symbols[a].name;
    return CPL_OK;
}

size_t cpl_program_input_bytes(const cpl_program *p, const cpl_binding *capacity)
{
    const cpl_graph *g = p->traced;
    size_t bytes = 0;
    for (size_t i = 0; i < g->input_count; i++)
        bytes += cpl_type_bytes(&g->values[g->inputs[i].value].type, capacity) + 64;
    for (int i = 0; i < g->symbol_count; i++)
        if (g->symbols[i].kind == CPL_DIM_TIME && !g->symbols[i].nested)
            bytes += sizeof(int32_t) * (size_t)(3 * capacity->batch + capacity->longest[i] + 2 + capacity->rows[i]);
    return bytes;
}

cpl_status cpl_program_reserve_inputs(cpl_program *p, const cpl_binding *capacity, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    for (size_t i = 0; i < g->input_count; i++) {
        size_t bytes = cpl_type_bytes(&g->values[g->inputs[i].value].type, capacity);
        CPL_TRY(slot_memory(p, (int)i, bytes, err), err, "cannot make room for '%s'", g->inputs[i].name);
        memset(p->inputs[i].buffer, 0, bytes); /* touched now, so that it cannot fail later */
    }
    for (int i = 0; i < g->symbol_count; i++)
        if (g->symbols[i].kind == CPL_DIM_TIME && !g->symbols[i].nested)
            CPL_TRY(cpl_geometry_reserve(&p->geometry[i], capacity->batch, capacity->longest[i], capacity->rows[i],
                                         err), err, "cannot make room for '%s'", g->symbols[i].name);
    return CPL_OK;
}
