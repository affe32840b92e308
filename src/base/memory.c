/* memory.c: counted allocation. Small blocks come from malloc; big aligned ones are mapped, so that
 * they are zero without being touched and go back to the system as soon as they are released. */
#include "base/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Documented global state: two counters, a fault to inject, and the list of mapped blocks. */
static atomic_uint_fast64_t allocations;
static atomic_uint_fast64_t live_bytes;
static atomic_uint_fast64_t fail_at;

/* Sits on the page before the block it describes; the list is short (one entry per workspace). */
typedef struct mapped {
    struct mapped *next;
    char *block; /* what the caller holds */
    void *base;  /* what munmap wants */
    size_t bytes, mapped_bytes;
} mapped;

static mapped *mapped_blocks;
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;

enum { MAP_FROM = 1 << 20, HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20 };

/* Counts one call; says whether the call has to fail because a test asked for it. */
static int counted(void)
{
    uint64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    uint64_t fault = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return fault == 0 || number != fault;
}

static void *held(void *p)
{
    if (p)
        atomic_fetch_add_explicit(&live_bytes, malloc_usable_size(p), memory_order_relaxed);
    return p;
}

void *cpl_alloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || !counted())
        return NULL;
    return held(calloc(bytes ? bytes : 1, 1));
}

static size_t page_bytes(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? (size_t)page : 4096;
}

/* Maps a page for the entry, the block behind it at its alignment, and keeps the whole. */
static void *map_block(size_t bytes, size_t alignment)
{
    size_t page = page_bytes(), total;
    if (alignment < page)
        alignment = page;
    if (bytes >= HUGE_FROM && alignment < HUGE_PAGE)
        alignment = HUGE_PAGE;
    if (__builtin_add_overflow(bytes, page + alignment, &total))
        return NULL;
    char *base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    uintptr_t first = (uintptr_t)base + page;
    char *block = base + page + ((alignment - first % alignment) % alignment);
    if (bytes >= HUGE_FROM)
        madvise(block, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    mapped *entry = (mapped *)(void *)(block - page);
    *entry = (mapped){.block = block, .base = base, .bytes = bytes, .mapped_bytes = total};
    pthread_mutex_lock(&mapped_lock);
    entry->next = mapped_blocks;
    mapped_blocks = entry;
    pthread_mutex_unlock(&mapped_lock);
    atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);
    return block;
}

/* Finds the entry of a mapped block, taking it off the list when asked. Most pointers are not at a
 * page's start and are told apart without the lock. */
static mapped *find_mapped(const void *p, int take)
{
    if ((uintptr_t)p % page_bytes() != 0)
        return NULL;
    pthread_mutex_lock(&mapped_lock);
    mapped **link = &mapped_blocks;
    while (*link && (*link)->block != p)
        link = &(*link)->next;
    mapped *found = *link;
    if (found && take)
        *link = found->next;
    pthread_mutex_unlock(&mapped_lock);
    return found;
}

void *cpl_alloc_aligned(size_t bytes, size_t alignment)
{
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if ((alignment & (alignment - 1)) != 0 || bytes > SIZE_MAX / 2 || !counted())
        return NULL;
    if (bytes >= MAP_FROM)
        return map_block(bytes, alignment);
    void *p = NULL;
    if (posix_memalign(&p, alignment, bytes ? bytes : 1) != 0)
        return NULL;
    memset(p, 0, bytes);
    return held(p);
}

void cpl_release(void *p)
{
    if (!p)
        return;
    mapped *entry = find_mapped(p, 1);
    if (entry) {
        atomic_fetch_sub_explicit(&live_bytes, entry->bytes, memory_order_relaxed);
        munmap(entry->base, entry->mapped_bytes);
        return;
    }
    atomic_fetch_sub_explicit(&live_bytes, malloc_usable_size(p), memory_order_relaxed);
    free(p);
}

void *cpl_resize(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || !counted())
        return NULL;
    if (bytes == 0)
        bytes = 1;
    const mapped *entry = p ? find_mapped(p, 0) : NULL;
    if (entry) { /* rare: a workspace that is resized moves to the heap */
        void *moved = held(malloc(bytes));
        if (moved) {
            memcpy(moved, p, bytes < entry->bytes ? bytes : entry->bytes);
            cpl_release(p);
        }
        return moved;
    }
    size_t before = p ? malloc_usable_size(p) : 0;
    void *moved = realloc(p, bytes);
    if (moved) {
        atomic_fetch_sub_explicit(&live_bytes, before, memory_order_relaxed);
        held(moved);
    }
    return moved;
}

char *cpl_strndup(const char *s, size_t length)
{
    char *copy = length < SIZE_MAX ? cpl_alloc(length + 1, 1) : NULL;
    if (copy && length > 0)
        memcpy(copy, s, length);
    return copy;
}

char *cpl_strdup(const char *s)
{
    return cpl_strndup(s, strlen(s));
}

int cpl_grow(void *array_pointer, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return 0;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed)
        wanted = wanted > SIZE_MAX / 2 ? needed : wanted * 2;
    void *p;
    memcpy(&p, array_pointer, sizeof p); /* array_pointer is a T **; copying keeps aliasing rules */
    p = cpl_resize(p, wanted, size);
    if (!p)
        return -1;
    memcpy(array_pointer, &p, sizeof p);
    *capacity = wanted;
    return 0;
}

uint64_t cpl_memory_allocations(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

uint64_t cpl_memory_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

void cpl_memory_fail_at(uint64_t calls_from_now)
{
    uint64_t now = cpl_memory_allocations();
    atomic_store_explicit(&fail_at, calls_from_now ? now + calls_from_now : 0, memory_order_relaxed);
}
