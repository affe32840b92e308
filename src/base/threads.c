/* threads.c: the pool.
 *
 * A run is one number, `left`: how many tasks nobody has taken yet. A thread takes a task by lowering it
 * with compare-and-swap while it is above zero. Whoever succeeded holds the run open until it reports,
 * so the run's fields may be read after taking; a thread that comes late finds zero and touches nothing.
 * Hence no barrier: a run never waits for a thread that was not scheduled in time to help.
 *
 * Waiting is spin, then yield, then sleep, since the machine is shared and runs follow each other closely.
 * A sleeper announces itself before it looks at the state a last time, and the waker changes the state
 * before it looks for sleepers; both sides are sequentially consistent, so one of them sees the other. */
#include "base/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

enum { STACK_BYTES = 256 * 1024, THREADS_MAX = 1024, SPIN_ROUNDS = 64, SPIN_NS = 20000, YIELD_NS = 150000 };

typedef struct worker {
    cpl_pool *pool;
    pthread_t id;
    int index;
} worker;

struct cpl_pool {
    int threads, started; /* started: workers with a thread behind them; the caller is thread 0 */
    int spins;            /* 0 when there are more threads than processors: spinning would block them */
    worker *workers;
    pthread_mutex_t turn; /* held by the caller whose run it is */
    pthread_mutex_t lock; /* guards sleeping, nothing else */
    pthread_cond_t work, done;
    cpl_pool_watcher watcher; /* read by whoever has taken a task of a run, or waits for its end */
    void *watch_user;
    /* the run */
    cpl_task task;
    void *arguments;
    int64_t tasks;
    _Alignas(64) atomic_int_fast64_t left;
    _Alignas(64) atomic_int_fast64_t unfinished;
    _Alignas(64) atomic_int sleepers;
    atomic_int caller_sleeps;
    atomic_int quit;
};

/* Which pool this thread is computing for, so that a run inside a task is done in place. */
static _Thread_local const cpl_pool *inside;
static _Thread_local int inside_index;

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

typedef int (*condition)(cpl_pool *p);

static int has_work(cpl_pool *p)
{
    return atomic_load(&p->left) > 0 || atomic_load(&p->quit);
}

static int is_done(cpl_pool *p)
{
    return atomic_load(&p->unfinished) == 0;
}

/* 1 when the condition came true while spinning or yielding; 0: time to sleep. */
static int wait_awake(cpl_pool *p, condition ready)
{
    int64_t start = cpl_clock_ns(), waited = 0;
    while (waited < YIELD_NS) {
        if (p->spins && waited < SPIN_NS) {
            for (int i = 0; i < SPIN_ROUNDS; i++) {
                if (ready(p))
                    return 1;
                relax();
            }
        } else {
            if (ready(p))
                return 1;
            sched_yield();
        }
        waited = cpl_clock_ns() - start;
    }
    return ready(p);
}

/* Takes tasks until none is left. Reports once at the end: until then the run cannot close, so all
 * tasks taken here belong to it, and its watcher stays the same. */
