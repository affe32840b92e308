/* checkpoint.c: the state of a run to its folder and back. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "train/trainer.h"

/* The log's length goes with the state: on resume the log is cut to it. */
static cpl_status save_texts(cpl_trainer *t, cpl_str *state, cpl_str *history, cpl_error *err)
{
    cpl_run_state now = t->state; /* times as they are now; the run's own count on from where they began */
    now.elapsed = cpl_trainer_elapsed(t);
    now.epoch_seconds = now.elapsed - t->epoch_offset;
    cpl_status status = cpl_run_state_write(&now, state, history, err);
    if (status != CPL_OK)
        return status;
    cpl_tensor_set set = cpl_model_set_view(t->set, 0, 0, history->data, state->data);
    cpl_run_position at = {.epoch = now.epoch, .step = now.step, .log_bytes = cpl_run_log_bytes(t->run_log)};
    return cpl_rundir_save(t->options->folder, &set, at, err);
}

cpl_status cpl_trainer_save(cpl_trainer *t, cpl_error *err)
{
    cpl_str state = {0}, history = {0};
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_SAVING);
    cpl_status status = save_texts(t, &state, &history, err);
    cpl_phase_end(t->profile, CPL_PHASE_SAVING, &begun);
    cpl_str_free(&state);
    cpl_str_free(&history);
    if (status != CPL_OK)
        return status;
    t->saved_at = cpl_trainer_elapsed(t);
    cpl_trainer_tell_checkpoint(t);
    return CPL_OK;
}

void cpl_trainer_use_average(cpl_trainer *t, int on)
{
    if (!t->average || t->averaged == on)
        return;
    cpl_average_swap(t->average);
    t->averaged = on;
}

/* No time stands in a model, so that two runs that computed the same write the same bytes. */
static cpl_status write_model(cpl_trainer *t, const char *path, cpl_error *err)
{
    cpl_str state = {0}, history = {0};
    cpl_meter begun = cpl_phase_begin(t->profile, CPL_PHASE_SAVING);
    int before = t->averaged;
    cpl_status status = cpl_run_state_write(&t->state, &state, &history, err);
    cpl_trainer_use_average(t, 1);
    if (status == CPL_OK) {
        int64_t epoch = t->state.epoch + (t->state.in_epoch > 0 ? 1 : 0);
        cpl_tensor_set set = cpl_model_set_view(t->set, epoch, t->state.step, history.data, NULL);
        status = cpl_tensor_file_write(path, &set, err);
    }
    cpl_trainer_use_average(t, before);
    cpl_phase_end(t->profile, CPL_PHASE_SAVING, &begun);
    cpl_str_free(&state);
    cpl_str_free(&history);
    return status;
}

cpl_status cpl_trainer_save_model(cpl_trainer *t, cpl_error *err)
{
    cpl_status status = write_model(t, t->options->folder->model, err);
    if (status == CPL_OK)
        t->model_step = t->state.step;
    return status;
}

cpl_status cpl_trainer_keep_model(cpl_trainer *t, cpl_error *err)
{
    if (t->training->keep == 0)
        return CPL_OK;
    char *path = cpl_rundir_kept(t->options->folder, t->state.step);
    cpl_status status = path ? write_model(t, path, err)
                             : cpl_error_set(err, CPL_FAILED, "no memory for the name of a model");
    cpl_release(path);
    if (status == CPL_OK)
        status = cpl_rundir_prune(t->options->folder, t->training->keep, t->state.step, err);
    return status;
}

int cpl_trainer_save_is_due(const cpl_trainer *t, int64_t updates_since)
{
    const cpl_config_period *every = &t->training->checkpoint_every;
    if (every->steps > 0)
        return updates_since > 0 && t->state.step % every->steps == 0;
    return cpl_trainer_elapsed(t) - t->saved_at >= every->seconds;
}

/* Of the model that lies in the folder: whose weights it has. A run that was killed may have left a newer one than the
 * checkpoint knows; going on makes the same one again. */
static void find_model_step(cpl_trainer *t)
{
    cpl_tensor_file *f;
    const char *path = t->options->folder->model;
    if (!cpl_file_exists(path) || cpl_tensor_file_open(&f, path, NULL) != CPL_OK)
        return;
    if (cpl_tensor_file_metadata_int(f, "step", &t->model_step, NULL) != CPL_OK)
        t->model_step = -1;
    cpl_tensor_file_close(f);
}

static cpl_status restore_tensors(cpl_trainer *t, cpl_error *err)
{
    const cpl_model_file *f = t->checkpoint;
    cpl_parameters *p = t->program->engine->parameters;
    cpl_status status = cpl_model_file_load_parameters(f, p, err);
    const char *name;
    real *block;
    for (int i = 0; status == CPL_OK && (block = cpl_optimizer_state(t->optimizer, i, &name)) != NULL; i++) {
        char prefix[40];
        snprintf(prefix, sizeof prefix, "optimizer.%s.", name);
        status = cpl_model_file_load_block(f->tensors, prefix, p, cpl_optimizer_changes, block, err);
    }
    if (status == CPL_OK && t->average)
        status = cpl_model_file_load_block(f->tensors, CPL_AVERAGE_PREFIX, p, cpl_optimizer_changes,
                                           cpl_average_block(t->average), err);
    return status;
}

cpl_status cpl_trainer_restore(cpl_trainer *t, cpl_error *err)
{
    const cpl_model_file *f = t->checkpoint;
    size_t length;
    const char *state = cpl_tensor_file_metadata(f->tensors, "state", &length);
    if (!state)
        CPL_FAIL(err, CPL_FAILED, "the checkpoint has no 'state'");
    cpl_run_state_free(&t->state);
    CPL_TRY(cpl_run_state_read(&t->state, state, length, f->history, f->history_length, err), err,
            "cannot go on from the checkpoint");
    if (t->state.data != t->data->checksum)
        CPL_FAIL(err, CPL_USAGE, "the data have changed: their checksum was %016" PRIx64 " in the run and is now %016"
                 PRIx64 CPL_HINT "put the old files back, or start anew with --overwrite or another folder",
                 t->state.data, t->data->checksum);
    CPL_TRY(restore_tensors(t, err), err, "cannot go on from the checkpoint");
    CPL_TRY(cpl_batcher_seek(t->train, t->state.pass, t->state.index, err), err, "cannot go on from the checkpoint");
    find_model_step(t);
    return CPL_OK;
}
