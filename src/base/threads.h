/* threads.h: one pool of threads for everything that computes.
 *
 * cpl_pool_run deals tasks 0 … n-1 dynamically to the pool's threads, the caller included, and returns
 * when all are done. Results must not depend on which thread ran a task: cut work by shape, never by
 * the number of threads. A run inside a task is done in place, by the task's thread; runs of several
 * callers follow one another. Between runs that follow each other closely, threads spin briefly, then sleep. */
#ifndef CPL_BASE_THREADS_H
#define CPL_BASE_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include "couplet.h"

typedef struct cpl_pool cpl_pool;

/* thread is 0 … cpl_pool_threads-1: index of per-thread scratch. */
typedef void (*cpl_task)(void *arguments, int64_t task, int thread);

/* threads 0: the processors this process may use (affinity and cgroup quota), at least 1. Stacks are 256 KiB each. */
cpl_status cpl_pool_new(cpl_pool **pool, int threads, cpl_error *err);
void cpl_pool_free(cpl_pool *pool);
int cpl_pool_threads(const cpl_pool *pool);
void cpl_pool_run(cpl_pool *pool, int64_t tasks, cpl_task task, void *arguments);
int cpl_processors(void);

/* For measuring: each thread but the caller (1 …) tells of every stretch of a run in which it computed, and thread 0,
 * the caller, of every stretch in which it waited for the others; from … to in cpl_clock_ns, before the run returns.
 * NULL: nothing is measured. Never from inside a task. */
typedef void (*cpl_pool_watcher)(void *user, int thread, int64_t from, int64_t to);
void cpl_pool_watch(cpl_pool *pool, cpl_pool_watcher watcher, void *user);

#endif
