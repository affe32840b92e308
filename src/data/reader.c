/* reader.c: pairs out of files of two columns, or out of two files line by line.
 *
 * Policy. Structure that is wrong (fields, lengths of files, encoding) refuses the whole data set, since every pair
 * after it is doubtful; content that is missing (an empty side, a blank line) is skipped and counted. Pairs are slices
 * of the files' buffers: nothing is copied. */
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/scan.h"

enum { FIELDS = 2, PLACES_SHOWN = 4, PLACES_SIZE = 240 };

typedef struct reader {
    cpl_pairs *pairs;
    const cpl_pairs_options *options;
    const char *name; /* of the file that is read, for messages */
    int64_t line;
    int64_t marks, first_mark; /* byte-order marks inside this file, and the line of the first */
} reader;

static const cpl_pairs_options no_options;

void cpl_pairs_free(cpl_pairs *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->buffer_count; i++)
        cpl_release(p->buffers[i]);
    for (size_t i = 0; i < p->file_count; i++)
        cpl_release(p->files[i]);
    cpl_release(p->buffers);
    cpl_release(p->files);
    cpl_release(p->items);
    cpl_release(p);
}

/* A file's bytes that are still to be read. */
typedef struct span {
    char *at, *end;
} span;

/* Reads a file into a buffer that the pairs own, checks its encoding, and skips the mark at its start. */
static cpl_status load(reader *r, const char *path, const char *name, span *text, cpl_error *err)
{
    char *data;
    size_t length;
    CPL_TRY(cpl_file_read(path, &data, &length, err), err, "cannot read data");
    r->pairs->buffers[r->pairs->buffer_count++] = data;
    cpl_status status = cpl_scan_utf8(name, data, length, err);
    if (status != CPL_OK)
        return status;
    size_t skip = length >= CPL_MARK_BYTES && memcmp(data, CPL_MARK, CPL_MARK_BYTES) == 0 ? CPL_MARK_BYTES : 0;
    *text = (span){data + skip, data + length};
    if (cpl_scan_count(data, length) > UINT32_MAX)
        CPL_FAIL(err, CPL_USAGE, "'%s' has over %u lines", name, UINT32_MAX);
    return CPL_OK;
}

static void unmark(reader *r, char *line, size_t *length)
{
    int64_t n = cpl_scan_unmark(line, length);
    if (n && r->marks == 0)
        r->first_mark = r->line;
    r->marks += n;
}

static void warn_marks(reader *r)
{
    r->pairs->counts.marks += r->marks;
    if (r->marks && r->options->log)
        cpl_log_warning(r->options->log, "'%s' has %lld byte-order mark%s after its start, the first in line %lld: %s",
                        r->name, (long long)r->marks, r->marks == 1 ? "" : "s", (long long)r->first_mark, "removed");
    r->marks = 0;
}

/* Counts one line and keeps it when both sides hold text. `blank` lines are those with no structure at all. */
static cpl_status keep(reader *r, cpl_slice first, cpl_slice second, int blank, cpl_error *err)
{
    cpl_pairs *p = r->pairs;
    cpl_slice source = r->options->swap ? second : first, target = r->options->swap ? first : second;
    target = r->options->mirror ? source : target;
    int no_source = cpl_scan_blank(source.text, source.length), no_target = cpl_scan_blank(target.text, target.length);
    p->counts.lines++;
    if (blank)
        p->counts.blank++;
    else if (no_source && no_target)
        p->counts.empty_both++;
    else if (no_source)
        p->counts.empty_source++;
    else if (no_target)
        p->counts.empty_target++;
    if ((blank || no_source || no_target) && !r->options->keep_empty)
        return CPL_OK;
    if (p->count == p->capacity && cpl_grow(&p->items, &p->capacity, p->count + 1, sizeof *p->items))
        CPL_FAIL(err, CPL_FAILED, "no memory for pair %zu", p->count + 1);
    p->items[p->count++] = (cpl_pair){source, target, (uint32_t)(p->file_count - 1), (uint32_t)r->line};
    p->counts.pairs++;
    return CPL_OK;
}

static size_t count_fields(const char *line, size_t length)
{
    size_t n = 1;
    const char *end = line + length;
    while ((line = memchr(line, '\t', (size_t)(end - line))) != NULL) {
        n++;
        line++;
    }
    return n;
}

/* Lines with a wrong number of fields are collected, so that one message tells about the whole file. */
typedef struct misfits {
    int64_t count;
    size_t used;
    char places[PLACES_SIZE];
} misfits;

static void add_misfit(misfits *m, int64_t line, size_t fields)
{
    if (m->count < PLACES_SHOWN && m->used < sizeof m->places) {
        int n = snprintf(m->places + m->used, sizeof m->places - m->used, "%sline %lld has %zu", m->count ? ", " : "",
                         (long long)line, fields);
        m->used += n > 0 ? (size_t)n : 0;
    }
    m->count++;
}

