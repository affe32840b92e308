/* run_text.h: text through a model as `generate` sends it, and what an error says. */
#ifndef CPL_TESTS_API_RUN_TEXT_H
#define CPL_TESTS_API_RUN_TEXT_H

#include "api/api_test.h"

/* 1: a line of the error has that text. */
static inline int says(const cpl_error *err, const char *text)
{
    int found = 0;
    for (int i = 0; i < err->lines; i++)
        found |= strstr(err->line[i], text) != NULL;
    return found;
}

/* Text through a model. The caller releases the result. */
static inline char *run(const place *p, cpl_model *m, const char *text, const cpl_generate_options *o)
{
    char path[300], *out = cpl_alloc(1, 65536);
    cpl_error err = CPL_ERROR_INIT;
    place_write(p, "in.txt", text);
    FILE *in = fopen(place_file(p, "in.txt", path), "r"), *to = tmpfile();
    must(cpl_generate_lines(m, in, to, o, NULL, NULL, &err), &err);
    rewind(to);
    out[fread(out, 1, 65535, to)] = '\0';
    fclose(in);
    fclose(to);
    return out;
}

/* The options are wrong for the model, and the error says why. */
static inline void refuse(cpl_model *m, const cpl_generate_options *o, const char *why)
{
    char *text;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_generate(&text, m, "a b", o, &err), CPL_USAGE);
    if (!says(&err, why)) {
        cpl_error_print(&err, stderr);
        fail_msg("'%s' is not said", why);
    }
}

#endif
