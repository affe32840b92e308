/* rundir.c: the folder of a run, and checkpoints that survive being killed at any moment.
 *
 * A checkpoint is written whole under a third name first. Only then is the last one linked to its second name,
 * and the new one renamed over the first. So 'checkpoint.safetensors' is always a complete file, and the one
 * before stays as the fall-back for damage that comes later. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "io/io.h"

cpl_status cpl_rundir_new(cpl_rundir **d, const char *folder, cpl_error *err)
{
    cpl_rundir *dir = cpl_alloc(1, sizeof *dir);
    *d = NULL;
    if (!dir)
        CPL_FAIL(err, CPL_FAILED, "no memory for the paths of '%s'", folder);
    dir->folder = cpl_strdup(folder);
    dir->model = cpl_path_join(folder, "model.safetensors");
    dir->checkpoint = cpl_path_join(folder, "checkpoint.safetensors");
    dir->previous = cpl_path_join(folder, "checkpoint.previous.safetensors");
    dir->incoming = cpl_path_join(folder, "checkpoint.new.safetensors");
    dir->log = cpl_path_join(folder, "log.jsonl");
    dir->profile = cpl_path_join(folder, "profile.json");
    if (!dir->folder || !dir->model || !dir->checkpoint || !dir->previous || !dir->incoming || !dir->log ||
        !dir->profile) {
        cpl_rundir_free(dir);
        CPL_FAIL(err, CPL_FAILED, "no memory for the paths of '%s'", folder);
    }
    *d = dir;
    return CPL_OK;
}

void cpl_rundir_free(cpl_rundir *d)
{
    if (!d)
        return;
    cpl_release(d->folder);
    cpl_release(d->model);
    cpl_release(d->checkpoint);
    cpl_release(d->previous);
    cpl_release(d->incoming);
    cpl_release(d->log);
    cpl_release(d->profile);
    cpl_release(d);
}

cpl_status cpl_rundir_make(const cpl_rundir *d, cpl_error *err)
{
    return cpl_folder_make(d->folder, err);
}

int cpl_rundir_holds_run(const cpl_rundir *d)
{
    return cpl_file_exists(d->model) || cpl_file_exists(d->checkpoint) || cpl_file_exists(d->previous) ||
           cpl_file_exists(d->log);
}

/* Opens a checkpoint, which must carry a right checksum and say where the run stands. */
static cpl_status open_checkpoint(const char *path, cpl_tensor_file **f, cpl_run_position *at, cpl_error *err)
{
    cpl_status status = cpl_tensor_file_open(f, path, err);
    if (status != CPL_OK)
        return status;
    if (!cpl_tensor_file_verified(*f))
        status = cpl_error_set(err, CPL_FAILED, "the metadata has no valid 'checksum'");
    if (status == CPL_OK)
        status = cpl_tensor_file_metadata_int(*f, "epoch", &at->epoch, err);
    if (status == CPL_OK)
        status = cpl_tensor_file_metadata_int(*f, "step", &at->step, err);
    if (status == CPL_OK)
        status = cpl_tensor_file_metadata_int(*f, "log_bytes", &at->log_bytes, err);
    if (status == CPL_OK)
        return CPL_OK;
    cpl_tensor_file_close(*f);
    *f = NULL;
    return cpl_error_context(err, status, "'%s' is damaged or not a checkpoint", path);
}

/* A checkpoint that is not there although the one before is, is treated as a damaged one: a file system without
 * links can leave that behind (see keep_last). */
