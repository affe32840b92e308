/* Additive attention against Keras's values, and the plain scores dot and general against their formulas. */
#include "support/run.h"

#include <math.h>
#include <string.h>
#include "support/golden.h"

static cpl_node *project(cpl_graph *g, cpl_node *x, const char *proj, cpl_input_type type, const char *shape)
{
    return cpl_sum(g, cpl_multiply(g, x, cpl_input(g, proj, type, shape)));
}

/* The query h [batch units] of the file is one step of t. */
static void additive(cpl_graph *g, const void *user)
{
    const cpl_score *score = user;
    cpl_node *h = cpl_input(g, "h", CPL_REALS(8), "batch padded units");
    cpl_node *enc = cpl_input(g, "enc", CPL_REALS(8), "batch s units");
    cpl_watch(g, "grad.h", h);
    cpl_watch(g, "grad.enc", enc);
    cpl_node *q = cpl_pack(g, h, "t");
    cpl_attention_result a = score ? cpl_attention(g, "additive", q, enc, &(cpl_attention_options){.score = *score})
                                   : cpl_additive_attention(g, "additive", q, enc, NULL);
    cpl_output(g, "context", a.y);
    cpl_output(g, "weights", a.weights);
    cpl_node *total = project(g, a.y, "proj.context", CPL_REALS(8), "batch t units");
    cpl_minimize(g, cpl_add(g, total, project(g, a.weights, "proj.weights", CPL_REALS(0), "batch t s")));
}

static const char *const names[][2] = {
    {"additive.query.kernel", "additive/query/kernel"}, {"additive.query.bias", "additive/query/bias"},
    {"additive.key.kernel", "additive/key/kernel"},     {"additive.key.bias", "additive/key/bias"},
    {"additive.score.kernel", "additive/score/kernel"}, {"additive.score.bias", "additive/score/bias"}};
enum { NAMES = sizeof names / sizeof names[0] };

/* Feeds a tensor [batch n] as [batch 1 n]. */
static void feed_step(const golden *g, cpl_program *p, const char *input, const char *name)
{
    cpl_array a = golden_array(g, name);
    cpl_array step = {.type = a.type, .rank = 3, .data = a.data, .shape = {a.shape[0], 1, a.shape[1]}};
    MUST(cpl_feed(p, input, &step, err));
}

