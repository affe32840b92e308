/* path.c: naming parameters by path or pattern, for freezing and for parts of a model. */
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "graph/parameters.h"

/* text[0 … n) against a pattern: * is any characters, ? is one. A * takes the least that lets the rest match: going
 * back to the last one is enough, since an earlier one could only have taken more. */
static int matches(const char *pattern, const char *text, size_t n)
{
    const char *star = NULL;
    size_t at = 0, from = 0;
    while (at < n) {
        if (*pattern == '*') {
            star = ++pattern;
            from = at;
        } else if (*pattern == '?' || *pattern == text[at]) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star;
            at = ++from;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

int cpl_path_matches(const char *pattern, const char *path)
{
    for (size_t n = 1; n <= strlen(path); n++)
        if ((path[n] == '.' || path[n] == '\0') && matches(pattern, path, n))
            return 1;
    return 0;
}

/* Every name that a path may mean: of each parameter, and of each layer that it lies in. */
cpl_status cpl_parameters_no_match(const cpl_parameters *p, const char *pattern, cpl_error *err)
{
    cpl_arena *arena = cpl_arena_new(1 << 12);
    const char **names = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; arena && i < cpl_parameters_count(p); i++) {
        const char *path = cpl_parameters_at(p, i)->path;
        for (size_t n = 1; n <= strlen(path); n++) {
            if (path[n] != '.' && path[n] != '\0')
                continue;
            char *name = cpl_arena_strndup(arena, path, n);
            int known = 0;
            for (size_t k = 0; name && k < count && !known; k++)
                known = strcmp(names[k], name) == 0;
            if (name && !known && cpl_grow(&names, &capacity, count + 1, sizeof *names) == 0)
                names[count++] = name;
        }
    }
    char shown[120];
    const char *near = cpl_nearest(pattern, names, count);
    cpl_escape(shown, sizeof shown, pattern, strlen(pattern));
    if (near)
        cpl_error_set(err, CPL_USAGE, "no parameter or layer is named '%s'" CPL_HINT "did you mean '%s'?", shown, near);
    else
        cpl_error_set(err, CPL_USAGE, "no parameter or layer is named '%s'" CPL_HINT
                      "couplet plan lists them; * in a pattern stands for any characters", shown);
    cpl_release(names);
    cpl_arena_free(arena);
    return CPL_USAGE;
}
