/* keras_map.c: the file of --map: other names, and gates in another order. Same shapes say nothing about an order, so
 * it is only believed when it is written down (case D02). */
#include <stdlib.h>
#include <string.h>

#include "api/keras.h"
#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/str.h"

typedef struct map_line {
    const char *from, *to; /* gates: the layer's path, and the order */
    int64_t number;
    int is_gates, used;
} map_line;

struct cpl_keras_map {
    char *text, *path;
    map_line *lines;
    size_t count, capacity;
    cpl_str name;
};

static int letter(char c)
{
    return c == 'n' ? 'h' : c == 'g' ? 'c' : c;
}

/* The place of each of our gates in the stored order; 0 when order is no permutation of ours. */
static int permutation(const char *ours, const char *stored, int order[4])
{
    size_t n = strlen(ours);
    if (strlen(stored) != n)
        return 0;
    for (size_t k = 0; k < n; k++) {
        order[k] = -1;
        for (size_t i = 0; i < n; i++)
            if (letter(stored[i]) == ours[k])
                order[k] = (int)i;
        if (order[k] < 0)
            return 0;
    }
    return 1;
}

static cpl_status take_line(cpl_keras_map *m, char *text, int64_t number, cpl_error *err)
{
    char *rest = NULL, *word[4] = {NULL};
    int n = 0, order[4];
    text[strcspn(text, "#")] = '\0';
    for (char *w = strtok_r(text, " \t\r", &rest); w && n < 4; w = strtok_r(NULL, " \t\r", &rest))
        word[n++] = w;
    if (n == 0)
        return CPL_OK;
    int is_gates = strcmp(word[0], "gates") == 0;
    if (n != 2 + is_gates)
        CPL_FAIL(err, CPL_USAGE, "'%s' line %lld has %d words, expected %s", m->path, (long long)number, n,
                 is_gates ? "'gates PATH ORDER'" : "'THEIRS OURS'");
    if (is_gates && !permutation("zrh", word[2], order) && !permutation("ifco", word[2], order))
        CPL_FAIL(err, CPL_USAGE, "'%s' line %lld: '%s' is no order of the gates zrh (GRU) or ifco (LSTM)", m->path,
                 (long long)number, word[2]);
    if (cpl_grow(&m->lines, &m->capacity, m->count + 1, sizeof *m->lines))
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", m->path);
    m->lines[m->count++] = (map_line){.from = word[is_gates], .to = word[is_gates + 1], .number = number,
                                      .is_gates = is_gates};
    return CPL_OK;
}

cpl_status cpl_keras_map_read(cpl_keras_map **out, const char *path, cpl_error *err)
{
    cpl_keras_map *m = cpl_alloc(1, sizeof *m);
    size_t length;
    *out = NULL;
    if (!m || !(m->path = cpl_strdup(path))) {
        cpl_keras_map_free(m);
        CPL_FAIL(err, CPL_FAILED, "no memory for '%s'", path);
    }
    cpl_status status = cpl_file_read(path, &m->text, &length, err);
    char *line = m->text;
    for (int64_t number = 1; status == CPL_OK && line; number++) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        status = take_line(m, line, number, err);
        line = end;
    }
    if (status != CPL_OK) {
        cpl_keras_map_free(m);
        return status;
    }
    *out = m;
    return CPL_OK;
}

void cpl_keras_map_free(cpl_keras_map *m)
{
    if (!m)
        return;
    cpl_release(m->text);
    cpl_release(m->path);
    cpl_release(m->lines);
    cpl_str_free(&m->name);
    cpl_release(m);
}

/* The longest line of the kind whose path is the name or a start of it. */
static map_line *line_for(cpl_keras_map *m, const char *name, int is_gates)
{
    map_line *best = NULL;
    for (size_t i = 0; m && i < m->count; i++) {
        map_line *l = &m->lines[i];
        size_t n = strlen(l->from);
        if (l->is_gates == is_gates && strncmp(l->from, name, n) == 0 && (name[n] == '/' || name[n] == '\0') &&
            (!best || strlen(best->from) < n))
            best = l;
    }
    if (best)
        best->used = 1;
    return best;
}

const char *cpl_keras_map_name(cpl_keras_map *m, const char *theirs)
{
    const map_line *l = line_for(m, theirs, 0);
    if (!l)
        return theirs;
    cpl_str_clear(&m->name);
    cpl_str_add(&m->name, l->to);
    cpl_str_add(&m->name, theirs + strlen(l->from));
    return m->name.failed ? theirs : m->name.data;
}

int cpl_keras_map_gates(cpl_keras_map *m, const char *name, cpl_keras_gates gates, int order[4])
{
    const map_line *l = gates == CPL_KERAS_NO_GATES ? NULL : line_for(m, name, 1);
    return l && permutation(gates == CPL_KERAS_ZRH ? "zrh" : "ifco", l->to, order);
}

cpl_status cpl_keras_map_check(const cpl_keras_map *m, cpl_error *err)
{
    for (size_t i = 0; m && i < m->count; i++)
        if (!m->lines[i].used)
            CPL_FAIL(err, CPL_USAGE, "'%s' line %lld: nothing in the file is called '%s'", m->path,
                     (long long)m->lines[i].number, m->lines[i].from);
    return CPL_OK;
}
