/* run_data.c: from a configuration file to a trainer that is ready to run. */
#include "api/run_data.h"

#include <string.h>

#include "base/error.h"
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

cpl_status cpl_run_data_config(cpl_run_data *r, const cpl_train_options *o, cpl_error *err)
{
    r->bytes_before = cpl_memory_live_bytes();
    r->peak_before = cpl_peak_rss();
    r->message = o->message;
    r->user = o->user;
    r->log = (cpl_log){.sink = collect, .user = r};
    if (!o->config_path)
        CPL_FAIL(err, CPL_USAGE, "there is no configuration to read");
    CPL_TRY(cpl_config_load(&r->config, o->config_path, err), err, "cannot read the configuration");
    for (int i = 0; i < o->set_count; i++)
        CPL_TRY(cpl_config_set_pair(r->config, o->set[i], err), err, "cannot set '%s'", o->set[i]);
    if (o->memory)
        CPL_TRY(cpl_config_set(r->config, "training.memory", o->memory, err), err, "cannot set the memory");
    if (o->threads > 0)
        r->config->training.threads = o->threads;
    CPL_TRY(cpl_config_check(r->config, 1, err), err, "the configuration cannot be used");
    return CPL_OK;
}

cpl_status cpl_run_data_open(cpl_run_data *r, cpl_error *err)
{
    cpl_dataset_options o = {.config = r->config, .texts = r->config->training.show_examples,
                             .copy = r->config->model.copy, .log = &r->log};
    CPL_TRY(cpl_dataset_new(&r->data, &o, err), err, "cannot read the data");
    cpl_dataset_warn(r->data, &r->log);
    cpl_trainer_options t = {.config = r->config, .data = r->data, .log = &r->log, .bytes_before = r->bytes_before,
                             .peak_before = r->peak_before, .mapped_bytes = r->mapped_bytes};
    return cpl_trainer_new(&r->trainer, &t, err);
}

void cpl_run_data_free(cpl_run_data *r)
{
    cpl_trainer_free(r->trainer);
    cpl_dataset_free(r->data);
    cpl_config_free(r->config);
    for (size_t i = 0; i < r->warning_count; i++)
        cpl_release(r->warnings[i]);
    cpl_release(r->warnings);
    memset(r, 0, sizeof *r);
}
