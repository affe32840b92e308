/* carry.c: states that go from one run of a program to the next, as numbers: the end of a chunk of a long document is
 * the beginning of the next one, and no gradient goes from one to the other. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/program.h"

static int find_output(const cpl_program *p, const char *name)
{
    for (size_t i = 0; i < p->traced->output_count; i++)
        if (!p->traced->outputs[i].gradient && strcmp(p->traced->outputs[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int find_input(const cpl_program *p, const char *name)
{
    for (size_t i = 0; i < p->traced->input_count; i++)
        if (strcmp(p->traced->inputs[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int is_state(const cpl_type *t)
{
    return t->rank == 2 && t->element == CPL_ELEMENT_REAL && t->dim[0].kind == CPL_DIM_BATCH &&
           t->dim[1].kind == CPL_DIM_FEATURE;
}

static cpl_status check(const cpl_program *p, const char *output, const char *input, cpl_error *err)
{
    const cpl_graph *g = p->traced;
    int from = find_output(p, output), to = find_input(p, input);
    if (from < 0 || to < 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' has no %s '%s'", p->name, from < 0 ? "output" : "input",
                 from < 0 ? output : input);
    const cpl_type *a = &g->values[g->outputs[from].value].type, *b = &g->values[g->inputs[to].value].type;
    char have[160], want[160];
    if (!is_state(a) || !is_state(b) || a->dim[1].size != b->dim[1].size)
        CPL_FAIL(err, CPL_USAGE, "the output '%s' is %s and the input '%s' is %s, expected both [batch units] of one "
                 "size", output, cpl_type_text(a, have, sizeof have), input, cpl_type_text(b, want, sizeof want));
    for (size_t i = 0; i < p->carried_count; i++)
        if (p->carried[i].input == to)
            CPL_FAIL(err, CPL_USAGE, "the input '%s' is carried from '%s' already", input, p->carried[i].output);
    return CPL_OK;
}

cpl_status cpl_carry(cpl_program *p, const char *output, const char *input, cpl_error *err)
{
    CPL_TRY(check(p, output, input, err), err, "cannot carry '%s'", output);
    if (cpl_grow(&p->carried, &p->carried_capacity, p->carried_count + 1, sizeof *p->carried))
        CPL_FAIL(err, CPL_FAILED, "out of memory for a carried state");
    const cpl_graph *g = p->traced;
    int to = find_input(p, input);
    p->carried[p->carried_count++] = (cpl_carried){
        .output = g->outputs[find_output(p, output)].name, .input = to, .fresh = 1,
        .units = g->values[g->inputs[to].value].type.dim[1].size};
    return CPL_OK;
}

/* As many rows as `batch`, the new ones zero. */
static cpl_status resize(cpl_carried *c, int64_t batch, cpl_error *err)
{
    if (batch > c->capacity || !c->rows) {
        float *rows = cpl_resize(c->rows, (size_t)((batch + 1) * c->units), sizeof *rows);
        if (!rows)
            CPL_FAIL(err, CPL_FAILED, "out of memory for the states of %lld sentences", (long long)batch);
        c->rows = rows;
        c->capacity = batch;
    }
    int64_t have = c->fresh ? 0 : c->batch;
    if (batch > have)
        memset(c->rows + have * c->units, 0, (size_t)((batch - have) * c->units) * sizeof *c->rows);
    c->batch = batch;
    return CPL_OK;
}

static cpl_status reset_one(cpl_carried *c, const uint8_t *begins, int64_t batch, cpl_error *err)
{
    for (int64_t i = c->batch; !c->fresh && i < batch; i++)
        if (!begins[i])
            CPL_FAIL(err, CPL_USAGE, "row %lld goes on with a document, but the run before had %lld rows", (long long)i,
                     (long long)c->batch);
    cpl_status status = resize(c, batch, err);
    for (int64_t i = 0; status == CPL_OK && i < batch; i++)
        if (begins[i])
            memset(c->rows + i * c->units, 0, (size_t)c->units * sizeof *c->rows);
    c->fresh = status == CPL_OK ? 0 : c->fresh;
    return status;
}

cpl_status cpl_carry_reset(cpl_program *p, const uint8_t *begins, int64_t batch, cpl_error *err)
{
    for (size_t i = 0; i < p->carried_count; i++) {
        if (begins)
            CPL_TRY(reset_one(&p->carried[i], begins, batch, err), err, "cannot reset '%s'", p->carried[i].output);
        else
            p->carried[i].fresh = 1;
    }
    return CPL_OK;
}

static cpl_status feed(cpl_program *p, cpl_carried *c, cpl_error *err)
{
    const char *name = p->traced->inputs[c->input].name;
    int64_t batch = p->binding.batch;
    if (!c->fresh && c->batch != batch)
        CPL_FAIL(err, CPL_USAGE, "the batch has %lld rows but the carried state '%s' has %lld" CPL_HINT
                 "say with cpl_carry_reset which rows begin a document", (long long)batch, c->output,
                 (long long)c->batch);
    CPL_TRY(resize(c, batch, err), err, "cannot carry '%s'", c->output);
    cpl_array a = {.type = CPL_FLOAT32, .rank = 2, .shape = {batch, c->units}, .data = c->rows};
    return cpl_feed(p, name, &a, err);
}

cpl_status cpl_program_carry_in(cpl_program *p, cpl_error *err)
{
    for (size_t i = 0; i < p->carried_count; i++) {
        cpl_status status = CPL_OK;
        if (!p->ran && p->batch_from && !p->inputs[p->carried[i].input].fed)
            status = feed(p, &p->carried[i], err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

cpl_status cpl_program_carry_out(cpl_program *p, cpl_error *err)
{
    for (size_t i = 0; i < p->carried_count; i++) {
        cpl_carried *c = &p->carried[i];
        int64_t shape[6];
        int rank;
        CPL_TRY(resize(c, p->binding.batch, err), err, "cannot carry '%s'", c->output);
        CPL_TRY(cpl_read(p, c->output, c->rows, (size_t)(c->batch * c->units), shape, &rank, err), err,
                "cannot carry '%s'", c->output);
        c->fresh = 0;
    }
    return CPL_OK;
}

void cpl_program_carry_free(cpl_program *p)
{
    for (size_t i = 0; i < p->carried_count; i++)
        cpl_release(p->carried[i].rows);
    cpl_release(p->carried);
}
