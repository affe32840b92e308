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

/* The end of a read: where the next bytes go, grown as needed. */
typedef struct sink {
    char *data;
    size_t length, capacity;
} sink;

/* Room for READ_BYTES more and a NUL. */
static int sink_room(sink *s)
{
    return s->length > SIZE_MAX - READ_BYTES - 1 ? -1 : cpl_grow(&s->data, &s->capacity, s->length + READ_BYTES + 1, 1);
}

static cpl_status read_plain(int fd, const char *path, sink *s, cpl_error *err)
{
    for (;;) {
        if (sink_room(s) != 0)
            CPL_FAIL(err, CPL_FAILED, "no memory to read '%s' after %zu bytes", path, s->length);
        ssize_t n = read(fd, s->data + s->length, s->capacity - s->length - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            CPL_FAIL(err, input_status(errno), "cannot read '%s': %s", path, cpl_reason(errno));
        if (n == 0)
            return CPL_OK;
        s->length += (size_t)n;
    }
}

#ifdef CPL_HAVE_ZLIB
static cpl_status read_gz_stream(gzFile gz, const char *path, sink *s, cpl_error *err)
{
    for (;;) {
        if (sink_room(s) != 0)
            CPL_FAIL(err, CPL_FAILED, "no memory to read '%s' after %zu bytes", path, s->length);
        int n = gzread(gz, s->data + s->length, READ_BYTES);
        int code = Z_OK;
        const char *what = gzerror(gz, &code);
        if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
            CPL_FAIL(err, CPL_USAGE, "cannot decompress '%s' after %zu bytes: %s", path, s->length,
                     code == Z_ERRNO ? cpl_reason(errno) : code == Z_BUF_ERROR ? "the file ends too early" : what);
        if (n == 0)
            return CPL_OK;
        s->length += (size_t)n;
        if (gzdirect(gz))
            CPL_FAIL(err, CPL_USAGE, "'%s' is not a gzip file" CPL_HINT "rename it without .gz", path);
    }
}

static cpl_status read_gz(int fd, const char *path, sink *s, cpl_error *err)
{
    int own = dup(fd); /* gzclose closes what it was given */
    gzFile gz = own < 0 ? NULL : gzdopen(own, "rb");
    if (!gz) {
        if (own >= 0)
            close(own);
        CPL_FAIL(err, CPL_FAILED, "no memory to decompress '%s'", path);
    }
    gzbuffer(gz, 1 << 17);
    cpl_status status = read_gz_stream(gz, path, s, err);
    gzclose_r(gz);
    return status;
}
#else
static cpl_status read_gz(int fd, const char *path, sink *s, cpl_error *err)
{
    (void)fd;
    (void)s;
    CPL_FAIL(err, CPL_USAGE, "cannot read '%s': this build has no gzip reader (zlib was missing when it was built)",
             path);
}
#endif

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

cpl_status cpl_file_read(const char *path, char **data, size_t *length, cpl_error *err)
{
    *data = NULL;
    *length = 0;
    int standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open_input(path);
    if (fd < 0)
        CPL_FAIL(err, input_status(errno), "cannot open '%s': %s", path, cpl_reason(errno));
    sink s = {0};
    struct stat about;
    /* A regular file's size is known: one allocation instead of doubling. The size is a hint only. */
    if (!is_gz(path) && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
        (void)cpl_grow(&s.data, &s.capacity, (size_t)about.st_size + READ_BYTES + 1, 1);
    cpl_status status = is_gz(path) ? read_gz(fd, path, &s, err)
                                    : read_plain(fd, standard ? "standard input" : path, &s, err);
    if (!standard)
        close(fd);
    if (status != CPL_OK) {
        cpl_release(s.data);
        return status;
    }
    s.data[s.length] = '\0';
    *data = s.data;
    *length = s.length;
    return CPL_OK;
}

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
