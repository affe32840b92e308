/* memory.h: every allocation of the library passes through here, so that plans and tests can count.
 * All functions check n * size for overflow and return NULL when memory is short; cpl_alloc zeroes. */
#ifndef CPL_BASE_MEMORY_H
#define CPL_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *cpl_alloc(size_t n, size_t size);                 /* zeroed; n or size 0 gives a valid pointer */
void *cpl_resize(void *p, size_t n, size_t size);       /* like realloc; new bytes are not zeroed */
void *cpl_alloc_aligned(size_t bytes, size_t alignment);/* zeroed lazily (fresh pages); power of two */
void cpl_release(void *p);

char *cpl_strdup(const char *s);
char *cpl_strndup(const char *s, size_t length);

/* Grows an array to hold at least `needed` elements (doubling). Returns 0, or -1 without memory. */
int cpl_grow(void *array_pointer, size_t *capacity, size_t needed, size_t size);

uint64_t cpl_memory_allocations(void);                  /* calls so far: a run must not raise it */
uint64_t cpl_memory_live_bytes(void);                   /* usable bytes now held through this file */

/* For tests: lets the n-th allocation from now fail once (1: the next). 0: none. */
void cpl_memory_fail_at(uint64_t calls_from_now);

/* Arena: many small things freed at once. Never moves what it gave out. */
typedef struct cpl_arena cpl_arena;
cpl_arena *cpl_arena_new(size_t block_bytes);
void cpl_arena_free(cpl_arena *a);
void *cpl_arena_alloc(cpl_arena *a, size_t bytes);      /* zeroed, 16-byte aligned; NULL without memory */
char *cpl_arena_strndup(cpl_arena *a, const char *s, size_t length);
char *cpl_arena_printf(cpl_arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t cpl_arena_bytes(const cpl_arena *a);             /* bytes held from the system */

#endif