static void work_off(cpl_pool *p, int index)
{
    int64_t finished = 0, begun = 0;
    int_fast64_t left = atomic_load(&p->left);
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&p->left, &left, left - 1))
            continue;
        if (finished == 0 && index > 0 && p->watcher)
            begun = cpl_clock_ns();
        p->task(p->arguments, p->tasks - left, index);
        finished++;
        left = atomic_load(&p->left);
    }
    if (finished > 0 && index > 0 && p->watcher)
        p->watcher(p->watch_user, index, begun, cpl_clock_ns());
    if (finished > 0 && atomic_fetch_sub(&p->unfinished, finished) == finished &&
        atomic_load(&p->caller_sleeps)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->done);
        pthread_mutex_unlock(&p->lock);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    cpl_pool *p = w->pool;
    inside = p;
    inside_index = w->index;
    while (!atomic_load(&p->quit)) {
        work_off(p, w->index);
        if (wait_awake(p, has_work))
            continue;
        pthread_mutex_lock(&p->lock);
        atomic_fetch_add(&p->sleepers, 1);
        while (!has_work(p))
            pthread_cond_wait(&p->work, &p->lock);
        atomic_fetch_sub(&p->sleepers, 1);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* Wakes as many sleepers as there is work for. */
static void wake(cpl_pool *p, int64_t wanted)
{
    int sleepers = atomic_load(&p->sleepers);
    if (sleepers == 0)
        return;
    pthread_mutex_lock(&p->lock);
    if (wanted >= sleepers)
        pthread_cond_broadcast(&p->work);
    else
        for (int64_t i = 0; i < wanted; i++)
            pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void wait_done(cpl_pool *p)
{
    if (is_done(p))
        return;
    int64_t begun = p->watcher ? cpl_clock_ns() : 0;
    if (!wait_awake(p, is_done)) {
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->caller_sleeps, 1);
        while (!is_done(p))
            pthread_cond_wait(&p->done, &p->lock);
        atomic_store(&p->caller_sleeps, 0);
        pthread_mutex_unlock(&p->lock);
    }
    if (p->watcher)
        p->watcher(p->watch_user, 0, begun, cpl_clock_ns());
}

void cpl_pool_watch(cpl_pool *p, cpl_pool_watcher watcher, void *user)
{
    pthread_mutex_lock(&p->turn);
    p->watcher = watcher;
    p->watch_user = user;
    pthread_mutex_unlock(&p->turn);
}

void cpl_pool_run(cpl_pool *p, int64_t tasks, cpl_task task, void *arguments)
{
    if (inside == p) { /* a run inside a task of the same pool */
        for (int64_t i = 0; i < tasks; i++)
            task(arguments, i, inside_index);
        return;
    }
    const cpl_pool *outer = inside;
    int outer_index = inside_index;
    pthread_mutex_lock(&p->turn);
    inside = p;
    inside_index = 0;
    if (p->threads == 1 || tasks <= 1) {
        for (int64_t i = 0; i < tasks; i++)
            task(arguments, i, 0);
    } else {
        p->task = task;
        p->arguments = arguments;
        p->tasks = tasks;
        atomic_store(&p->unfinished, tasks);
        atomic_store(&p->left, tasks);
        wake(p, tasks - 1);
        work_off(p, 0);
        wait_done(p);
    }
    inside = outer;
    inside_index = outer_index;
    pthread_mutex_unlock(&p->turn);
}

/* Workers leave signals to the program's own threads and have small stacks: with many of them, default
 * stacks would fill the address space that a container may limit. */
static int start_workers(cpl_pool *p)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < p->threads && !error; i++) {
        worker *w = &p->workers[i - 1];
        w->pool = p;
        w->index = i;
        error = pthread_create(&w->id, &attributes, work, w);
        p->started += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

cpl_status cpl_pool_new(cpl_pool **pool, int threads, cpl_error *err)
{
    *pool = NULL;
    if (threads < 0 || threads > THREADS_MAX)
        CPL_FAIL(err, CPL_USAGE, "threads is %d, expected 0 to %d" CPL_HINT "0 uses every processor", threads,
                 THREADS_MAX);
    int processors = cpl_processors();
    if (threads == 0)
        threads = processors < THREADS_MAX ? processors : THREADS_MAX;
    cpl_pool *p = cpl_alloc_aligned(sizeof *p, _Alignof(cpl_pool));
    worker *workers = cpl_alloc((size_t)threads, sizeof *workers);
    if (!p || !workers) {
        cpl_release(p);
        cpl_release(workers);
        CPL_FAIL(err, CPL_FAILED, "no memory for a pool of %d threads", threads);
    }
    p->threads = threads;
    p->workers = workers;
    p->spins = threads <= processors;
    pthread_mutex_init(&p->turn, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    int error = start_workers(p);
    if (error) {
        int started = p->started;
        cpl_pool_free(p);
        CPL_FAIL(err, CPL_FAILED, "cannot start thread %d of %d: %s", started + 1, threads,
                 error == EAGAIN ? "the system's limit on threads is reached" : cpl_reason(error));
    }
    *pool = p;
    return CPL_OK;
}

void cpl_pool_free(cpl_pool *p)
{
    if (!p)
        return;
    atomic_store(&p->quit, 1);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->workers[i].id, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->turn);
    cpl_release(p->workers);
    cpl_release(p);
}

int cpl_pool_threads(const cpl_pool *pool)
{
    return pool->threads;
}