cpl_status cpl_rundir_load(cpl_rundir *d, cpl_tensor_file **f, cpl_run_position *at, const cpl_log *log, cpl_error *err)
{
    cpl_run_position position = {0};
    cpl_error newest = CPL_ERROR_INIT;
    *f = NULL;
    d->newest_is_bad = 0;
    int has_newest = cpl_file_exists(d->checkpoint), has_previous = cpl_file_exists(d->previous);
    if (!has_newest && !has_previous)
        return CPL_OK;
    if (has_newest && open_checkpoint(d->checkpoint, f, &position, &newest) == CPL_OK) {
        if (at)
            *at = position;
        return CPL_OK;
    }
    if (!has_previous) {
        if (err)
            *err = newest;
        return cpl_error_context(err, CPL_FAILED, "'%s' has no checkpoint that can be read", d->folder);
    }
    CPL_TRY(open_checkpoint(d->previous, f, &position, err), err, "'%s' has no checkpoint that can be read ('%s': %s)",
            d->folder, d->checkpoint, has_newest ? newest.line[0] : "not there");
    d->newest_is_bad = has_newest;
    cpl_log_warning(log, "cannot use '%s' (%s), going on from '%s' (epoch %" PRId64 ", step %" PRId64 ")",
                    d->checkpoint, has_newest ? newest.line[0] : "not there", d->previous, position.epoch,
                    position.step);
    if (at)
        *at = position;
    return CPL_OK;
}

cpl_status cpl_rundir_require_empty(const cpl_rundir *d, cpl_error *err)
{
    if (!cpl_rundir_holds_run(d))
        return CPL_OK;
    char where[64] = "no checkpoint yet";
    cpl_rundir copy = *d; /* load notes damage in its argument */
    cpl_tensor_file *f;
    cpl_run_position at;
    cpl_status status = cpl_rundir_load(&copy, &f, &at, NULL, NULL);
    if (status != CPL_OK)
        snprintf(where, sizeof where, "its checkpoint cannot be read");
    else if (f)
        snprintf(where, sizeof where, "epoch %" PRId64 ", step %" PRId64, at.epoch, at.step);
    cpl_tensor_file_close(f);
    CPL_FAIL(err, CPL_USAGE,
             "'%s' already holds a run (%s)" CPL_HINT
             "--resume goes on with it, --overwrite replaces it, -o names another folder",
             d->folder, where);
}

/* Renames last only when the folder itself is on disk. */
static cpl_status sync_folder(const cpl_rundir *d, cpl_error *err)
{
    int fd = open(d->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        CPL_FAIL(err, CPL_FAILED, "cannot open the folder '%s': %s", d->folder, strerror(errno));
    /* Some file systems cannot flush a folder (EINVAL): nothing can be done there, and nothing is lost. */
    int failed = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "cannot flush the folder '%s': %s", d->folder, strerror(failed));
    return CPL_OK;
}

/* ---- kept models ---- */

char *cpl_rundir_kept(const cpl_rundir *d, int64_t step)
{
    char name[64];
    snprintf(name, sizeof name, "model-%" PRId64 ".safetensors", step);
    return cpl_path_join(d->folder, name);
}

/* The step in the name of a kept model, or −1: only names that cpl_rundir_kept makes are ours. */
static int64_t step_of(const char *name)
{
    char made[64];
    long long step;
    if (sscanf(name, "model-%lld.safetensors", &step) != 1 || step < 0)
        return -1;
    snprintf(made, sizeof made, "model-%lld.safetensors", step);
    return strcmp(made, name) == 0 ? (int64_t)step : -1;
}

/* The newest kept model below `below`, or −1. */
static int64_t newest_kept(const cpl_rundir *d, int64_t below)
{
    DIR *folder = opendir(d->folder);
    int64_t newest = -1;
    for (const struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        int64_t step = step_of(e->d_name);
        newest = step < below && step > newest ? step : newest;
    }
    if (folder)
        closedir(folder);
    return newest;
}

static cpl_status remove_kept(const cpl_rundir *d, int64_t step, cpl_error *err)
{
    char *path = cpl_rundir_kept(d, step);
    int failed = path && unlink(path) != 0 && errno != ENOENT ? errno : 0;
    if (failed)
        cpl_error_set(err, CPL_FAILED, "cannot remove '%s': %s", path, strerror(failed));
    cpl_release(path);
    return failed ? CPL_FAILED : CPL_OK;
}

