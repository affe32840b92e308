/* tell.c: what the command says when something is wrong or done. Results go to stdout, everything else to stderr. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int cpl_cli_wrong(const char *hint, const char *format, ...)
{
    cpl_error err = CPL_ERROR_INIT;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err.line[0], sizeof err.line[0], format, arguments);
    va_end(arguments);
    err.status = CPL_USAGE;
    err.lines = 1;
    snprintf(err.hint, sizeof err.hint, "%s", hint == NULL ? "" : hint);
    cpl_error_print(&err, stderr);
    return CPL_USAGE;
}

/* Edit distance with three rows: insert, delete, change, swap of neighbours. Names of an interface are short. */
static int distance(const char *a, const char *b)
{
    enum { LONGEST = 48 };
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int j = 0; j <= m; j++)
        above[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[m];
}

/* Near enough: a slip in every third letter, or the beginning of the word. Dashes do not count. */
const char *cpl_cli_near(const char *name, const char *const *names, int n, char buffer[96])
{
    const char *found = NULL, *bare = name + strspn(name, "-");
    int length = (int)strlen(bare), best = 1 + length / 3;
    for (int i = 0; i < n; i++) {
        const char *other = names[i] + strspn(names[i], "-");
        int d = length >= 3 && strncmp(bare, other, (size_t)length) == 0 ? 1 : distance(bare, other);
        if (d < best || (d == best && found == NULL && length > 1)) {
            best = d;
            found = names[i];
        }
    }
    if (found == NULL)
        return NULL;
    snprintf(buffer, 96, "did you mean '%s'?", found);
    return buffer;
}

int cpl_cli_finish(cpl_status status, const cpl_error *err)
{
    if (status != CPL_OK && status != CPL_STOPPED)
        cpl_error_print(err, stderr);
    if (status == CPL_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        if (errno != EPIPE)
            fprintf(stderr, "error: cannot write to standard output: %s\n", strerror(errno));
        return CPL_FAILED;
    }
    return (int)status;
}

int cpl_cli_result(char *text)
{
    cpl_error err = CPL_ERROR_INIT;
    size_t length = text == NULL ? 0 : strlen(text);
    if (length > 0) {
        fputs(text, stdout);
        if (text[length - 1] != '\n')
            putchar('\n');
    }
    cpl_free(text);
    return cpl_cli_finish(CPL_OK, &err);
}

void cpl_cli_message(void *user, int level, const char *text)
{
    (void)user;
    fprintf(stderr, "%s%s\n", level > 0 ? "warning: " : "", text);
}
