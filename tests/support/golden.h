/* golden.h: reading a golden file and comparing with it (tolerances: tests/golden/README.md). */
#ifndef CPL_TESTS_SUPPORT_GOLDEN_H
#define CPL_TESTS_SUPPORT_GOLDEN_H

#include "couplet.h"
#include "io/io.h"

typedef struct golden {
    cpl_tensor_file *file;
} golden;

golden golden_open(const char *name); /* tests/golden/NAME.safetensors; fails the test when it cannot */
void golden_close(golden *g);

const cpl_tensor_entry *golden_find(const golden *g, const char *name); /* fails the test when missing */
double golden_at(const cpl_tensor_entry *t, int64_t i);

/* The tensor as an array to feed. */
cpl_array golden_array(const golden *g, const char *name);
void golden_feed(const golden *g, cpl_program *p, const char *input, const char *name);
void golden_feed_mask(const golden *g, cpl_program *p, const char *time, const char *name);

/* Sets the parameter `path` to the tensor `name` (same number of elements). */
void golden_set(const golden *g, cpl_program *p, const char *path, const char *name);

/* |got − want| ≤ tolerance everywhere; mask (ids, may be NULL): only where it is not 0, `inner` elements for each. */
void golden_check(const golden *g, const char *name, const float *got, int64_t n, double tolerance,
                  const cpl_tensor_entry *mask);
/* An output of the program against a tensor. */
void golden_check_output(const golden *g, cpl_program *p, const char *output, const char *name, double tolerance,
                         const cpl_tensor_entry *mask);
/* A parameter's gradient: within 2e-4 of the tensor's largest value; zero_gradient: below 2e-6 absolute instead. */
void golden_check_gradient(const golden *g, cpl_program *p, const char *path, const char *name, int zero_gradient);

/* ---- whole models ---- */

/* A parameter's path here and its name in the file. zero_gradient: its true gradient is zero. */
typedef struct golden_name {
    const char *ours, *theirs;
    int zero_gradient;
} golden_name;

typedef void (*golden_feeder)(const golden *g, cpl_program *p);

/* Sets all parameters of a list that ends with a NULL; prefix "w.". */
void golden_load(const golden *g, cpl_program *p, const golden_name *names, const char *prefix);
/* One training run, whose loss is within 1e-4, relative, of that of step (from 0); the update is the caller's. */
void golden_check_step(const golden *g, cpl_program *p, int step, golden_feeder feed);
/* Loss, accuracy and gradients, then 20 steps of Adam on the same batch: the loss before each, the weights after. */
void golden_check_training(const golden *g, cpl_program *p, const golden_name *names, golden_feeder feed);

#define MUST(call)                                                                                                   \
    do {                                                                                                             \
        cpl_error must_error = CPL_ERROR_INIT;                                                                       \
        cpl_error *err = &must_error;                                                                                \
        if ((call) != CPL_OK) {                                                                                      \
            cpl_error_print(err, stderr);                                                                            \
            fail_msg("%s", #call);                                                                                   \
        }                                                                                                            \
    } while (0)

#endif
