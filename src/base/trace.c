/* trace.c: a bounded list of spans. */
#include "base/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

enum { PIECE = 1 << 16 }; /* bytes of text that are written at once */

struct cpl_trace {
    pthread_mutex_t lock;
    cpl_span *spans;
    size_t room, count, left_out;
    int64_t origin;
};

cpl_status cpl_trace_new(cpl_trace **out, size_t room, cpl_error *err)
{
    cpl_trace *t = cpl_alloc(1, sizeof *t);
    *out = NULL;
    if (t)
        t->spans = cpl_alloc_aligned((room + 1) * sizeof *t->spans, 64); /* pages come when they are used */
    if (!t || !t->spans) {
        cpl_release(t);
        CPL_FAIL(err, CPL_FAILED, "no memory for a trace of %zu spans", room);
    }
    pthread_mutex_init(&t->lock, NULL);
    t->room = room;
    t->origin = cpl_clock_ns();
    *out = t;
    return CPL_OK;
}

void cpl_trace_free(cpl_trace *t)
{
    if (!t)
        return;
    pthread_mutex_destroy(&t->lock);
    cpl_release(t->spans);
    cpl_release(t);
}

size_t cpl_trace_bytes(size_t room)
{
    return sizeof(cpl_trace) + (room + 1) * sizeof(cpl_span);
}

void cpl_trace_add(cpl_trace *t, const cpl_span *span)
{
    pthread_mutex_lock(&t->lock);
    if (t->count < t->room)
        t->spans[t->count++] = *span;
    else
        t->left_out++;
    pthread_mutex_unlock(&t->lock);
}

size_t cpl_trace_count(cpl_trace *t, size_t *left_out)
{
    pthread_mutex_lock(&t->lock);
    size_t count = t->count;
    *left_out = t->left_out;
    pthread_mutex_unlock(&t->lock);
    return count;
}

/* ---- writing ---- */

static int by_time(const void *a, const void *b)
{
    const cpl_span *x = a, *y = b;
    if (x->begun != y->begun)
        return x->begun < y->begun ? -1 : 1;
    return (x->ended < y->ended) - (x->ended > y->ended);
}

/* Microseconds with three digits behind the point: no nanosecond is lost, so what nests stays nested. */
static void add_time(cpl_str *to, const char *key, int64_t ns)
{
    cpl_str_printf(to, ", \"%s\": %" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void add_event(cpl_str *to, const cpl_span *s, int64_t origin)
{
    char numbered[80];
    const char *name = s->name;
    int64_t begun = s->begun > origin ? s->begun - origin : 0, ended = s->ended > origin ? s->ended - origin : 0;
    if (s->number >= 0) {
        snprintf(numbered, sizeof numbered, "%.50s %" PRId64, s->name, s->number);
        name = numbered;
    }
    cpl_str_add(to, ",\n{\"name\": ");
    cpl_json_write_text(to, name, strlen(name));
    cpl_str_printf(to, ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": %d", s->kind, s->thread);
    add_time(to, "ts", begun);
    add_time(to, "dur", ended > begun ? ended - begun : 0);
    if (s->op)
        cpl_str_printf(to, ", \"args\": {\"op\": \"%s\"}", s->op);
    cpl_str_add_char(to, '}');
}

static cpl_status flush(cpl_str *text, cpl_writer *to, cpl_error *err)
{
    if (text->failed)
        CPL_FAIL(err, CPL_FAILED, "no memory to write a trace");
    cpl_status status = text->length ? cpl_writer_write(to, text->data, text->length, err) : CPL_OK;
    cpl_str_clear(text);
    return status;
}

cpl_status cpl_trace_write(cpl_trace *t, cpl_writer *to, cpl_error *err)
{
    cpl_str text = {0};
    cpl_status status = CPL_OK;
    pthread_mutex_lock(&t->lock);
    qsort(t->spans, t->count, sizeof *t->spans, by_time);
    for (size_t i = 0; status == CPL_OK && i < t->count; i++) {
        add_event(&text, &t->spans[i], t->origin);
        if (text.length > PIECE || text.failed)
            status = flush(&text, to, err);
    }
    pthread_mutex_unlock(&t->lock);
    if (status == CPL_OK)
        status = flush(&text, to, err);
    cpl_str_free(&text);
    return status;
}
