/* batcher.c: batches as pointers into the data set's rows.
 *
 * Filling a batch is a few pointers for each pair; the costly part is the order of a pass (shuffle and sort). A thread
 * of its own prepares the next pass's order while the present one is used, a whole pass ahead, so that no step waits
 * for it. Both threads call the same pure function: the batches do not depend on whether there is a thread. */
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/order.h"

enum { STACK_BYTES = 256 * 1024, NO_PASS = -1 };

struct cpl_batcher {
    cpl_order order; /* used by whoever makes an order; never by two at once */
    int64_t pass, index;       /* of the next batch */
    uint32_t *present, *ahead; /* orders of `loaded` and of `ready` */
    int64_t *present_starts, *ahead_starts; /* where their batches begin; NULL: batch_size each */
    int64_t loaded;
    cpl_batch batch;
    /* the arrays that batch shows */
    const int32_t **source, **target_in, **target_out, **copy;
    int64_t *source_length, *target_length, *pair;
    /* the thread: it makes the order of `wanted`, then sets `ready` and clears `wanted` */
    pthread_t thread;
    int has_thread, quit;
    int64_t wanted, ready;
    cpl_batcher_watcher watcher;
    void *watch_user;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
};

static void *prepare(void *argument)
{
    cpl_batcher *b = argument;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->quit && b->wanted == NO_PASS)
            pthread_cond_wait(&b->work, &b->lock);
        if (b->quit)
            break;
        int64_t pass = b->wanted, begun = cpl_clock_ns();
        pthread_mutex_unlock(&b->lock);
        cpl_order_make(&b->order, pass, b->ahead, b->ahead_starts);
        pthread_mutex_lock(&b->lock);
        if (b->watcher)
            b->watcher(b->watch_user, pass, begun, cpl_clock_ns());
        b->ready = pass;
        b->wanted = NO_PASS;
        pthread_cond_signal(&b->done);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Without a thread (none to be had, or none wanted) passes are prepared when they begin. Signals are for others. */
static void start_thread(cpl_batcher *b)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    b->has_thread = pthread_create(&b->thread, &attributes, prepare, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static void stop_thread(cpl_batcher *b)
{
    if (!b->has_thread)
        return;
    pthread_mutex_lock(&b->lock);
    b->quit = 1;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
}

static cpl_status allocate(cpl_batcher *b, cpl_error *err)
{
    size_t rows = (size_t)b->order.count, width = (size_t)b->order.width, starts = (size_t)b->order.batches + 1;
    int has_starts = b->order.cuts != NULL;
    b->present = cpl_alloc(rows, sizeof *b->present);
    b->ahead = cpl_alloc(b->order.shuffle ? rows : 1, sizeof *b->ahead);
    b->source = cpl_alloc(width, sizeof *b->source);
    b->target_in = cpl_alloc(width, sizeof *b->target_in);
    b->target_out = cpl_alloc(width, sizeof *b->target_out);
    b->copy = cpl_alloc(b->order.rows->copy ? width : 1, sizeof *b->copy);
    b->source_length = cpl_alloc(width, sizeof *b->source_length);
    b->target_length = cpl_alloc(width, sizeof *b->target_length);
    b->pair = cpl_alloc(width, sizeof *b->pair);
    b->present_starts = has_starts ? cpl_alloc(starts, sizeof *b->present_starts) : NULL;
    b->ahead_starts = has_starts ? cpl_alloc(b->order.shuffle ? starts : 1, sizeof *b->ahead_starts) : NULL;
    if (!b->present || !b->ahead || (has_starts && (!b->present_starts || !b->ahead_starts)) || !b->source ||
        !b->target_in || !b->target_out || !b->copy || !b->source_length || !b->target_length || !b->pair)
        CPL_FAIL(err, CPL_FAILED, "no memory for batches of %zu pairs", width);
    b->batch.source = b->source;
    b->batch.target_in = b->target_in;
    b->batch.target_out = b->target_out;
    b->batch.copy = b->order.rows->copy ? b->copy : NULL;
    b->batch.source_length = b->source_length;
    b->batch.target_length = b->target_length;
    b->batch.pair = b->pair;
    return CPL_OK;
}

cpl_status cpl_batcher_new(cpl_batcher **b, const cpl_rows *rows, const cpl_batcher_options *options, cpl_error *err)
{
    *b = NULL;
    if (rows->count < 1 || (options->batch_size < 1 && options->batch_tokens < 1))
        CPL_FAIL(err, CPL_USAGE, "cannot make batches of %lld from %lld pairs", (long long)options->batch_size,
                 (long long)rows->count);
    cpl_batcher *n = cpl_alloc(1, sizeof *n);
    if (!n)
        CPL_FAIL(err, CPL_FAILED, "no memory for batches");
    n->loaded = n->wanted = n->ready = NO_PASS;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->work, NULL);
    pthread_cond_init(&n->done, NULL);
    cpl_status status = cpl_order_init(&n->order, rows, options, err);
    if (status == CPL_OK)
        status = allocate(n, err);
    if (status != CPL_OK) {
        cpl_batcher_free(n);
        return status;
    }
    if (options->shuffle && !options->no_thread)
        start_thread(n);
    *b = n;
    return CPL_OK;
}

