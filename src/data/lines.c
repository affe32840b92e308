/* lines.c: a stream of lines, answered as they come.
 *
 * The reader waits only when it has nothing to give: once one line is complete it takes what else is there, asking
 * poll before each read, and returns. So a program at the other end of a pipe that waits for its answer gets it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/scan.h"

enum { READ_BYTES = 1 << 16 };
#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

struct cpl_lines {
    int fd, own; /* own: to be closed here */
    int ended;   /* nothing more will come into raw */
    char *raw;
    size_t at, scanned, end, capacity; /* raw: given out up to at, without LF up to scanned, filled up to end */
    cpl_str text;                      /* of the lines given out last */
    cpl_line *items;
    size_t items_capacity;
    int64_t number, replaced, first_replaced;
};

cpl_status cpl_lines_open_fd(cpl_lines **l, int fd, cpl_error *err)
{
    *l = cpl_alloc(1, sizeof **l);
    if (!*l)
        CPL_FAIL(err, CPL_FAILED, "no memory to read lines");
    (*l)->fd = fd;
    return CPL_OK;
}

static int has_ending(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

cpl_status cpl_lines_open(cpl_lines **l, const char *path, cpl_error *err)
{
    cpl_status status = cpl_lines_open_fd(l, STDIN_FILENO, err);
    if (status != CPL_OK || strcmp(path, "-") == 0)
        return status;
    if (has_ending(path, ".gz")) { /* a compressed file is there as a whole */
        status = cpl_file_read(path, &(*l)->raw, &(*l)->end, err);
        (*l)->ended = 1;
    } else {
        (*l)->fd = open(path, O_RDONLY | O_CLOEXEC);
        (*l)->own = (*l)->fd >= 0;
        if (!(*l)->own)
            status = cpl_error_set(err, CPL_USAGE, "cannot open '%s': %s", path, cpl_reason(errno));
    }
    if (status != CPL_OK) {
        cpl_lines_close(*l);
        *l = NULL;
    }
    return status;
}

void cpl_lines_close(cpl_lines *l)
{
    if (!l)
        return;
    if (l->own)
        close(l->fd);
    cpl_release(l->raw);
    cpl_release(l->items);
    cpl_str_free(&l->text);
    cpl_release(l);
}

/* Whether a read would not wait. */
static int readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0; /* a hang-up counts: it shows in the read */
}

/* One read, which may wait. What was given out makes room first. */
static cpl_status fill(cpl_lines *l, cpl_error *err)
{
    if (l->at) {
        memmove(l->raw, l->raw + l->at, l->end - l->at);
        l->scanned -= l->at;
        l->end -= l->at;
        l->at = 0;
    }
    if (cpl_grow(&l->raw, &l->capacity, l->end + READ_BYTES, 1))
        CPL_FAIL(err, CPL_FAILED, "no memory for a line of over %zu bytes", l->end);
    for (;;) {
        ssize_t n = read(l->fd, l->raw + l->end, l->capacity - l->end);
        if (n >= 0) {
            l->end += (size_t)n;
            l->ended = n == 0;
            return CPL_OK;
        }
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            (void)poll(&p, 1, -1);
        else if (errno != EINTR)
            CPL_FAIL(err, errno == EISDIR ? CPL_USAGE : CPL_FAILED, "cannot read after line %lld: %s",
                     (long long)l->number, cpl_reason(errno));
    }
}

/* Appends the line's text with U+FFFD for every byte that is not UTF-8. */
static void add_text(cpl_lines *l, const char *p, size_t length)
{
    for (const char *end = p + length; p < end;) {
        size_t n = cpl_utf8_valid(p, (size_t)(end - p));
        cpl_str_add_bytes(&l->text, p, n);
        p += n;
        if (p == end)
            break;
        cpl_str_add(&l->text, REPLACEMENT);
        if (l->replaced++ == 0)
            l->first_replaced = l->number;
        p++;
    }
}

/* Takes the line that ends before `next`. The text may still move, so items hold lengths alone until all are there. */
static cpl_status add_line(cpl_lines *l, size_t count, size_t next, cpl_error *err)
{
    char *at = l->raw + l->at, *line;
    size_t length, before = l->text.length;
    l->number++;
    if (cpl_scan_line(&at, l->raw + next, &line, &length)) {
        cpl_scan_unmark(line, &length);
        add_text(l, line, length);
    }
    l->at = l->scanned = next;
    if (l->text.failed || cpl_grow(&l->items, &l->items_capacity, count + 1, sizeof *l->items))
        CPL_FAIL(err, CPL_FAILED, "no memory for line %lld", (long long)l->number);
    l->items[count] = (cpl_line){NULL, l->text.length - before, l->number};
    return CPL_OK;
}

cpl_status cpl_lines_read(cpl_lines *l, size_t most, const cpl_line **lines, size_t *count, cpl_error *err)
{
    cpl_status status = CPL_OK;
    size_t n = 0;
    cpl_str_clear(&l->text);
    while (n < most && status == CPL_OK) {
        char *lf = l->scanned < l->end ? memchr(l->raw + l->scanned, '\n', l->end - l->scanned) : NULL;
        if (lf) {
            status = add_line(l, n++, (size_t)(lf - l->raw) + 1, err);
            continue;
        }
        l->scanned = l->end;
        if (l->ended && l->at < l->end)
            status = add_line(l, n++, l->end, err);
        if (l->ended || (n > 0 && !readable(l->fd)))
            break;
        status = fill(l, err);
    }
    *lines = l->items;
    *count = status == CPL_OK ? n : 0;
    size_t offset = 0;
    for (size_t i = 0; i < *count; i++) {
        l->items[i].text = l->text.data ? l->text.data + offset : "";
        offset += l->items[i].length;
    }
    return status;
}

int64_t cpl_lines_replaced(const cpl_lines *l, int64_t *first_line)
{
    if (first_line)
        *first_line = l->first_replaced;
    return l->replaced;
}
