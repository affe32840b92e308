/* average.c: cpl_average_models: one model from the weights of several, as a rule the last ones of one run. Averaging
 * goes by tensor name; sums are in double, in the order of the models. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/model.h"
#include "base/error.h"
#include "base/memory.h"

/* All are open at a time, mapped. */
enum { MOST = 64 };

typedef struct averaging {
    const char *const *names; /* as the caller gave them */
    cpl_model_file **files;
    int count;
    cpl_tensor_entry *tensors;
    cpl_metadata_entry *metadata;
    size_t tensor_count, metadata_count;
    float *values; /* of all tensors */
    cpl_str history;
    char step[24], epoch[24], longest[24];
} averaging;

/* ---- what must agree ---- */

/* Keys that change what weights mean. The rest of model.* is for training; sizes of vocabularies show in tensors. */
static int matters(const char *key)
{
    static const char *const training_only[] = {"model.coverage", "model.recurrent_initializer"};
    static const char *const others[] = {"text.source.tokens", "text.source.standardize", "text.target.tokens",
                                         "text.target.standardize", "data.swap"};
    for (size_t i = 0; i < sizeof training_only / sizeof *training_only; i++)
        if (strcmp(key, training_only[i]) == 0)
            return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(key, others[i]) == 0)
            return 1;
    return strncmp(key, "model.", 6) == 0 && strncmp(key, "model.dropout.", 14) != 0;
}

static cpl_status same_options(const averaging *a, int i, cpl_error *err)
{
    cpl_config_differences list;
    cpl_status status = cpl_config_compare(a->files[0]->config, a->files[i]->config, &list, err);
    if (status != CPL_OK)
        return status;
    for (size_t k = 0; status == CPL_OK && k < list.count; k++)
        if (matters(list.items[k].key))
            status = cpl_error_set(err, CPL_USAGE, "'%s' and '%s' are different models: '%s' is %s and %s", a->names[0],
                                   a->names[i], list.items[k].key, list.items[k].before, list.items[k].after);
    cpl_config_differences_free(&list);
    return status;
}

/* By content and order: ids must mean the same words. */
static cpl_status same_vocabulary(const averaging *a, int i, const char *side, const cpl_vocabulary *x,
                                  const cpl_vocabulary *y, cpl_error *err)
{
    int64_t n = cpl_vocabulary_size(x), m = cpl_vocabulary_size(y), id = cpl_vocabulary_first_difference(x, y);
    size_t length[2];
    char shown[2][80];
    if (n != m)
        CPL_FAIL(err, CPL_USAGE, "'%s' and '%s' have different %s vocabularies: %" PRId64 " and %" PRId64 " entries",
                 a->names[0], a->names[i], side, n, m);
    if (id == n)
        return CPL_OK;
    const char *one = cpl_vocabulary_token(x, id, &length[0]), *other = cpl_vocabulary_token(y, id, &length[1]);
    cpl_escape(shown[0], sizeof shown[0], one, length[0]);
    cpl_escape(shown[1], sizeof shown[1], other, length[1]);
    CPL_FAIL(err, CPL_USAGE, "'%s' and '%s' have different %s vocabularies: entry %" PRId64 " is '%s' and '%s'",
             a->names[0], a->names[i], side, id, shown[0], shown[1]);
}

static const char *part_of(const cpl_model_file *f)
{
    return f->part ? f->part : "the whole model";
}

static cpl_status agree(const averaging *a, int i, cpl_error *err)
{
    const cpl_model_file *x = a->files[0], *y = a->files[i];
    if (strcmp(part_of(x), part_of(y)) != 0)
        CPL_FAIL(err, CPL_USAGE, "'%s' and '%s' hold different parts: %s and %s", a->names[0], a->names[i], part_of(x),
                 part_of(y));
    cpl_status status = same_options(a, i, err);
    if (status == CPL_OK)
        status = same_vocabulary(a, i, "source", x->source, y->source, err);
    if (status == CPL_OK)
        status = same_vocabulary(a, i, "target", x->target, y->target, err);
    return status;
}