cpl_status cpl_rundir_prune(const cpl_rundir *d, int64_t most, int64_t step, cpl_error *err)
{
    cpl_status status = CPL_OK;
    int64_t seen = 0;
    for (int64_t at = INT64_MAX; status == CPL_OK && (at = newest_kept(d, at)) >= 0;)
        if (at > step || ++seen > most)
            status = remove_kept(d, at, err);
    return status;
}

/* The log goes last: a folder whose clearing was interrupted still counts as one that holds a run. */
cpl_status cpl_rundir_clear(const cpl_rundir *d, cpl_error *err)
{
    CPL_TRY(cpl_rundir_prune(d, 0, 0, err), err, "cannot clear '%s'", d->folder);
    const char *const paths[] = {d->checkpoint, d->previous, d->incoming, d->model, d->profile, d->log};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (unlink(paths[i]) != 0 && errno != ENOENT && errno != ENOTDIR)
            CPL_FAIL(err, CPL_FAILED, "cannot remove '%s': %s", paths[i], strerror(errno));
    return CPL_OK;
}

/* Gives the last checkpoint its second name. A link leaves the first name in place; where the file system has
 * no links, a rename leaves a moment in which only the second name exists. */
static cpl_status keep_last(const cpl_rundir *d, cpl_error *err)
{
    if (d->newest_is_bad || !cpl_file_exists(d->checkpoint))
        return CPL_OK;
    if (unlink(d->previous) != 0 && errno != ENOENT)
        CPL_FAIL(err, CPL_FAILED, "cannot remove '%s': %s", d->previous, strerror(errno));
    if (link(d->checkpoint, d->previous) != 0 && rename(d->checkpoint, d->previous) != 0)
        CPL_FAIL(err, CPL_FAILED, "cannot rename '%s' to '%s': %s", d->checkpoint, d->previous, strerror(errno));
    return CPL_OK;
}

/* The order that the head of this file explains. */
static cpl_status write_and_rotate(cpl_rundir *d, const cpl_tensor_set *set, cpl_error *err)
{
    cpl_status status = cpl_tensor_file_write(d->incoming, set, err);
    if (status == CPL_OK)
        status = keep_last(d, err);
    if (status != CPL_OK)
        return status;
    if (rename(d->incoming, d->checkpoint) != 0)
        CPL_FAIL(err, CPL_FAILED, "cannot rename '%s' to '%s': %s", d->incoming, d->checkpoint, strerror(errno));
    d->newest_is_bad = 0;
    return sync_folder(d, err);
}

/* The position comes first among the metadata, where a person who looks at the file finds it. */
cpl_status cpl_rundir_save(cpl_rundir *d, const cpl_tensor_set *set, cpl_run_position at, cpl_error *err)
{
    static const char *const keys[] = {"epoch", "step", "log_bytes"};
    const int64_t values[] = {at.epoch, at.step, at.log_bytes};
    char texts[3][24];
    cpl_metadata_entry *all = cpl_alloc(set->metadata_count + 3, sizeof *all);
    if (!all)
        CPL_FAIL(err, CPL_FAILED, "no memory for the checkpoint's metadata");
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        int length = snprintf(texts[i], sizeof texts[i], "%" PRId64, values[i]);
        all[count++] = (cpl_metadata_entry){keys[i], texts[i], (size_t)length};
    }
    for (size_t i = 0; i < set->metadata_count; i++)
        all[count++] = set->metadata[i];
    cpl_tensor_set with_position = {set->tensors, set->tensor_count, all, count};
    cpl_status status = write_and_rotate(d, &with_position, err);
    cpl_release(all);
    CPL_TRY(status, err, "cannot save a checkpoint in '%s'", d->folder);
    return CPL_OK;
}
