/* io.h: tensors in files, and the folder of a run. Knows no model.
 *
 * Files are safetensors: 8 bytes of header length, a JSON header padded with spaces, then the bytes of the
 * tensors. Any tool of that ecosystem opens ours; we open theirs after checking every length and offset.
 *
 *   cpl_tensor_file *f;
 *   CPL_TRY(cpl_tensor_file_open(&f, path, err), err, "cannot load the model");
 *   const cpl_tensor_entry *t = cpl_tensor_file_find(f, "encoder.embedding.kernel");
 *   … t->shape, t->data: inside the mapped file, until cpl_tensor_file_close(f) … */
#ifndef CPL_IO_IO_H
#define CPL_IO_IO_H

#include <stddef.h>
#include <stdint.h>
#include "base/log.h"
#include "couplet.h"

/* ---- safetensors: tensor_file.c, tensor_read.c, tensor_write.c ---- */

enum { CPL_TENSOR_RANK = 8 };

typedef enum cpl_dtype {
    CPL_DTYPE_F32,
    CPL_DTYPE_F64,
    CPL_DTYPE_I32,
    CPL_DTYPE_I64,
    CPL_DTYPE_BOOL,
    CPL_DTYPE_U8,
    CPL_DTYPE_BF16,
    CPL_DTYPE_I8
} cpl_dtype;
size_t cpl_dtype_bytes(cpl_dtype dtype);
const char *cpl_dtype_name(cpl_dtype dtype); /* "F32" … as in the file */

typedef struct cpl_tensor_entry {
    const char *name;
    cpl_dtype dtype;
    int rank;                       /* 0 (a scalar) … CPL_TENSOR_RANK */
    int64_t shape[CPL_TENSOR_RANK]; /* a size may be 0 */
    const void *data;               /* aligned to the element; may be NULL when there are no elements */
} cpl_tensor_entry;
uint64_t cpl_tensor_elements(const cpl_tensor_entry *t);

/* UTF-8 text; the value may hold NUL. The key "checksum" is the writer's own: an entry of that name is left out. */
typedef struct cpl_metadata_entry {
    const char *key;
    const char *value;
    size_t length;
} cpl_metadata_entry;

/* What a file holds. */
typedef struct cpl_tensor_set {
    const cpl_tensor_entry *tensors;
    size_t tensor_count;
    const cpl_metadata_entry *metadata;
    size_t metadata_count;
} cpl_tensor_set;

/* Writes atomically. The header lists the tensors in the given order; their bytes lie by falling element size
 * (given order among equals), which keeps each aligned. Adds the metadata entry "checksum". */
cpl_status cpl_tensor_file_write(const char *path, const cpl_tensor_set *set, cpl_error *err);

typedef struct cpl_tensor_file cpl_tensor_file;
/* Maps and checks the file; a checksum in it is verified. A damaged file is CPL_FAILED with the file, what was
 * expected and what was found. */
cpl_status cpl_tensor_file_open(cpl_tensor_file **f, const char *path, cpl_error *err);
void cpl_tensor_file_close(cpl_tensor_file *f); /* NULL is fine */
/* Same checks on bytes in memory (aligned to 8), which must outlive f; name stands for the path in errors. */
cpl_status cpl_tensor_file_parse(cpl_tensor_file **f, const char *name, const uint8_t *bytes, size_t length,
                                 cpl_error *err);
int cpl_tensor_file_verified(const cpl_tensor_file *f); /* 1: it carried a checksum, and it was right */
size_t cpl_tensor_file_count(const cpl_tensor_file *f);
const cpl_tensor_entry *cpl_tensor_file_at(const cpl_tensor_file *f, size_t i);           /* in the header's order */
const cpl_tensor_entry *cpl_tensor_file_find(const cpl_tensor_file *f, const char *name); /* NULL: not there */
size_t cpl_tensor_file_metadata_count(const cpl_tensor_file *f);                          /* "checksum" included */
cpl_metadata_entry cpl_tensor_file_metadata_at(const cpl_tensor_file *f, size_t i);
/* The value (NUL-terminated), or NULL. length may be NULL. */
const char *cpl_tensor_file_metadata(const cpl_tensor_file *f, const char *key, size_t *length);
/* A value that must be a decimal whole number. CPL_FAILED when it is missing or something else. */
cpl_status cpl_tensor_file_metadata_int(const cpl_tensor_file *f, const char *key, int64_t *value, cpl_error *err);

/* ---- rundir.c: the folder of a run ---- */

