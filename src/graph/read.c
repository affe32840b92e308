/* read.c: results of a run, as rectangles in the caller's order; parameters and gradients. */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "graph/program.h"

static void value_tensor(cpl_program *p, int value, cpl_tensor *t)
{
    const cpl_value *v = &p->schedule[p->last_mode].graph->values[value];
    t->type = &v->type;
    t->rows = cpl_type_rows(&v->type, &p->binding);
    t->width = cpl_type_width(&v->type);
    t->packed = NULL; /* what is an output is read as plain numbers */
    if (v->input >= 0)
        t->data = p->inputs[v->input].data;
    else if (v->storage == CPL_STORE_PARAMETER)
        t->data = cpl_parameters_value(p->engine->parameters, (size_t)v->parameter);
    else if (v->storage == CPL_STORE_GRADIENT)
        t->data = p->gradients + cpl_parameters_at(p->engine->parameters, (size_t)v->parameter)->slot;
    else
        t->data = (real *)(void *)(p->block + p->last_plan.offset[value]);
}

const cpl_tensor *cpl_program_output(cpl_program *p, const char *output, cpl_tensor *t)
{
    const cpl_graph *g = p->schedule[p->last_mode].graph;
    for (size_t i = 0; g && p->ran && p->block && i < g->output_count; i++)
        if (strcmp(g->outputs[i].name, output) == 0 && g->outputs[i].value >= 0) {
            value_tensor(p, g->outputs[i].value, t);
            return t;
        }
    return NULL;
}

static cpl_status no_output(const cpl_program *p, const char *output, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    for (size_t i = 0; i < g->output_count; i++)
        if (strcmp(g->outputs[i].name, output) == 0)
            CPL_FAIL(err, CPL_USAGE, "output '%s' does not exist in this run" CPL_HINT
                     "whole logits exist only in a CPL_EVALUATE run: training works on blocks of them; gradients "
                     "exist only in a CPL_TRAIN run", output);
    CPL_FAIL(err, CPL_USAGE, "'%s' has no output '%s'", p->name, output);
}

/* ---- rectangles ---- */

typedef struct reader {
    cpl_program *p;
    const cpl_tensor *t;
    int64_t shape[6];
    int rank;
    void *to;
} reader;

static void shape_of(reader *r)
{
    const cpl_type *type = r->t->type;
    r->rank = type->rank;
    for (int i = 0; i < type->rank; i++) {
        const cpl_dim *d = &type->dim[i];
        switch (d->kind) {
        case CPL_DIM_BATCH:
            r->shape[i] = r->p->binding.batch;
            break;
        case CPL_DIM_TIME:
            r->shape[i] = r->p->geometry[d->symbol].width;
            break;
        case CPL_DIM_PADDED:
            r->shape[i] = r->p->binding.rows[d->symbol];
            break;
        default:
            r->shape[i] = d->size;
        }
    }
}

/* Rows and ids are both 4 bytes in the float build, and copied as bytes. */
static void copy_rows(const reader *r, int64_t to_row, int64_t from_row, int64_t rows)
{
    size_t width = (size_t)r->t->width * sizeof(real);
    memcpy((char *)r->to + (size_t)to_row * width, (const char *)r->t->data + (size_t)from_row * width,
           (size_t)rows * width);
}

static void read_time(const reader *r, const cpl_geometry *g)
{
    for (int64_t step = 0; step < g->longest; step++)
        for (int64_t i = 0; i < cpl_geometry_active(g, step); i++) {
            int64_t row = g->offset[step] + i;
            copy_rows(r, g->sentence[i] * g->width + g->place[row], row, 1);
        }
}

/* [lead batch t s]: for each lead, the rows of t in packed order (cpl_pair_index), each as long as its source. */
static void read_pairs(const reader *r, const cpl_geometry *t, const cpl_geometry *s)
{
    int64_t lead = r->rank == 4 ? r->shape[0] : 1, row = 0;
    for (int64_t h = 0; h < lead; h++)
        for (int64_t k = 0; k < t->longest; k++)
            for (int64_t i = 0; i < cpl_geometry_active(t, k); i++) {
                int32_t sentence = t->sentence[i], at = s->position[sentence];
                for (int64_t j = 0; j < s->length[at]; j++, row++) {
                    int64_t tp = t->place[t->offset[k] + i], sp = s->place[s->offset[j] + at];
                    copy_rows(r, ((h * t->batch + sentence) * t->width + tp) * s->width + sp, row, 1);
                }
            }
}

static void read_batch(const reader *r, int order)
{
    const cpl_geometry *g = order >= 0 ? &r->p->geometry[order] : NULL;
    for (int64_t i = 0; i < r->t->rows; i++)
        copy_rows(r, g ? g->sentence[i] : i, i, 1);
}