/* ---- tensors ---- */

/* A checkpoint's optimizer is no part of a model. */
static int is_weight(const cpl_tensor_entry *t)
{
    return strncmp(t->name, "optimizer.", 10) != 0;
}

static size_t count_weights(const cpl_model_file *f)
{
    size_t n = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(f->tensors); i++)
        n += (size_t)is_weight(cpl_tensor_file_at(f->tensors, i));
    return n;
}

static int same_shape(const cpl_tensor_entry *x, const cpl_tensor_entry *y)
{
    return y && x->dtype == CPL_DTYPE_F32 && y->dtype == CPL_DTYPE_F32 && x->rank == y->rank &&
           memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0;
}

/* The mean of the tensor of this name over all files. */
static cpl_status mean(const averaging *a, const cpl_tensor_entry *t, float *to, cpl_error *err)
{
    const float *from[MOST];
    for (int i = 0; i < a->count; i++) {
        const cpl_tensor_entry *other = cpl_tensor_file_find(a->files[i]->tensors, t->name);
        if (!same_shape(t, other))
            CPL_FAIL(err, CPL_USAGE, "'%s' of '%s' is %s in '%s'", t->name, a->names[0],
                     other ? "of another shape or type" : "missing", a->names[i]);
        from[i] = other->data;
    }
    for (uint64_t k = 0; k < cpl_tensor_elements(t); k++) {
        double sum = 0;
        for (int i = 0; i < a->count; i++)
            sum += (double)from[i][k];
        to[k] = (float)(sum / a->count);
    }
    return CPL_OK;
}

static cpl_status average_tensors(averaging *a, cpl_error *err)
{
    const cpl_tensor_file *first = a->files[0]->tensors;
    uint64_t elements = 0, at = 0;
    for (size_t i = 0; i < cpl_tensor_file_count(first); i++)
        elements += cpl_tensor_elements(cpl_tensor_file_at(first, i));
    a->tensors = cpl_alloc(cpl_tensor_file_count(first) + 1, sizeof *a->tensors);
    a->values = cpl_alloc((size_t)elements + 1, sizeof *a->values);
    if (!a->tensors || !a->values)
        CPL_FAIL(err, CPL_FAILED, "no memory for the averaged weights");
    for (int i = 1; i < a->count; i++)
        if (count_weights(a->files[i]) != count_weights(a->files[0]))
            CPL_FAIL(err, CPL_USAGE, "'%s' has %zu tensors, '%s' has %zu", a->names[0], count_weights(a->files[0]),
                     a->names[i], count_weights(a->files[i]));
    for (size_t i = 0; i < cpl_tensor_file_count(first); i++) {
        cpl_tensor_entry t = *cpl_tensor_file_at(first, i);
        if (!is_weight(&t))
            continue;
        cpl_status status = mean(a, &t, a->values + at, err);
        if (status != CPL_OK)
            return status;
        t.data = a->values + at;
        at += cpl_tensor_elements(&t);
        a->tensors[a->tensor_count++] = t;
    }
    return CPL_OK;
}

/* ---- metadata ---- */

