/* arena.c: many small things freed at once. Blocks are chained and never move. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

typedef struct block {
    struct block *next;
    size_t used, bytes;
    _Alignas(16) char data[];
} block;

struct cpl_arena {
    block *current; /* the block that is being filled; older ones behind it */
    size_t block_bytes, held;
};

cpl_arena *cpl_arena_new(size_t block_bytes)
{
    cpl_arena *a = cpl_alloc(1, sizeof *a);
    if (a) {
        a->block_bytes = block_bytes < 256 ? 256 : block_bytes;
        a->held = sizeof *a;
    }
    return a;
}

void cpl_arena_free(cpl_arena *a)
{
    if (!a)
        return;
    for (block *b = a->current, *next; b; b = next) {
        next = b->next;
        cpl_release(b);
    }
    cpl_release(a);
}

static block *new_block(cpl_arena *a, size_t bytes)
{
    block *b = bytes < SIZE_MAX - sizeof *b ? cpl_alloc(sizeof *b + bytes, 1) : NULL;
    if (b) {
        b->bytes = bytes;
        a->held += sizeof *b + bytes;
    }
    return b;
}

/* What is larger than a quarter of a block gets one of its own, behind the current one, so that the
 * current block's free space is not lost. */
static void *take(cpl_arena *a, size_t bytes, size_t alignment)
{
    block *b = a->current;
    if (b) {
        size_t at = (b->used + alignment - 1) & ~(alignment - 1);
        if (at <= b->bytes && bytes <= b->bytes - at) {
            b->used = at + bytes;
            return b->data + at;
        }
    }
    int own = b && bytes > a->block_bytes / 4;
    block *fresh = new_block(a, own || bytes > a->block_bytes ? bytes : a->block_bytes);
    if (!fresh)
        return NULL;
    fresh->used = bytes;
    if (own) {
        fresh->next = b->next;
        b->next = fresh;
    } else {
        fresh->next = b;
        a->current = fresh;
    }
    return fresh->data;
}

void *cpl_arena_alloc(cpl_arena *a, size_t bytes)
{
    return take(a, bytes ? bytes : 1, 16);
}

char *cpl_arena_strndup(cpl_arena *a, const char *s, size_t length)
{
    char *copy = length < SIZE_MAX ? take(a, length + 1, 1) : NULL;
    if (copy && length > 0)
        memcpy(copy, s, length);
    return copy; /* blocks are zeroed: the copy ends in NUL */
}

char *cpl_arena_printf(cpl_arena *a, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = n < 0 ? NULL : take(a, (size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

size_t cpl_arena_bytes(const cpl_arena *a)
{
    return a->held;
}
