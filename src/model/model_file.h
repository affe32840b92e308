/* model_file.h: a model is ONE safetensors file: weights under their parameter paths (float32, or what stored.h says
 * of a file of `couplet quantize`: metadata "weights" is then int8 or bfloat16, the version 2), and in its metadata
 * all that else makes it a model: format, format_version, version (of the program that wrote it), type, config
 * (effective options), source_vocabulary and target_vocabulary (JSON: an array; of subwords an object with the model; a
 * target that shares the source's is "source"), history (JSON array: what each
 * validation gave), longest_target, epoch, step. A checkpoint is the same file with more: tensors under "optimizer."
 * and the metadata entry "state"; it opens as a model too.
 *
 *   cpl_model_file *f;
 *   CPL_TRY(cpl_model_file_open(&f, path, err), err, "cannot load the model");
 *   … compile the kind's functions with f->config and the vocabularies' sizes …
 *   CPL_TRY(cpl_model_file_load_parameters(f, program->engine->parameters, err), err, "cannot load the model"); */
#ifndef CPL_MODEL_MODEL_FILE_H
#define CPL_MODEL_MODEL_FILE_H

#include "config/config.h"
#include "graph/parameters.h"
#include "io/io.h"
#include "model/model.h"
#include "model/stored.h"
#include "text/text.h"

/* Version 2: weights in a lower type. All other files are of version 1, so that earlier programs read them. */
enum { CPL_MODEL_FORMAT_VERSION = 1, CPL_MODEL_FORMAT_LATEST = 2 };

/* ---- reading ---- */

typedef struct cpl_model_file {
    cpl_tensor_file *tensors;
    cpl_config *config;
    cpl_vocabulary *source, *target; /* one object where the model has one */
    cpl_model_sizes sizes;           /* for compiling: config and the vocabularies' sizes */
    const cpl_model_kind *kind;
    int64_t longest_target;          /* tokens of the longest training target, without START and END */
    int64_t step, epoch;             /* whose weights these are: updates, and the epoch (from 1) they fell in */
    const char *version, *type;      /* inside the file, as is history */
    const char *history;             /* JSON array: {"epoch", "step", "loss", "accuracy", "val_loss", "val_accuracy"} */
    size_t history_length;
    int is_checkpoint;
    cpl_weight_type weights;         /* of its matrices */
    const char *part;                /* what `extract` took: the file has those tensors alone; NULL: a whole model */
} cpl_model_file;

/* Opens and checks: a right checksum, our format, a version of it that is known, sound options and vocabularies. */
cpl_status cpl_model_file_open(cpl_model_file **f, const char *path, cpl_error *err);
/* The same with tensors that are open already; name is for errors. Takes them over, on failure too. */
cpl_status cpl_model_file_take(cpl_model_file **f, cpl_tensor_file *tensors, const char *name, cpl_error *err);
void cpl_model_file_close(cpl_model_file *f); /* NULL is fine */

/* Copies the weights into p, matched by full name, never by order (H01). All that is missing, left over or of another
 * shape is told in one error with named dimensions (H02), and then nothing was copied. */
cpl_status cpl_model_file_load_parameters(const cpl_model_file *f, cpl_parameters *p, cpl_error *err);
/* The same for a part (NULL: everything), into those parameters alone; `table` gets a line for each of its tensors:
 * loaded, missing, unused or mismatched, with names and shapes. What does not fit is CPL_USAGE; nothing is loaded. */
cpl_status cpl_model_file_load_part(const cpl_model_file *f, const char *part, cpl_parameters *p, cpl_str *table,
                                    cpl_error *err);
/* For what needs float32: a file of lower weights is CPL_USAGE. what: "training", "an average"; name: of the file. */
cpl_status cpl_model_file_need_float32(const cpl_model_file *f, const char *name, const char *what, cpl_error *err);
/* As load_parameters, for float32 tensors that stand under prefix + path, into block: all, laid out like the values
 * (wanted NULL); or only parameters for which wanted() says 1, laid out by their slots. */
cpl_status cpl_model_file_load_block(const cpl_tensor_file *t, const char *prefix, const cpl_parameters *p,
                                     int (*wanted)(const cpl_parameter_info *info), real *block, cpl_error *err);

/* ---- writing ---- */

/* What is written, collected once for a run; only the numbers and the history change from file to file. */
typedef struct cpl_model_set cpl_model_set;

typedef struct cpl_model_facts {
    const cpl_config *config;
    const cpl_vocabulary *source, *target;
    const cpl_parameters *parameters; /* with values */
    int64_t longest_target;
} cpl_model_facts;

/* Everything in facts must outlive the set. */
cpl_status cpl_model_set_new(cpl_model_set **s, const cpl_model_facts *facts, cpl_error *err);
void cpl_model_set_free(cpl_model_set *s); /* NULL is fine */
/* For checkpoints: tensors prefix + path with the values of block (laid out as for load_block); these follow the
 * weights in every checkpoint, and never stand in a model. */
cpl_status cpl_model_set_add_block(cpl_model_set *s, const char *prefix, const real *block,
                                   int (*wanted)(const cpl_parameter_info *info), cpl_error *err);
/* The set for cpl_tensor_file_write (state NULL: a model) or cpl_rundir_save (a checkpoint: state is its JSON; epoch
 * and step are then rundir's to add). Valid until the next call. */
cpl_tensor_set cpl_model_set_view(cpl_model_set *s, int64_t epoch, int64_t step, const char *history,
                                  const char *state);
size_t cpl_model_set_bytes(const cpl_model_set *s); /* memory held */
/* Memory that writing takes for a moment: the header as a tree and as text. */
size_t cpl_model_set_write_bytes(const cpl_model_set *s);

#endif