/* The history of an average: of each model its name, and what its last validation gave. */
static cpl_status write_history(averaging *a, cpl_error *err)
{
    static const char *const figures[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
    cpl_json *array = cpl_json_array();
    for (int i = 0; i < a->count; i++) {
        const cpl_model_file *f = a->files[i];
        cpl_json *entry = cpl_json_object(), *history;
        cpl_json_set_text(entry, "averaged", a->names[i]);
        cpl_json_set_int(entry, "epoch", f->epoch);
        cpl_json_set_int(entry, "step", f->step);
        if (cpl_json_parse(&history, f->history, f->history_length, NULL) == CPL_OK) {
            size_t n = cpl_json_size(history);
            for (size_t k = 0; n > 0 && k < sizeof figures / sizeof *figures; k++) {
                const cpl_json *value = cpl_json_get(cpl_json_at(history, n - 1), figures[k]);
                if (value)
                    cpl_json_set_real(entry, figures[k], cpl_json_real(value, (double)NAN), 0);
            }
            cpl_json_free(history);
        }
        cpl_json_add(array, entry);
    }
    cpl_status status = array ? cpl_json_write(array, &a->history, err)
                              : cpl_error_set(err, CPL_FAILED, "no memory for the history");
    cpl_json_free(array);
    return status;
}

static void add(averaging *a, const char *key, const char *value)
{
    a->metadata[a->metadata_count++] = (cpl_metadata_entry){.key = key, .value = value, .length = strlen(value)};
}

/* Options and vocabularies of the first; numbers are the largest of all. */
static cpl_status collect_metadata(averaging *a, cpl_error *err)
{
    static const char *const replaced[] = {"checksum", "state", "log_bytes", "history", "epoch", "step",
                                           "longest_target"};
    const cpl_tensor_file *first = a->files[0]->tensors;
    int64_t step = 0, epoch = 0, longest = 0;
    a->metadata = cpl_alloc(cpl_tensor_file_metadata_count(first) + 4, sizeof *a->metadata);
    if (!a->metadata)
        CPL_FAIL(err, CPL_FAILED, "no memory for the model's options");
    for (size_t i = 0; i < cpl_tensor_file_metadata_count(first); i++) {
        cpl_metadata_entry e = cpl_tensor_file_metadata_at(first, i);
        int known = 0;
        for (size_t k = 0; k < sizeof replaced / sizeof *replaced; k++)
            known |= strcmp(e.key, replaced[k]) == 0;
        if (!known)
            a->metadata[a->metadata_count++] = e;
    }
    for (int i = 0; i < a->count; i++) {
        const cpl_model_file *f = a->files[i];
        step = f->step > step ? f->step : step, epoch = f->epoch > epoch ? f->epoch : epoch;
        longest = f->longest_target > longest ? f->longest_target : longest;
    }
    snprintf(a->step, sizeof a->step, "%" PRId64, step);
    snprintf(a->epoch, sizeof a->epoch, "%" PRId64, epoch);
    snprintf(a->longest, sizeof a->longest, "%" PRId64, longest);
    add(a, "history", a->history.data);
    add(a, "epoch", a->epoch);
    add(a, "step", a->step);
    add(a, "longest_target", a->longest);
    return CPL_OK;
}

/* ---- all of it ---- */

static cpl_status open_all(averaging *a, cpl_error *err)
{
    for (int i = 0; i < a->count; i++) {
        char *path = cpl_model_path(a->names[i]);
        cpl_status status = path ? cpl_model_file_open(&a->files[i], path, err)
                                 : cpl_error_set(err, CPL_FAILED, "no memory for a path");
        cpl_release(path);
        if (status == CPL_OK)
            status = cpl_model_file_need_float32(a->files[i], a->names[i], "an average", err);
        if (status == CPL_OK && i > 0)
            status = agree(a, i, err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

cpl_status cpl_average_models(const char *const *models, int count, const char *output, cpl_error *err)
{
    cpl_model_file *files[MOST] = {NULL};
    averaging a = {.names = models, .files = files, .count = count};
    if (count < 2 || count > MOST)
        CPL_FAIL(err, CPL_USAGE, "an average is of 2 to %d models, got %d", MOST, count);
    cpl_status status = open_all(&a, err);
    if (status == CPL_OK)
        status = average_tensors(&a, err);
    if (status == CPL_OK)
        status = write_history(&a, err);
    if (status == CPL_OK)
        status = collect_metadata(&a, err);
    cpl_tensor_set set = {a.tensors, a.tensor_count, a.metadata, a.metadata_count};
    if (status == CPL_OK)
        status = cpl_tensor_file_write(output, &set, err);
    for (int i = 0; i < count; i++)
        cpl_model_file_close(files[i]);
    cpl_release(a.tensors);
    cpl_release(a.values);
    cpl_release(a.metadata);
    cpl_str_free(&a.history);
    if (status != CPL_OK)
        return cpl_error_context(err, status, "cannot average %d models", count);
    return CPL_OK;
}
