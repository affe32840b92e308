/* run_data.c: from a configuration file to a trainer that is ready to run. */
#include "api/run_data.h"

#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

static void collect(void *run, cpl_log_level level, const char *text)
{
    cpl_run_data *r = run;
    if (level == CPL_LOG_WARNING &&
        cpl_grow(&r->warnings, &r->warning_capacity, r->warning_count + 1, sizeof *r->warnings) == 0) {
        char *copy = cpl_strdup(text);
        if (copy)
            r->warnings[r->warning_count++] = copy;
    }
    if (r->message)
        r->message(r->user, level == CPL_LOG_WARNING, text);
}

/* "MODEL" or "MODEL:PART"; a file may have a colon in its name. */
static cpl_status add_init(cpl_config *c, const char *text, cpl_error *err)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || strchr(colon, '/') || cpl_file_exists(text))
        return cpl_config_add_part(c, NULL, text, err);
    char *path = cpl_strndup(text, (size_t)(colon - text));
    cpl_status status = path ? cpl_config_add_part(c, colon + 1, path, err)
                             : cpl_error_set(err, CPL_FAILED, "out of memory");
    cpl_release(path);
    return status;
}

cpl_status cpl_run_data_config(cpl_run_data *r, const cpl_train_options *o, cpl_error *err)
{
    r->bytes_before = cpl_memory_live_bytes();
    r->peak_before = cpl_peak_rss();
    r->message = o->message;
    r->user = o->user;
    r->profile = o->profile;
    r->log = (cpl_log){.sink = collect, .user = r};
    if (!o->config_path)
        CPL_FAIL(err, CPL_USAGE, "there is no configuration to read");
    CPL_TRY(cpl_config_load(&r->config, o->config_path, err), err, "cannot read the configuration");
    for (int i = 0; i < o->set_count; i++)
        CPL_TRY(cpl_config_set_pair(r->config, o->set[i], err), err, "cannot set '%s'", o->set[i]);
    for (int i = 0; i < o->freeze_count; i++)
        CPL_TRY(cpl_config_add_path(r->config, "training.freeze", o->freeze[i], err), err, "cannot freeze");
    if (o->init)
        CPL_TRY(add_init(r->config, o->init, err), err, "cannot use '%s'", o->init);
    if (o->memory)
        CPL_TRY(cpl_config_set(r->config, "training.memory", o->memory, err), err, "cannot set the memory");
    if (o->threads > 0)
        r->config->training.threads = o->threads;
    cpl_status status = cpl_run_data_open_init(r, err); /* text rules may come from there */
    if (status != CPL_OK)
        return status;
    CPL_TRY(cpl_config_check(r->config, 1, err), err, "the configuration cannot be used");
    cpl_config_warn(r->config, &r->log);
    return cpl_run_data_read_vocabularies(r, err);
}

static cpl_status make_trainer(cpl_run_data *r, const cpl_log *log, cpl_error *err)
{
    cpl_trainer_options t = {.config = r->config, .data = r->data, .log = log, .bytes_before = r->bytes_before,
                             .peak_before = r->peak_before, .mapped_bytes = r->mapped_bytes, .profile = r->profile};
    return cpl_trainer_new(&r->trainer, &t, err);
}

cpl_status cpl_run_data_trainer(cpl_run_data *r, cpl_error *err)
{
    cpl_trainer_free(r->trainer);
    r->trainer = NULL;
    r->peak_before = cpl_peak_rss(); /* reading is over, and a trainer's memory is not the data's */
    return make_trainer(r, NULL, err);
}

cpl_status cpl_run_data_open(cpl_run_data *r, cpl_error *err)
{
    const cpl_config_training *training = &r->config->training;
    int64_t texts = training->metrics.count > 0 ? -1 : training->show_examples; /* metrics read every reference */
    cpl_dataset_options o = {.config = r->config, .source = r->source, .target = r->target,
                             .source_from = r->source_from, .target_from = r->target_from,
                             .texts = texts, .copy = r->config->model.copy, .log = &r->log};
    CPL_TRY(cpl_dataset_new(&r->data, &o, err), err, "cannot read the data");
    cpl_dataset_warn(r->data, &r->log);
    cpl_status status = make_trainer(r, &r->log, err);
    if (status == CPL_OK)
        status = cpl_run_data_load_init(r, err);
    return status == CPL_OK ? cpl_run_data_load_vectors(r, err) : status;
}

void cpl_run_data_free(cpl_run_data *r)
{
    cpl_trainer_free(r->trainer);
    cpl_dataset_free(r->data);
    cpl_config_free(r->config);
    for (size_t i = 0; i < r->init_count; i++)
        cpl_model_file_close(r->init[i]);
    cpl_release(r->init);
    cpl_vocabulary_free(r->own_source);
    cpl_vocabulary_free(r->own_target);
    for (size_t i = 0; i < r->warning_count; i++)
        cpl_release(r->warnings[i]);
    cpl_release(r->warnings);
    memset(r, 0, sizeof *r);
}