static void feed(const golden *g, cpl_program *p)
{
    static const uint8_t whole[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    int64_t batch = golden_find(g, "in.h")->shape[0];
    feed_step(g, p, "h", "in.h");
    golden_feed_mask(g, p, "s", "in.mask");
    MUST(cpl_feed_mask(p, "t", whole, batch, 1, err));
    golden_feed(g, p, "enc", "in.enc");
    feed_step(g, p, "proj.context", "proj.context");
    feed_step(g, p, "proj.weights", "proj.weights");
}

/* A watched gradient against the file, relative to its largest value. */
static void check_watch(const golden *g, cpl_program *p, const char *name)
{
    const cpl_tensor_entry *t = golden_find(g, name);
    double largest = 0;
    for (int64_t i = 0; i < (int64_t)cpl_tensor_elements(t); i++)
        largest = fabs(golden_at(t, i)) > largest ? fabs(golden_at(t, i)) : largest;
    golden_check_output(g, p, name, name, 2e-4 * largest, NULL);
}

/* By its own function, and as a choice of cpl_attention. */
static void additive_attention(void **state)
{
    static const cpl_score choice = CPL_SCORE_ADDITIVE;
    const void *const ways[] = {NULL, &choice};
    char name[160];
    (void)state;
    for (int way = 0; way < 2; way++) {
        golden g = golden_open("additive_attention");
        cpl_program *p;
        MUST(cpl_compile(&p, additive, ways[way], &(cpl_compile_options){.name = "additive"}, err));
        for (int i = 0; i < NAMES; i++) {
            snprintf(name, sizeof name, "w.%s", names[i][1]);
            golden_set(&g, p, names[i][0], name);
        }
        for (int mode = CPL_EVALUATE; mode <= CPL_TRAIN; mode++) {
            feed(&g, p);
            MUST(cpl_run(p, (cpl_mode)mode, err));
            golden_check_output(&g, p, "context", "out.context", 2e-5, NULL);
            golden_check_output(&g, p, "weights", "out.weights", 2e-5, NULL);
        }
        for (int i = 0; i < NAMES; i++) {
            snprintf(name, sizeof name, "grad.w.%s", names[i][1]);
            golden_check_gradient(&g, p, names[i][0], name, strcmp(names[i][0], "additive.score.bias") == 0);
        }
        check_watch(&g, p, "grad.h");
        check_watch(&g, p, "grad.enc");
        cpl_program_free(p);
        golden_close(&g);
    }
}

/* ---- dot and general ---- */

enum { UNITS = 3, TIME = 2, SOURCE = 4 };

static void plain(cpl_graph *g, const void *user)
{
    cpl_node *q = cpl_input(g, "q", CPL_REALS(UNITS), "batch t units");
    cpl_node *m = cpl_input(g, "m", CPL_REALS(UNITS), "batch s units");
    cpl_watch(g, "grad.q", q);
    cpl_watch(g, "grad.m", m);
    cpl_attention_options o = {.score = *(const cpl_score *)user};
    cpl_attention_result a = cpl_attention(g, "plain", q, m, &o);
    cpl_output(g, "context", a.y);
    cpl_node *loss = project(g, a.y, "proj", CPL_REALS(UNITS), "batch t units");
    cpl_output(g, "loss", loss);
    cpl_minimize(g, loss);
}

typedef struct plain_data {
    double q[TIME * UNITS], m[SOURCE * UNITS], w[UNITS * UNITS], proj[TIME * UNITS];
} plain_data;

/* Σ proj · context by the formula: scores q·W·m_s of the `exist` first source steps. */
static double plain_loss(const plain_data *d, int exist)
{
    double loss = 0;
    for (int i = 0; i < TIME; i++) {
        double weight[SOURCE], sum = 0;
        for (int j = 0; j < exist; j++) {
            double score = 0;
            for (int a = 0; a < UNITS; a++)
                for (int b = 0; b < UNITS; b++)
                    score += d->q[i * UNITS + a] * d->w[a * UNITS + b] * d->m[j * UNITS + b];
            sum += weight[j] = exp(score);
        }
        for (int j = 0; j < exist; j++)
            for (int c = 0; c < UNITS; c++)
                loss += weight[j] / sum * d->m[j * UNITS + c] * d->proj[i * UNITS + c];
    }
    return loss;
}

static double slope(plain_data *d, double *x, int exist)
{
    double saved = *x, up;
    *x = saved + 1e-5;
    up = plain_loss(d, exist);
    *x = saved - 1e-5;
    double down = plain_loss(d, exist);
    *x = saved;
    return (up - down) / 2e-5;
}

static void check_watched(cpl_program *p, const char *name, plain_data *d, double *x, int n, int exist)
{
    float got[SOURCE * UNITS];
    int64_t shape[6];
    int rank;
    MUST(cpl_read(p, name, got, SOURCE * UNITS, shape, &rank, err));
    for (int i = 0; i < n; i++)
        assert_true(fabs((double)got[i] - slope(d, x + i, exist)) < 1e-5);
}

static void feed_plain(cpl_program *p, const char *input, const double *x, int64_t time, const int64_t *length)
{
    MUST(cpl_feed(p, input, &(cpl_array){.type = CPL_FLOAT64, .rank = 3, .shape = {1, time, UNITS}, .data = x,
                                         .lengths = length}, err));
}

static void plain_scores(void **state)
{
    static const cpl_score scores[] = {CPL_SCORE_DOT, CPL_SCORE_GENERAL};
    static const int64_t exist = 3;
    (void)state;
    for (int k = 0; k < 2; k++) {
        plain_data d;
        double *const all = (double *)&d;
        for (size_t i = 0; i < sizeof d / sizeof *all; i++)
            all[i] = sin(1.0 + 2.7 * (double)i);
        for (int i = 0; k == 0 && i < UNITS * UNITS; i++)
            d.w[i] = i % (UNITS + 1) == 0; /* dot: the unit matrix */
        cpl_program *p;
        MUST(cpl_compile(&p, plain, &scores[k], &(cpl_compile_options){.name = "plain"}, err));
        assert_int_equal(cpl_parameter_count(p), k);
        for (int i = 0; k == 1 && i < UNITS * UNITS; i++)
            cpl_parameter_value(p, 0)[i] = (float)d.w[i];
        feed_plain(p, "q", d.q, TIME, NULL);
        feed_plain(p, "m", d.m, SOURCE, &exist);
        feed_plain(p, "proj", d.proj, TIME, NULL);
        MUST(cpl_run(p, CPL_TRAIN, err));
        assert_true(fabs(cpl_scalar(p, "loss") - plain_loss(&d, (int)exist)) < 1e-5);
        check_watched(p, "grad.q", &d, d.q, TIME * UNITS, (int)exist);
        check_watched(p, "grad.m", &d, d.m, SOURCE * UNITS, (int)exist);
        for (int i = 0; k == 1 && i < UNITS * UNITS; i++)
            assert_true(fabs((double)cpl_parameter_gradient(p, 0)[i] - slope(&d, &d.w[i], (int)exist)) < 1e-5);
        cpl_program_free(p);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(additive_attention), cmocka_unit_test(plain_scores)};

CPL_TEST_MAIN(tests)
