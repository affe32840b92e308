/* trace.h: spans of time on threads, kept for a viewer.
 *
 * The room is fixed: what comes when it is full is counted and left out. Any thread may add. */
#ifndef CPL_BASE_TRACE_H
#define CPL_BASE_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include "base/files.h"
#include "couplet.h"

typedef struct cpl_span {
    const char *name;    /* as long as the trace lives, like the two below */
    const char *kind;    /* one word, by which a viewer groups them */
    const char *op;      /* NULL: none */
    int64_t number;      /* shown behind the name, of 50 letters at most then; below 0: none */
    int64_t begun, ended;/* cpl_clock_ns */
    int thread;          /* its row in the viewer */
} cpl_span;

typedef struct cpl_trace cpl_trace;
cpl_status cpl_trace_new(cpl_trace **t, size_t room, cpl_error *err); /* its time 0 is now */
void cpl_trace_free(cpl_trace *t);                                    /* NULL is fine */
size_t cpl_trace_bytes(size_t room);
void cpl_trace_add(cpl_trace *t, const cpl_span *span);
/* How many it has; *left_out: for how many there was no room. */
size_t cpl_trace_count(cpl_trace *t, size_t *left_out);

/* The spans as events of Chrome's trace format, each behind a comma and a line feed: by time, and those that begin
 * together the longest first, as a viewer nests them. */
cpl_status cpl_trace_write(cpl_trace *t, cpl_writer *to, cpl_error *err);

#endif
