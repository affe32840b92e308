/* score_fixture.h: a JSON file of texts and figures, and its lines as texts. */
#ifndef CPL_TESTS_METRIC_SCORE_FIXTURE_H
#define CPL_TESTS_METRIC_SCORE_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "metric/scorer.h"

/* NULL in a build without a JSON reader. */
static inline cpl_json *fixture_open(const char *path)
{
    char *data;
    size_t length;
    cpl_json *root;
    if (!cpl_json_available())
        return NULL;
    assert_int_equal(cpl_file_read(path, &data, &length, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, data, length, NULL), CPL_OK);
    cpl_release(data);
    return root;
}

static inline cpl_metric_text text_at(const cpl_json *array, size_t i)
{
    cpl_metric_text t;
    t.text = cpl_json_text(cpl_json_at(array, i), &t.length);
    assert_non_null(t.text);
    return t;
}

static inline cpl_metric_text line(const char *text)
{
    return (cpl_metric_text){text, strlen(text)};
}

static inline cpl_scorer *scorer_of(const char *names, cpl_scorer_options o)
{
    cpl_scorer *s;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_figures_parse(names, &o.wanted, &err), CPL_OK);
    if (cpl_scorer_new(&s, &o, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    return s;
}

/* One output against one to three references. */
static inline void add(cpl_scorer *s, const char *output, const char *a, const char *b, const char *c)
{
    const char *all[] = {a, b, c};
    cpl_metric_text references[3];
    size_t n = 0;
    for (int i = 0; i < 3; i++)
        if (all[i])
            references[n++] = line(all[i]);
    assert_int_equal(cpl_scorer_add(s, &(cpl_scored){line(output), line("source"), references, n}, NULL), CPL_OK);
}

static inline void near_to(double got, double expected, double by)
{
    if (!(fabs(got - expected) <= by))
        fail_msg("got %.15g, expected %.15g", got, expected);
}

#endif
