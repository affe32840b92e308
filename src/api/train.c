/* train.c: cpl_train: which folder, new or resumed, and then the trainer. Nothing in the folder is touched before
 * configuration and data were found sound. */
#include <string.h>
#include <sys/stat.h>

#include "api/run_data.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

/* "runs/de-en.yaml" → "de-en", in the current folder. */
static cpl_status folder_of(const cpl_train_options *o, char **folder, cpl_error *err)
{
    if (o->folder) {
        *folder = cpl_strdup(o->folder);
    } else {
        const char *slash = strrchr(o->config_path, '/'), *name = slash ? slash + 1 : o->config_path;
        size_t n = strlen(name);
        if (n > 5 && strcmp(name + n - 5, ".yaml") == 0)
            n -= 5;
        else if (n > 4 && strcmp(name + n - 4, ".yml") == 0)
            n -= 4;
        else
            CPL_FAIL(err, CPL_USAGE, "the folder of the run cannot be named after '%s', which does not end in .yaml"
                     CPL_HINT "give it with -o", o->config_path);
        *folder = cpl_strndup(name, n);
    }
    if (!*folder)
        CPL_FAIL(err, CPL_FAILED, "no memory for the name of the folder");
    return CPL_OK;
}

/* Opens the checkpoint of a run that goes on, and compares the options. *f stays NULL where nothing is to go on
 * with: then --resume starts a run, so that one command line serves a queue. */
static cpl_status find_checkpoint(cpl_run_data *r, cpl_rundir *d, cpl_model_file **f, cpl_run_position *at,
                                  cpl_error *err)
{
    cpl_tensor_file *tensors;
    CPL_TRY(cpl_rundir_load(d, &tensors, at, &r->log, err), err, "cannot resume");
    if (!tensors && cpl_file_exists(d->model)) /* never the trace of a killed run: a checkpoint comes first */
        CPL_FAIL(err, CPL_USAGE, "'%s' holds a model but no checkpoint to go on from: a model file has weights and no "
                 "optimizer state" CPL_HINT "--init %s and another folder (-o) begin a new run with its weights; "
                 "--overwrite replaces the model", d->folder, d->model);
    if (!tensors)
        return CPL_OK;
    CPL_TRY(cpl_model_file_take(f, tensors, d->newest_is_bad ? d->previous : d->checkpoint, err), err,
            "cannot resume");
    struct stat file;
    if (stat(d->newest_is_bad ? d->previous : d->checkpoint, &file) == 0)
        r->mapped_bytes = (uint64_t)file.st_size;
    r->resumed = 1;
    CPL_TRY(cpl_config_check_resume((*f)->config, r->config, err), err, "cannot resume '%s'", d->folder);
    CPL_TRY(cpl_run_data_check_vocabularies(r, *f, err), err, "cannot resume '%s' with another vocabulary", d->folder);
    CPL_TRY(cpl_run_data_keep_subwords(r, *f, err), err, "cannot resume '%s'", d->folder);
    return CPL_OK;
}

static void report(const cpl_run_data *r, const cpl_train_options *o)
{
    cpl_str text = {0};
    cpl_dataset_describe(r->data, &text);
    cpl_progress_event e = {.kind = "report", .text = text.data};
    if (o->on_event && !text.failed && text.data)
        o->on_event(o->user, &e);
    cpl_str_free(&text);
}

static cpl_status prepare_folder(cpl_rundir *d, int fresh, cpl_error *err)
{
    CPL_TRY(cpl_rundir_make(d, err), err, "cannot make the folder of the run");
    if (fresh)
        CPL_TRY(cpl_rundir_clear(d, err), err, "cannot clear the folder of the run");
    return CPL_OK;
}

/* The rest of cpl_train, once the folder is named. *f is taken over by the trainer when it runs. */
static cpl_status train_in(cpl_run_data *r, cpl_rundir *d, cpl_model_file **f, const cpl_train_options *o,
                           cpl_error *err)
{
    cpl_run_position at = {0};
    cpl_status status = CPL_OK;
    if (o->resume)
        status = find_checkpoint(r, d, f, &at, err);
    else if (!o->overwrite)
        status = cpl_rundir_require_empty(d, err);
    if (status == CPL_OK)
        status = cpl_run_data_open(r, err);
    if (status != CPL_OK)
        return status;
    report(r, o);
    status = prepare_folder(d, *f == NULL, err);
    if (status != CPL_OK)
        return status;
    cpl_fit_options fit = {.folder = d, .checkpoint = *f, .at = at, .warnings = (const char *const *)r->warnings,
                           .warning_count = (int)r->warning_count, .on_step = o->on_step,
                           .on_validation = o->on_validation, .on_event = o->on_event, .message = o->message,
                           .user = o->user, .stop = o->stop};
    *f = NULL;
    return cpl_trainer_run(r->trainer, &fit, err);
}

cpl_status cpl_train(const cpl_train_options *options, cpl_error *err)
{
    cpl_run_data r = {0};
    cpl_rundir *d = NULL;
    cpl_model_file *f = NULL;
    char *folder = NULL;
    cpl_status status = CPL_OK;
    if (options->resume && options->overwrite)
        status = cpl_error_set(err, CPL_USAGE, "a run is either resumed or overwritten, not both");
    if (status == CPL_OK)
        status = cpl_run_data_config(&r, options, err);
    if (status == CPL_OK)
        status = folder_of(options, &folder, err);
    if (status == CPL_OK)
        status = cpl_rundir_new(&d, folder, err);
    if (status == CPL_OK)
        status = train_in(&r, d, &f, options, err);
    cpl_model_file_close(f);
    cpl_run_data_free(&r);
    cpl_rundir_free(d);
    cpl_release(folder);
    return status;
}
