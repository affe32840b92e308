/* writer.c: atomic writing. The old file stays until the new one is complete and on disk; a crash leaves
 * one or the other. What is not a regular file (a device, a pipe) cannot be replaced and is written to. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

enum { BUFFER_BYTES = 1 << 16, TRIES = 100 };

struct cpl_writer {
    char *path;      /* as the user named it, for errors */
    char *target;    /* with links followed: a link stays a link */
    char *temporary; /* NULL: written to directly */
    int fd;
    size_t used;
    char buffer[BUFFER_BYTES];
};

static void writer_free(cpl_writer *w)
{
    cpl_release(w->path);
    cpl_release(w->target);
    cpl_release(w->temporary);
    cpl_release(w);
}

/* ".name.process-number": hidden, in the same folder so that rename is atomic, and never the same twice
 * in a process. Opening exclusively settles the rest. */
static int open_temporary(cpl_writer *w)
{
    static atomic_uint numbers;
    char name[300];
    const char *slash = strrchr(w->target, '/');
    char *folder = cpl_path_folder(w->target);
    int error = folder ? EEXIST : ENOMEM;
    for (int i = 0; i < TRIES && error == EEXIST; i++) {
        snprintf(name, sizeof name, ".%.200s.%ld-%u", slash ? slash + 1 : w->target, (long)getpid(),
                 atomic_fetch_add(&numbers, 1u));
        cpl_release(w->temporary);
        w->temporary = cpl_path_join(folder, name);
        if (!w->temporary) {
            error = ENOMEM;
            break;
        }
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        error = w->fd >= 0 ? 0 : errno;
        if (error == EINTR)
            error = EEXIST;
    }
    cpl_release(folder);
    return error;
}

/* Follows links of an existing file; a new file is itself. */
static char *resolve(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = cpl_strdup(real ? real : path);
    free(real);
    return copy;
}

static int open_target(cpl_writer *w)
{
    struct stat about;
    if (stat(w->target, &about) != 0)
        return open_temporary(w);
    if (S_ISDIR(about.st_mode))
        return EISDIR;
    if (!S_ISREG(about.st_mode)) {
        w->fd = open(w->target, O_WRONLY | O_CLOEXEC);
        return w->fd >= 0 ? 0 : errno;
    }
    int error = open_temporary(w);
    if (!error)
        (void)fchmod(w->fd, about.st_mode & 07777); /* as far as allowed, the new file is as open as the old */
    return error;
}

cpl_status cpl_writer_open(cpl_writer **writer, const char *path, cpl_error *err)
{
    *writer = NULL;
    cpl_writer *w = cpl_alloc(1, sizeof *w);
    if (w) {
        w->fd = -1;
        w->path = cpl_strdup(path);
        w->target = resolve(path);
    }
    if (!w || !w->path || !w->target) {
        if (w)
            writer_free(w);
        CPL_FAIL(err, CPL_FAILED, "no memory to write '%s'", path);
    }
    int error = open_target(w);
    if (error) {
        writer_free(w);
        CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", path, cpl_reason(error));
    }
    *writer = w;
    return CPL_OK;
}

enum { APPEND = -1 };

/* At a place of the file, or behind what is there. */
static cpl_status write_out(cpl_writer *w, const char *bytes, size_t length, off_t at, cpl_error *err)
{
    while (length > 0) {
        ssize_t n = at == APPEND ? write(w->fd, bytes, length) : pwrite(w->fd, bytes, length, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            CPL_FAIL(err, CPL_FAILED, "cannot write '%s': %s", w->path, cpl_reason(errno));
        bytes += n;
        length -= (size_t)n;
        at += at == APPEND ? 0 : n;
    }
    return CPL_OK;
}

static cpl_status flush(cpl_writer *w, cpl_error *err)
{
    size_t used = w->used;
    w->used = 0;
    return write_out(w, w->buffer, used, APPEND, err);
}

cpl_status cpl_writer_write(cpl_writer *w, const void *bytes, size_t length, cpl_error *err)
{
    if (length > BUFFER_BYTES - w->used) {
        cpl_status status = flush(w, err);
        if (status != CPL_OK)
            return status;
    }
    if (length >= BUFFER_BYTES)
        return write_out(w, bytes, length, APPEND, err);
    if (length > 0)
        memcpy(w->buffer + w->used, bytes, length);
    w->used += length;
    return CPL_OK;
}

int cpl_writer_can_replace(const cpl_writer *w)
{
    return w->temporary != NULL;
}

cpl_status cpl_writer_replace(cpl_writer *w, const void *bytes, size_t length, cpl_error *err)
{
    cpl_status status = flush(w, err);
    return status == CPL_OK ? write_out(w, bytes, length, 0, err) : status;
}

/* The rename itself must reach the disk, or a power cut could bring the old file back. Some file systems
 * cannot do this for folders (EINVAL); there is nothing more to be done on them. */
static int sync_folder(const char *target)
{
    char *folder = cpl_path_folder(target);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int error = !folder ? ENOMEM : fd < 0 ? errno : 0;
    if (fd >= 0) {
        int result;
        do
            result = fsync(fd);
        while (result != 0 && errno == EINTR);
        error = result != 0 && errno != EINVAL && errno != EROFS ? errno : 0;
        close(fd);
    }
    cpl_release(folder);
    return error == EACCES ? 0 : error; /* a folder one may write to but not list */
}

/* fsync, close, rename, in this order; the first error is the one that is told. */
static int put_in_place(cpl_writer *w)
{
    int result, error = 0;
    if (w->temporary) {
        do
            result = fsync(w->fd);
        while (result != 0 && errno == EINTR);
        if (result != 0 && errno != EINVAL)
            error = errno;
    }
    result = close(w->fd);
    w->fd = -1;
    if (result != 0 && errno != EINTR && !error)
        error = errno;
    if (error || !w->temporary)
        return error;
    if (rename(w->temporary, w->target) != 0)
        return errno;
    cpl_release(w->temporary);
    w->temporary = NULL;
    return sync_folder(w->target);
}

cpl_status cpl_writer_commit(cpl_writer *w, cpl_error *err)
{
    cpl_status status = flush(w, err);
    if (status == CPL_OK) {
        int error = put_in_place(w);
        if (error)
            status = cpl_error_set(err, CPL_FAILED, "cannot write '%s': %s", w->path, cpl_reason(error));
    }
    cpl_writer_abandon(w);
    return status;
}

void cpl_writer_abandon(cpl_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->temporary)
        unlink(w->temporary);
    writer_free(w);
}

cpl_status cpl_file_write(const char *path, const void *bytes, size_t length, cpl_error *err)
{
    cpl_writer *w;
    cpl_status status = cpl_writer_open(&w, path, err);
    if (status != CPL_OK)
        return status;
    status = cpl_writer_write(w, bytes, length, err);
    if (status != CPL_OK) {
        cpl_writer_abandon(w);
        return status;
    }
    return cpl_writer_commit(w, err);
}