typedef struct cpl_rundir {
    char *folder;
    char *model;       /* folder/model.safetensors: the best model so far; write with cpl_tensor_file_write */
    char *checkpoint;  /* folder/checkpoint.safetensors: the latest state */
    char *previous;    /* folder/checkpoint.previous.safetensors: the one before */
    char *incoming;    /* folder/checkpoint.new.safetensors: while a checkpoint is being written */
    char *log;         /* folder/log.jsonl */
    char *profile;     /* folder/profile.json: where the time went, if that was asked for */
    int newest_is_bad; /* set by _load: the next save must not push the damaged file over the good one */
} cpl_rundir;

/* Names the paths; touches nothing on disk. */
cpl_status cpl_rundir_new(cpl_rundir **d, const char *folder, cpl_error *err);
void cpl_rundir_free(cpl_rundir *d);                             /* NULL is fine */
cpl_status cpl_rundir_make(const cpl_rundir *d, cpl_error *err); /* creates the folder */
/* 1 when any file of a run is there. */
int cpl_rundir_holds_run(const cpl_rundir *d);
/* CPL_USAGE "'m' already holds a run (epoch 7, step 3200)" with a hint when it does, else CPL_OK. */
cpl_status cpl_rundir_require_empty(const cpl_rundir *d, cpl_error *err);
/* folder/model-STEP.safetensors: a model that is kept beside the best one. The caller frees; NULL without memory. */
char *cpl_rundir_kept(const cpl_rundir *d, int64_t step);
/* Removes kept models: all but the newest `most` of those up to `step`, and those after it, which a run that was set
 * back makes again. */
cpl_status cpl_rundir_prune(const cpl_rundir *d, int64_t most, int64_t step, cpl_error *err);
/* Removes the files of a run (for --overwrite); other files in the folder stay. */
cpl_status cpl_rundir_clear(const cpl_rundir *d, cpl_error *err);

/* Where a run stands; stored in each checkpoint as metadata "epoch", "step", "log_bytes". */
typedef struct cpl_run_position {
    int64_t epoch; /* complete epochs, or what the caller counts */
    int64_t step;
    int64_t log_bytes; /* length of log.jsonl when the checkpoint was made */
} cpl_run_position;

/* Writes a checkpoint and keeps the last one as `previous`. At every moment at least one complete checkpoint
 * exists under one of the two names. The three position entries are added to set's metadata. */
cpl_status cpl_rundir_save(cpl_rundir *d, const cpl_tensor_set *set, cpl_run_position at, cpl_error *err);
/* Opens the newest good checkpoint: *f = NULL and CPL_OK when there is none at all; a damaged newest one is
 * reported as a warning that names it, and the previous one is opened; CPL_FAILED when none is good.
 * The caller closes *f. at may be NULL. */
cpl_status cpl_rundir_load(cpl_rundir *d, cpl_tensor_file **f, cpl_run_position *at, const cpl_log *log,
                           cpl_error *err);

/* ---- run_log.c: log.jsonl ---- */

typedef struct cpl_run_log cpl_run_log;
/* Opens for appending, creating it; an unfinished last line (a killed run) is cut off. */
cpl_status cpl_run_log_open(cpl_run_log **l, const char *path, cpl_error *err);
void cpl_run_log_close(cpl_run_log *l); /* NULL is fine */
/* Appends one JSON object and a line feed in one write. json must not hold a line feed. */
cpl_status cpl_run_log_line(cpl_run_log *l, const char *json, size_t length, cpl_error *err);
int64_t cpl_run_log_bytes(const cpl_run_log *l); /* length of the file now: store it in the checkpoint */
/* Cuts back to the lines that were there when the file had `bytes` bytes (for resume). Shorter: nothing happens. */
cpl_status cpl_run_log_cut(cpl_run_log *l, int64_t bytes, cpl_error *err);

/* ---- npy.c ---- */

/* NumPy's array file, row by row: [rows width], or [rows] where width is 0. type: "<f4" (float) or "<i8" (int64_t).
 * Atomic like cpl_writer; nothing is held in memory unless the path is a pipe or a device. */
typedef struct cpl_npy cpl_npy;
cpl_status cpl_npy_open(cpl_npy **n, const char *path, const char *type, int64_t width, cpl_error *err);
cpl_status cpl_npy_add(cpl_npy *n, const void *data, int64_t rows, cpl_error *err);
cpl_status cpl_npy_commit(cpl_npy *n, cpl_error *err); /* frees n in either case */
void cpl_npy_abandon(cpl_npy *n);                      /* leaves no file; NULL is fine */

#endif