void cpl_batcher_free(cpl_batcher *b)
{
    if (!b)
        return;
    stop_thread(b);
    pthread_cond_destroy(&b->done);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->lock);
    cpl_order_free(&b->order);
    cpl_release(b->present);
    cpl_release(b->ahead);
    cpl_release(b->present_starts);
    cpl_release(b->ahead_starts);
    cpl_release(b->source);
    cpl_release(b->target_in);
    cpl_release(b->target_out);
    cpl_release(b->copy);
    cpl_release(b->source_length);
    cpl_release(b->target_length);
    cpl_release(b->pair);
    cpl_release(b);
}

/* Makes `present` the order of the pass, and has the one after it prepared. */
static void load(cpl_batcher *b)
{
    if (!b->order.shuffle && b->loaded != NO_PASS) {
        b->loaded = b->pass; /* always the same order */
        return;
    }
    if (!b->has_thread) {
        cpl_order_make(&b->order, b->pass, b->present, b->present_starts);
        b->loaded = b->pass;
        return;
    }
    pthread_mutex_lock(&b->lock);
    while (b->wanted != NO_PASS)
        pthread_cond_wait(&b->done, &b->lock);
    if (b->ready == b->pass) {
        uint32_t *t = b->present;
        int64_t *starts = b->present_starts;
        b->present = b->ahead, b->present_starts = b->ahead_starts;
        b->ahead = t, b->ahead_starts = starts;
    } else { /* the first pass, or a seek to another one: the thread is idle, its scratch is free */
        cpl_order_make(&b->order, b->pass, b->present, b->present_starts);
    }
    b->loaded = b->pass;
    b->ready = NO_PASS;
    b->wanted = b->pass + 1;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
}

void cpl_batcher_watch(cpl_batcher *b, cpl_batcher_watcher watcher, void *user)
{
    pthread_mutex_lock(&b->lock);
    b->watcher = watcher;
    b->watch_user = user;
    pthread_mutex_unlock(&b->lock);
}

/* Where batch i begins in the present pass; of the number of batches: where the last one ends. */
static int64_t start_of(const cpl_batcher *b, int64_t i)
{
    int64_t at = b->present_starts ? b->present_starts[i] : i * b->order.batch_size;
    return at < b->order.count ? at : b->order.count;
}

static void fill(cpl_batcher *b)
{
    const cpl_rows *rows = b->order.rows;
    int64_t first = start_of(b, b->index);
    cpl_batch *batch = &b->batch;
    batch->pairs = start_of(b, b->index + 1) - first;
    batch->source_tokens = batch->target_tokens = 0;
    for (int64_t i = 0; i < batch->pairs; i++) {
        int64_t at = b->present[first + i];
        const cpl_row *row = &rows->items[at];
        b->source[i] = rows->ids + row->offset;
        b->target_in[i] = b->source[i] + row->source;
        b->target_out[i] = b->target_in[i] + 1;
        if (rows->copy) {
            b->copy[i] = cpl_row_copy(rows, at);
            b->target_out[i] = b->copy[i] + row->source + 1;
        }
        b->source_length[i] = row->source;
        b->target_length[i] = row->target - 1;
        b->pair[i] = at;
        batch->source_tokens += row->source;
        batch->target_tokens += row->target - 1;
    }
}

const cpl_batch *cpl_batcher_next(cpl_batcher *b)
{
    if (b->index == b->order.batches) {
        b->pass++;
        b->index = 0;
    }
    if (b->loaded != b->pass)
        load(b);
    fill(b);
    b->batch.pass = b->pass;
    b->batch.index = b->index++;
    return &b->batch;
}

int64_t cpl_batcher_batches(const cpl_batcher *b)
{
    return b->order.batches;
}

void cpl_batcher_position(const cpl_batcher *b, int64_t *pass, int64_t *index)
{
    *pass = b->pass;
    *index = b->index;
}

cpl_status cpl_batcher_seek(cpl_batcher *b, int64_t pass, int64_t index, cpl_error *err)
{
    if (pass < 0 || pass == INT64_MAX || index < 0 || index > b->order.batches)
        CPL_FAIL(err, CPL_FAILED, "cannot go to batch %lld of pass %lld: a pass has %lld batches", (long long)index,
                 (long long)pass, (long long)b->order.batches);
    b->pass = pass;
    b->index = index;
    return CPL_OK;
}

const cpl_batch_capacity *cpl_batcher_capacity(const cpl_batcher *b)
{
    return &b->order.most;
}

uint64_t cpl_batcher_bytes(const cpl_batcher *b)
{
    uint64_t starts = b->present_starts ? (uint64_t)(b->order.batches + 1) * sizeof *b->present_starts : 0;
    uint64_t orders = ((uint64_t)b->order.count * sizeof *b->present + starts) * (b->order.shuffle ? 2 : 1);
    uint64_t arrays = (uint64_t)b->order.width * ((b->batch.copy ? 4 : 3) * sizeof *b->source + 3 * sizeof *b->pair);
    return sizeof *b + cpl_order_bytes(&b->order) + orders + arrays + (b->has_thread ? STACK_BYTES : 0);
}
