/* files.c: reading whole files, mapping, folders and paths. Writing is in writer.c. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

#ifdef CPL_HAVE_ZLIB
#include <zlib.h>
#endif

enum { READ_BYTES = 1 << 16 };

/* A name that the user can correct is a matter of usage; anything else is the machine's. */
static cpl_status input_status(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EISDIR || error == EACCES ? CPL_USAGE : CPL_FAILED;
}

static int is_gz(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

static int open_input(const char *path)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* ---- a piece at a time ---- */

struct cpl_stream {
    int fd;
    uint64_t given; /* bytes so far, for errors */
    char *name;
#ifdef CPL_HAVE_ZLIB
    gzFile gz; /* NULL: not compressed */
#endif
};

#ifdef CPL_HAVE_ZLIB
static cpl_status open_gz(cpl_stream *s, cpl_error *err)
{
    s->gz = gzdopen(s->fd, "rb");
    if (!s->gz)
        CPL_FAIL(err, CPL_FAILED, "no memory to decompress '%s'", s->name);
    s->fd = -1; /* gzclose closes it */
    gzbuffer(s->gz, 1 << 17);
    return CPL_OK;
}

static cpl_status read_gz(cpl_stream *s, void *to, size_t most, size_t *got, cpl_error *err)
{
    int n = gzread(s->gz, to, (unsigned)(most < READ_BYTES ? most : READ_BYTES)), code = Z_OK;
    const char *what = gzerror(s->gz, &code);
    if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
        CPL_FAIL(err, CPL_USAGE, "cannot decompress '%s' after %llu bytes: %s", s->name, (unsigned long long)s->given,
                 code == Z_ERRNO ? cpl_reason(errno) : code == Z_BUF_ERROR ? "the file ends too early" : what);
    if (n > 0 && gzdirect(s->gz))
        CPL_FAIL(err, CPL_USAGE, "'%s' is not a gzip file" CPL_HINT "rename it without .gz", s->name);
    *got = (size_t)n;
    return CPL_OK;
}
#else
static cpl_status open_gz(cpl_stream *s, cpl_error *err)
{
    CPL_FAIL(err, CPL_USAGE, "cannot read '%s': this build has no gzip reader (zlib was missing when it was built)",
             s->name);
}
#endif

static cpl_status read_plain(cpl_stream *s, void *to, size_t most, size_t *got, cpl_error *err)
{
    ssize_t n;
    do
        n = read(s->fd, to, most);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        CPL_FAIL(err, input_status(errno), "cannot read '%s': %s", s->name, cpl_reason(errno));
    *got = (size_t)n;
    return CPL_OK;
}

cpl_status cpl_stream_open(cpl_stream **out, const char *path, cpl_error *err)
{
    int standard = strcmp(path, "-") == 0;
    int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open_input(path);
    *out = NULL;
    if (fd < 0)
        CPL_FAIL(err, input_status(errno), "cannot open '%s': %s", path, cpl_reason(errno));
    cpl_stream *s = cpl_alloc(1, sizeof *s);
    char *name = cpl_strdup(standard ? "standard input" : path);
    cpl_status status = CPL_OK;
    if (s)
        s->fd = fd, s->name = name;
    if (!s || !name)
        status = cpl_error_set(err, CPL_FAILED, "no memory to read '%s'", path);
    else if (is_gz(path))
        status = open_gz(s, err);
    if (status == CPL_OK) {
        *out = s;
    } else if (s) {
        cpl_stream_close(s);
    } else {
        close(fd);
        cpl_release(name);
    }
    return status;
}

cpl_status cpl_stream_read(cpl_stream *s, void *to, size_t most, size_t *got, cpl_error *err)
{
    *got = 0;
#ifdef CPL_HAVE_ZLIB
    cpl_status status = s->gz ? read_gz(s, to, most, got, err) : read_plain(s, to, most, got, err);
#else
    cpl_status status = read_plain(s, to, most, got, err);
#endif
    s->given += *got;
    return status;
}

void cpl_stream_close(cpl_stream *s)
{
    if (!s)
        return;
#ifdef CPL_HAVE_ZLIB
    if (s->gz)
        gzclose_r(s->gz);
#endif
    if (s->fd >= 0)
        close(s->fd);
    cpl_release(s->name);
    cpl_release(s);
}

/* ---- all of it ---- */

/* A regular file's size is known: one allocation instead of doubling. The size is a hint only. */
static void make_room(const cpl_stream *s, char **data, size_t *capacity)
{
    struct stat about;
    if (s->fd >= 0 && fstat(s->fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
        (void)cpl_grow(data, capacity, (size_t)about.st_size + READ_BYTES + 1, 1);
}

cpl_status cpl_file_read(const char *path, char **data, size_t *length, cpl_error *err)
{
    cpl_stream *s;
    char *read = NULL;
    size_t n = 0, capacity = 0, got = 1;
    *data = NULL;
    *length = 0;
    cpl_status status = cpl_stream_open(&s, path, err);
    if (status != CPL_OK)
        return status;
    make_room(s, &read, &capacity);
    while (status == CPL_OK && got > 0) { /* each time with room for READ_BYTES more and a NUL */
        if (n > SIZE_MAX - READ_BYTES - 1 || cpl_grow(&read, &capacity, n + READ_BYTES + 1, 1) != 0)
            status = cpl_error_set(err, CPL_FAILED, "no memory to read '%s' after %zu bytes", path, n);
        else
            status = cpl_stream_read(s, read + n, capacity - n - 1, &got, err);
        n += status == CPL_OK ? got : 0;
    }
    cpl_stream_close(s);
    if (status != CPL_OK) {
        cpl_release(read);
        return status;
    }
    read[n] = '\0';
    *data = read;
    *length = n;
    return CPL_OK;
}

/* ---- the rest ---- */

cpl_status cpl_file_map(const char *path, const uint8_t **data, size_t *length, cpl_error *err)
{
    *data = NULL;
    *length = 0;
    int fd = open_input(path);
    if (fd < 0)
        CPL_FAIL(err, input_status(errno), "cannot open '%s': %s", path, cpl_reason(errno));
    struct stat about;
    int error = fstat(fd, &about) != 0 ? errno : S_ISDIR(about.st_mode) ? EISDIR : 0;
    if (!error && !S_ISREG(about.st_mode)) {
        close(fd);
        CPL_FAIL(err, CPL_USAGE, "cannot map '%s': it is not a regular file", path);
    }
    const void *mapped = "";
    if (!error && about.st_size > 0) {
        mapped = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        error = mapped == MAP_FAILED ? errno : 0;
    }
    close(fd);
    if (error)
        CPL_FAIL(err, input_status(error), "cannot map '%s': %s", path, cpl_reason(error));
    *data = mapped;
    *length = (size_t)about.st_size;
    return CPL_OK;
}

void cpl_file_unmap(const uint8_t *data, size_t length)
{
    union {
        const uint8_t *from;
        void *to;
    } p = {data}; /* munmap wants a pointer without const */
    if (data && length > 0)
        munmap(p.to, length);
}

int cpl_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

/* Parents first: each '/' ends a folder to be made. */
cpl_status cpl_folder_make(const char *path, cpl_error *err)
{
    char *part = cpl_strdup(path);
    int error = part ? 0 : ENOMEM;
    size_t length = strlen(path);
    for (size_t i = 1; i <= length && !error; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        char end = part[i];
        struct stat about;
        part[i] = '\0';
        if (mkdir(part, 0777) != 0) {
            error = errno;
            if (stat(part, &about) == 0) /* whatever mkdir said, a folder that is there is fine */
                error = S_ISDIR(about.st_mode) ? 0 : EEXIST;
        }
        part[i] = end;
    }
    cpl_release(part);
    if (length == 0)
        error = ENOENT;
    if (error)
        CPL_FAIL(err, CPL_FAILED, "cannot make folder '%s': %s", path, cpl_reason(error));
    return CPL_OK;
}

char *cpl_path_join(const char *folder, const char *name)
{
    size_t f = folder ? strlen(folder) : 0, n = strlen(name);
    if (f == 0 || strcmp(folder, ".") == 0 || name[0] == '/' || strcmp(name, "-") == 0)
        return cpl_strdup(name);
    char *path = cpl_alloc(f + n + 2, 1);
    if (path)
        snprintf(path, f + n + 2, "%s%s%s", folder, folder[f - 1] == '/' ? "" : "/", name);
    return path;
}

char *cpl_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return cpl_strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    return slash == path ? cpl_strdup("/") : cpl_strndup(path, (size_t)(slash - path));
}
