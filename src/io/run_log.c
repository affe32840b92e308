/* run_log.c: log.jsonl, one JSON object a line, appended to and cut back by length.
 *
 * A checkpoint remembers the log's length. On resume the log is cut to it, so no step stands in it twice. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/io.h"

struct cpl_run_log {
    int fd;
    int64_t bytes;
    char *path;
    char *line; /* reused: an object and its line feed leave in one write */
    size_t capacity;
};

/* Length of the whole lines among the first `bytes` bytes, or -1 when reading fails. */
static int64_t whole_lines(int fd, int64_t bytes)
{
    char block[4096];
    while (bytes > 0) {
        size_t n = bytes < (int64_t)sizeof block ? (size_t)bytes : sizeof block;
        ssize_t got = pread(fd, block, n, (off_t)(bytes - (int64_t)n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)n)
            return -1;
        for (size_t i = n; i > 0; i--)
            if (block[i - 1] == '\n')
                return bytes - (int64_t)(n - i);
        bytes -= (int64_t)n;
    }
    return 0;
}

/* A length that a checkpoint recorded lies at a line's end. Should the log have been edited since, whole lines
 * are kept all the same. */
cpl_status cpl_run_log_cut(cpl_run_log *l, int64_t bytes, cpl_error *err)
{
    int64_t keep = bytes > l->bytes ? l->bytes : bytes < 0 ? 0 : bytes;
    keep = whole_lines(l->fd, keep);
    if (keep < 0)
        CPL_FAIL(err, CPL_FAILED, "cannot read '%s': %s", l->path, strerror(errno));
    if (keep == l->bytes)
        return CPL_OK;
    if (ftruncate(l->fd, (off_t)keep) != 0)
        CPL_FAIL(err, CPL_FAILED, "cannot cut '%s' to %" PRId64 " bytes: %s", l->path, keep, strerror(errno));
    l->bytes = keep;
    return CPL_OK;
}

/* Opening is also the moment to repair what a killed run left. */
cpl_status cpl_run_log_open(cpl_run_log **l, const char *path, cpl_error *err)
{
    *l = NULL;
    cpl_run_log *log = cpl_alloc(1, sizeof *log);
    if (!log)
        CPL_FAIL(err, CPL_FAILED, "no memory for the log '%s'", path);
    log->path = cpl_strdup(path);
    log->fd = log->path ? open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    struct stat status;
    if (log->fd < 0 || fstat(log->fd, &status) != 0) {
        int why = errno;
        cpl_run_log_close(log);
        CPL_FAIL(err, CPL_FAILED, "cannot open the log '%s': %s", path, strerror(why));
    }
    log->bytes = (int64_t)status.st_size;
    cpl_status cut = cpl_run_log_cut(log, log->bytes, err);
    if (cut != CPL_OK) {
        cpl_run_log_close(log);
        return cut;
    }
    *l = log;
    return CPL_OK;
}

void cpl_run_log_close(cpl_run_log *l)
{
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    cpl_release(l->path);
    cpl_release(l->line);
    cpl_release(l);
}

/* Writes all bytes. Returns 0, or -1 with errno. */
static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

/* O_APPEND and one write: a kill leaves at most one unfinished line, which the next open cuts off. */
cpl_status cpl_run_log_line(cpl_run_log *l, const char *json, size_t length, cpl_error *err)
{
    if (memchr(json, '\n', length))
        CPL_FAIL(err, CPL_FAILED, "a log entry of %zu bytes holds a line feed", length);
    if (cpl_grow(&l->line, &l->capacity, length + 1, 1))
        CPL_FAIL(err, CPL_FAILED, "no memory for a log line of %zu bytes", length);
    memcpy(l->line, json, length);
    l->line[length] = '\n';
    if (write_all(l->fd, l->line, length + 1) != 0) {
        int why = errno;
        int undone = ftruncate(l->fd, (off_t)l->bytes); /* no half line stays, as far as the disk allows */
        CPL_FAIL(err, CPL_FAILED, "cannot write to '%s': %s%s", l->path, strerror(why),
                 undone == 0 ? "" : " (its last line is incomplete)");
    }
    l->bytes += (int64_t)length + 1;
    return CPL_OK;
}

int64_t cpl_run_log_bytes(const cpl_run_log *l)
{
    return l->bytes;
}
