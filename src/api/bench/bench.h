/* bench.h: the inside of cpl_bench_run. Every measurement is a row of figures, shown with its share of the peak.
 *
 *   bench.c    which works, in which order        peak.c     what the processor can do
 *   timing.c   the one loop that times            work.c     lengths and ids of a work
 *   step.c     training steps                     decode.c   greedy decoding
 *   kernels.c  products alone                     growth.c   how time and memory grow
 *   show.c     the table                          json.c     the same as JSON */
#ifndef CPL_API_BENCH_BENCH_H
#define CPL_API_BENCH_BENCH_H

#include "base/str.h"
#include "config/config.h"
#include "graph/program.h"
#include "model/model.h"

enum { CPL_BENCH_NAME = 48, CPL_BENCH_READINGS = 3 };

/* What was measured. A figure that a row does not have is 0. */
typedef struct cpl_bench_row {
    char work[CPL_BENCH_NAME];      /* "translator", "decode", "kernel", "growth" … */
    char name[CPL_BENCH_NAME];      /* kernel: the product; growth: what grows: "batch", "source", "target" */
    char precision[CPL_BENCH_NAME]; /* of products (training, kernels), or of weights (decode) */
    int64_t batch, units, vocabulary, parameters;
    int64_t tokens;             /* decode: of each output */
    int64_t size;               /* growth: the value */
    int64_t m, k, n;            /* kernel */
    int64_t steps;              /* timed */
    double ms, ms_least, ms_most; /* of a step: the median … */
    double cpu_ms;              /* processor time of a step, the mean */
    double tokens_per_s;        /* that exist: of targets; autoencoder: of sources */
    double operations;          /* of a step, the mean */
    double step_us, step_bytes; /* decode of one sentence: a step without encoding, and the bytes of weights it reads */
    double read_rate;           /* bytes a second, of the same number of bytes by the same threads, read alone */
    uint64_t planned_bytes;     /* of the program's block */
    uint64_t state_bytes;       /* training: weights, gradients, moments */
    uint64_t base_bytes;        /* of the process before the work, in memory */
    uint64_t peak_bytes;        /* the most of it while the work ran */
    double setup_s;             /* from nothing to the end of the first step */
    double first_step_s;        /* the same from the start of the process; of its first work alone */
    double first_loss, last_loss;
} cpl_bench_row;

/* Bytes a second of reading so many bytes in all, by one thread and by all. */
typedef struct cpl_bench_reading {
    const char *level; /* "L2", "L3", "memory" */
    int64_t bytes_one, bytes_all;
    double one, all;
} cpl_bench_reading;

typedef struct cpl_bench_peak {
    double float32_one, float32_all; /* operations a second */
    double bfloat16_one, bfloat16_all;
    cpl_bench_reading reading[CPL_BENCH_READINGS];
    int readings;
} cpl_bench_peak;

typedef struct cpl_bench {
    const cpl_bench_options *options;
    cpl_engine *engine; /* pool and kernels of peak.c and kernels.c */
    double seconds;     /* of each measurement */
    double started;     /* of the work at hand */
    cpl_bench_peak peak;
    cpl_bench_row *rows;
    size_t count, capacity;
    int64_t *lengths; /* of the option: pairs, source and target; NULL: drawn */
    int64_t length_count;
} cpl_bench;

/* ---- bench.c ---- */

/* A row that stays where it is until the next is added; NULL without memory. */
cpl_bench_row *cpl_bench_add(cpl_bench *b, const char *work, cpl_error *err);
void cpl_bench_tell(const cpl_bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The defaults of a kind of model with the user's keys. */
cpl_status cpl_bench_config(const cpl_bench *b, const char *type, cpl_config **config, cpl_error *err);

/* ---- timing.c ---- */

double cpl_bench_now(void);
typedef struct cpl_bench_done {
    double tokens, operations; /* of one step */
} cpl_bench_done;
typedef cpl_status (*cpl_bench_step)(void *user, int64_t number, cpl_bench_done *done, cpl_error *err);
/* Runs a few steps untimed, then as many as the options say, and fills in times, tokens and operations. */
cpl_status cpl_bench_time(const cpl_bench *b, cpl_bench_step step, void *user, cpl_bench_row *row, cpl_error *err);
/* From now on the peak memory of the process is counted anew, where the system can. Returns what is in memory now. */
uint64_t cpl_bench_forget_peak(void);

/* ---- peak.c ---- */

cpl_status cpl_bench_measure_peak(cpl_bench *b, cpl_error *err);
/* Bytes a second of reading `bytes` bytes in all, each thread its part, again and again. 0: no memory. */
double cpl_bench_read_rate(const cpl_bench *b, int64_t bytes, int threads);
/* Operations a second that a row is compared with. */
double cpl_bench_limit(const cpl_bench *b, const cpl_bench_row *row);

/* ---- work.c ---- */

typedef struct cpl_bench_work {
    const char *name;       /* the model's type too */
    int64_t batch, vocabulary;
    int64_t width[2];       /* of the rectangles that ids are numbered by */
    int64_t batches;        /* after as many, the first comes again */
    int64_t *lengths, count; /* pairs */
    int32_t *ids[3];
    const int32_t **rows[3]; /* of the batch at hand: sources; targets in START w1 …; targets out … END */
    int64_t *length[2];
} cpl_bench_work;

/* fixed: lengths of all sources and of all targets; NULL: as the work and the options say. batch 0: the work's own. */
cpl_status cpl_bench_work_new(cpl_bench_work **w, const cpl_bench *b, const char *name, int64_t batch,
                              const int64_t fixed[2], cpl_error *err);
void cpl_bench_work_free(cpl_bench_work *w);
void cpl_bench_fill(cpl_bench_work *w, int64_t batch);
/* What the largest batches need, in a program of the work's model. */
cpl_binding cpl_bench_capacity(const cpl_bench_work *w, const cpl_program *p);

/* ---- the works ---- */

cpl_status cpl_bench_train(cpl_bench *b, cpl_bench_work *w, cpl_bench_row *row, cpl_error *err);
cpl_status cpl_bench_decode(cpl_bench *b, cpl_error *err);
cpl_status cpl_bench_kernels(cpl_bench *b, cpl_error *err);
cpl_status cpl_bench_growth(cpl_bench *b, cpl_error *err);

/* ---- show.c, json.c ---- */

void cpl_bench_show(const cpl_bench *b, cpl_str *to);
cpl_status cpl_bench_write_json(const cpl_bench *b, cpl_str *to, cpl_error *err);

#endif