static void fill(const reader *r)
{
    const cpl_type *type = r->t->type;
    const cpl_geometry *time[2] = {NULL, NULL};
    int n = 0;
    for (int i = 0; i < type->rank; i++)
        if (type->dim[i].kind == CPL_DIM_TIME && n < 2)
            time[n++] = &r->p->geometry[type->dim[i].symbol];
    if (n == 2)
        read_pairs(r, time[0], time[1]);
    else if (n == 1)
        read_time(r, time[0]);
    else if (cpl_type_find(type, CPL_DIM_BATCH) >= 0 && cpl_type_find(type, CPL_DIM_PADDED) < 0)
        read_batch(r, type->order);
    else
        copy_rows(r, 0, 0, r->t->rows);
}

static cpl_status read_output(cpl_program *p, const char *output, cpl_element element, reader *r, size_t capacity,
                              cpl_error *err)
{
    cpl_tensor t;
    r->p = p;
    r->t = cpl_program_output(p, output, &t);
    if (!r->t)
        return no_output(p, output, err);
    if (t.type->element != element)
        CPL_FAIL(err, CPL_USAGE, "output '%s' holds %s", output,
                 element == CPL_ELEMENT_ID ? "real numbers: use cpl_read" : "ids: use cpl_read_ids");
    shape_of(r);
    if (!r->to)
        return CPL_OK;
    size_t count = 1;
    for (int i = 0; i < r->rank; i++)
        count *= (size_t)r->shape[i];
    if (count > capacity)
        CPL_FAIL(err, CPL_USAGE, "output '%s' has %zu elements, room for %zu was given", output, count, capacity);
    memset(r->to, 0, count * sizeof(real));
    fill(r);
    return CPL_OK;
}

static cpl_status read_any(cpl_program *p, const char *output, cpl_element element, void *to, size_t capacity,
                           int64_t shape[6], int *rank, cpl_error *err)
{
    reader r = {.to = to};
    cpl_status status = read_output(p, output, element, &r, capacity, err);
    if (shape)
        memcpy(shape, r.shape, sizeof r.shape);
    if (rank)
        *rank = r.rank;
    return status;
}

cpl_status cpl_read(cpl_program *p, const char *output, float *to, size_t capacity, int64_t shape[6], int *rank,
                    cpl_error *err)
{
    return read_any(p, output, CPL_ELEMENT_REAL, to, capacity, shape, rank, err);
}

cpl_status cpl_read_ids(cpl_program *p, const char *output, int32_t *to, size_t capacity, int64_t shape[6], int *rank,
                        cpl_error *err)
{
    return read_any(p, output, CPL_ELEMENT_ID, to, capacity, shape, rank, err);
}

double cpl_scalar(const cpl_program *p, const char *output)
{
    cpl_tensor t;
    /* Finding an output changes nothing in the program. */
    union {
        const cpl_program *in;
        cpl_program *out;
    } same = {.in = p};
    const cpl_tensor *x = cpl_program_output(same.out, output, &t);
    if (!x || x->rows != 1 || x->width != 1 || x->type->element != CPL_ELEMENT_REAL)
        return NAN;
    return (double)x->data[0];
}

/* ---- parameters ---- */

size_t cpl_parameter_count(const cpl_program *p)
{
    return cpl_parameters_count(p->engine->parameters);
}

const char *cpl_parameter_path(const cpl_program *p, size_t i)
{
    return cpl_parameters_at(p->engine->parameters, i)->path;
}

int cpl_parameter_shape(const cpl_program *p, size_t i, int64_t shape[3])
{
    const cpl_parameter_info *info = cpl_parameters_at(p->engine->parameters, i);
    for (int k = 0; k < info->rank; k++)
        shape[k] = info->size[k];
    return info->rank;
}

#ifndef CPL_DOUBLE
float *cpl_parameter_value(const cpl_program *p, size_t i)
{
    return cpl_parameters_value(p->engine->parameters, i);
}

const float *cpl_parameter_gradient(const cpl_program *p, size_t i)
{
    const cpl_parameter_info *info = cpl_parameters_at(p->engine->parameters, i);
    int is_there = p->gradients && p->layout == cpl_parameters_layout(p->engine->parameters);
    return is_there && info->reached && info->trainable ? p->gradients + info->slot : NULL;
}
#endif

int cpl_parameter_trainable(const cpl_program *p, size_t i)
{
    return cpl_parameters_at(p->engine->parameters, i)->trainable;
}

int64_t cpl_parameter_find(const cpl_program *p, const char *path)
{
    return cpl_parameters_find(p->engine->parameters, path);
}

int64_t cpl_traces(const cpl_program *p)
{
    return p->traces;
}

int64_t cpl_plans(const cpl_program *p)
{
    return p->plans;
}
