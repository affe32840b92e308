/* graph_test.h: what the tests of graphs and layers share: compiling, feeding, reading, and checking refusals. */
#ifndef CPL_TESTS_GRAPH_TEST_H
#define CPL_TESTS_GRAPH_TEST_H

#include "support/run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "couplet.h"
#include "graph/program.h"

#define MUST(call)                                                                                  \
    do {                                                                                            \
        cpl_error must_error = CPL_ERROR_INIT, *err = &must_error;                                  \
        if ((call) != CPL_OK) {                                                                     \
            cpl_error_print(err, stderr);                                                           \
            fail_msg("%s", #call);                                                                  \
        }                                                                                           \
    } while (0)

/* The call is a mistake of the user's, and the error (all lines and the hint) holds each of the texts. */
#define REFUSED(call, ...)                                                                          \
    do {                                                                                            \
        cpl_error refused_error = CPL_ERROR_INIT, *err = &refused_error;                            \
        cpl_status refused_status = (call);                                                         \
        check_refusal(refused_status, err, #call, (const char *const[]){__VA_ARGS__, NULL});        \
    } while (0)

static inline void check_refusal(cpl_status status, const cpl_error *err, const char *call, const char *const *parts)
{
    char text[(CPL_ERROR_LINES + 1) * (CPL_ERROR_WIDTH + 1)] = "";
    for (int i = err->lines; i-- > 0;) {
        strcat(text, err->line[i]);
        strcat(text, "\n");
    }
    strcat(text, err->hint);
    if (status != CPL_USAGE)
        fail_msg("%s: status %d instead of a refusal: %s", call, (int)status, text);
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("%s: '%s' is missing in: %s", call, *parts, text);
}

static inline cpl_program *compiled(cpl_model_function model, const void *user, const cpl_compile_options *options)
{
    cpl_program *p = NULL;
    MUST(cpl_compile(&p, model, user, options, err));
    return p;
}

/* A model that must not compile. */
#define NOT_COMPILED(model, user, ...)                                                              \
    do {                                                                                            \
        cpl_program *none = NULL;                                                                   \
        REFUSED(cpl_compile(&none, (model), (user), NULL, err), __VA_ARGS__);                       \
        assert_null(none);                                                                          \
    } while (0)

/* ---- data ---- */

static inline cpl_array reals(const float *data, int rank, int64_t a, int64_t b, int64_t c)
{
    return (cpl_array){.type = CPL_FLOAT32, .rank = rank, .shape = {a, b, c}, .data = data};
}

static inline cpl_array ids(const int32_t *data, int64_t batch, int64_t width, const int64_t *lengths)
{
    return (cpl_array){.type = CPL_INT32, .rank = 2, .shape = {batch, width}, .data = data, .lengths = lengths};
}

static inline void feed(cpl_program *p, const char *input, cpl_array a)
{
    MUST(cpl_feed(p, input, &a, err));
}

static inline void feed_mask(cpl_program *p, const char *time, const uint8_t *mask, int64_t batch, int64_t width)
{
    MUST(cpl_feed_mask(p, time, mask, batch, width, err));
}

static inline void run(cpl_program *p, cpl_mode mode)
{
    MUST(cpl_run(p, mode, err));
}

/* Numbers between −1 and 1; the same seed gives the same numbers. */
static inline void fill(float *x, int64_t n, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 12345u;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(((double)(state >> 8) / 8388608.0 - 1.0));
    }
}

/* An output's elements; returns their number. */
static inline int64_t read_reals(cpl_program *p, const char *output, float *to, size_t capacity)
{
    int64_t shape[6], n = 1;
    int rank;
    MUST(cpl_read(p, output, to, capacity, shape, &rank, err));
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    return n;
}

static inline void near(const float *got, const float *want, int64_t n, double tolerance, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= tolerance))
            fail_msg("%s: element %d is %.9g, expected %.9g", what, (int)i, (double)got[i], (double)want[i]);
}

static inline void output_is(cpl_program *p, const char *output, const float *want, int64_t n, double tolerance)
{
    float got[1024];
    assert_int_equal(read_reals(p, output, got, 1024), n);
    near(got, want, n, tolerance, output);
}

/* ---- parameters ---- */

static inline size_t parameter(const cpl_program *p, const char *path)
{
    int64_t i = cpl_parameter_find(p, path);
    if (i < 0)
        fail_msg("no parameter '%s'", path);
    return (size_t)i;
}

static inline int64_t parameter_size(const cpl_program *p, size_t i)
{
    int64_t shape[3], n = 1;
    int rank = cpl_parameter_shape(p, i, shape);
    for (int k = 0; k < rank; k++)
        n *= shape[k];
    return n;
}

static inline void set_parameter(cpl_program *p, const char *path, const float *values, int64_t n)
{
    size_t i = parameter(p, path);
    assert_int_equal(parameter_size(p, i), n);
    memcpy(cpl_parameter_value(p, i), values, (size_t)n * sizeof(float));
}

/* ---- case files ---- */

/* The case's input file, or a skipped test in a build without JSON. */
static inline cpl_json *read_case(const char *name)
{
    char path[512], *text = NULL;
    size_t length = 0;
    cpl_json *root = NULL;
    if (!cpl_json_available())
        skip();
    snprintf(path, sizeof path, "%s/cases/%s", CPL_TEST_DATA, name);
    MUST(cpl_file_read(path, &text, &length, err));
    MUST(cpl_json_parse(&root, text, length, err));
    cpl_release(text);
    return root;
}

static inline float number(const cpl_json *value)
{
    return (float)cpl_json_real(value, NAN);
}

/* An array's numbers; returns how many. */
static inline int64_t numbers(float *to, const cpl_json *array)
{
    int64_t n = (int64_t)cpl_json_size(array);
    for (int64_t i = 0; i < n; i++)
        to[i] = number(cpl_json_at(array, (size_t)i));
    return n;
}

#endif