static cpl_status read_columns(reader *r, const cpl_config_source *from, cpl_error *err)
{
    span text;
    r->name = from->written_pairs ? from->written_pairs : from->pairs;
    cpl_status status = load(r, from->pairs, r->name, &text, err);
    if (status != CPL_OK)
        return status;
    misfits wrong = {0};
    char *line;
    size_t length;
    for (r->line = 1; status == CPL_OK && cpl_scan_line(&text.at, text.end, &line, &length); r->line++) {
        unmark(r, line, &length);
        size_t fields = count_fields(line, length);
        int blank = fields == 1 && cpl_scan_blank(line, length);
        if (fields == 1 && r->options->mirror) {
            cpl_slice only = {line, length};
            status = keep(r, only, only, blank, err);
            continue;
        }
        if (fields != FIELDS && !blank) {
            add_misfit(&wrong, r->line, fields);
            continue;
        }
        const char *tab = blank ? line + length : memchr(line, '\t', length), *second = blank ? tab : tab + 1;
        cpl_slice one = {line, (size_t)(tab - line)}, two = {second, (size_t)(line + length - second)};
        status = keep(r, one, two, blank, err);
    }
    if (status == CPL_OK && wrong.count)
        CPL_FAIL(err, CPL_USAGE,
                 "'%s' has %lld of %lld lines without exactly 2 fields: %s%s" CPL_HINT
                 "a line is source, one tab, target",
                 r->name, (long long)wrong.count, (long long)(r->line - 1), wrong.places,
                 wrong.count > PLACES_SHOWN ? " …" : "");
    return status;
}

/* Tells where two files of different length may have parted: the first line that is empty on one side alone. */
static cpl_status refuse_lengths(span text[2], const int64_t lines[2], const char *const names[2], cpl_error *err)
{
    char *line;
    int64_t common = lines[0] < lines[1] ? lines[0] : lines[1];
    for (int64_t number = 1; number <= common; number++) {
        size_t length[2] = {0, 0};
        int blank[2];
        for (int i = 0; i < 2; i++)
            blank[i] = !cpl_scan_line(&text[i].at, text[i].end, &line, &length[i]) || cpl_scan_blank(line, length[i]);
        if (blank[0] != blank[1])
            CPL_FAIL(err, CPL_USAGE,
                     "'%s' has %lld lines but '%s' has %lld; line %lld of '%s' is empty, its partner is not",
                     names[0], (long long)lines[0], names[1], (long long)lines[1], (long long)number,
                     names[blank[0] ? 0 : 1]);
    }
    CPL_FAIL(err, CPL_USAGE, "'%s' has %lld lines but '%s' has %lld; line %lld of '%s' is the first without a partner",
             names[0], (long long)lines[0], names[1], (long long)lines[1], (long long)common + 1,
             names[lines[0] > lines[1] ? 0 : 1]);
}

static cpl_status read_aligned(reader *r, const cpl_config_source *from, cpl_error *err)
{
    const char *paths[2] = {from->source, from->target};
    const char *names[2] = {from->written_source ? from->written_source : from->source,
                            from->written_target ? from->written_target : from->target};
    span text[2];
    char *line[2];
    int64_t lines[2];
    for (int i = 0; i < 2; i++) {
        cpl_status status = load(r, paths[i], names[i], &text[i], err);
        if (status != CPL_OK)
            return status;
        lines[i] = cpl_scan_count(text[i].at, (size_t)(text[i].end - text[i].at));
    }
    if (lines[0] != lines[1])
        return refuse_lengths(text, lines, names, err);
    r->name = r->pairs->files[r->pairs->file_count - 1];
    size_t length[2] = {0, 0};
    for (r->line = 1; r->line <= lines[0]; r->line++) {
        for (int i = 0; i < 2; i++)
            if (cpl_scan_line(&text[i].at, text[i].end, &line[i], &length[i]))
                unmark(r, line[i], &length[i]);
        cpl_slice one = {line[0], length[0]}, two = {line[1], length[1]};
        cpl_status status = keep(r, one, two, length[0] == 0 && length[1] == 0, err);
        if (status != CPL_OK)
            return status;
    }
    return CPL_OK;
}

static char *file_name(const cpl_config_source *from)
{
    cpl_str name = {0};
    if (from->pairs)
        cpl_str_add(&name, from->written_pairs ? from->written_pairs : from->pairs);
    else
        cpl_str_printf(&name, "%s + %s", from->written_source ? from->written_source : from->source,
                       from->written_target ? from->written_target : from->target);
    return cpl_str_take(&name);
}

cpl_status cpl_pairs_read(cpl_pairs **pairs, const cpl_config_files *files, const cpl_pairs_options *options,
                          cpl_error *err)
{
    *pairs = NULL;
    cpl_pairs *p = cpl_alloc(1, sizeof *p);
    if (p) {
        p->buffers = cpl_alloc(files->count * 2, sizeof *p->buffers);
        p->files = cpl_alloc(files->count, sizeof *p->files);
    }
    cpl_status status = CPL_OK;
    if (!p || !p->buffers || !p->files)
        status = cpl_error_set(err, CPL_FAILED, "no memory to read %zu files", files->count);
    reader r = {.pairs = p, .options = options ? options : &no_options};
    for (size_t i = 0; i < files->count && status == CPL_OK; i++) {
        const cpl_config_source *from = &files->items[i];
        p->files[p->file_count] = file_name(from);
        if (!p->files[p->file_count++])
            status = cpl_error_set(err, CPL_FAILED, "no memory for a file's name");
        else
            status = from->pairs ? read_columns(&r, from, err) : read_aligned(&r, from, err);
        if (status == CPL_OK)
            warn_marks(&r);
    }
    if (status != CPL_OK) {
        cpl_pairs_free(p);
        return status;
    }
    *pairs = p;
    return CPL_OK;
}
