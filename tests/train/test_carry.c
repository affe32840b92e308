/* States carried over the chunks of long documents, in training and running (case D10). */
#include <math.h>
#include "graph/graph_test.h"

/* A GRU of one unit; loss Σ (y − target)². */
static void model(cpl_graph *g, const void *user)
{
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch s in"), *h = cpl_input(g, "h", CPL_REALS(1), "batch units");
    cpl_node *target = cpl_input(g, "target", CPL_REALS(1), "batch s units");
    cpl_rnn_result r = cpl_rnn(g, "rnn", x, &(cpl_rnn_options){.units = 1, .h = h});
    cpl_node *d = cpl_add(g, r.y, cpl_scale(g, target, -1)), *loss = cpl_sum(g, cpl_multiply(g, d, d));
    (void)user;
    cpl_output(g, "y", r.y);
    cpl_output(g, "state", r.h);
    cpl_output(g, "loss", loss);
    cpl_minimize(g, loss);
}

/* With D01's weights. */
static cpl_program *carrying(void)
{
    cpl_json *c = read_case("D01_gru_reset.json");
    cpl_program *p = compiled(model, NULL, NULL);
    float w[6];
    numbers(w, cpl_json_at(cpl_json_get(c, "kernel"), 0));
    set_parameter(p, "rnn.kernel", w, 3);
    numbers(w, cpl_json_at(cpl_json_get(c, "recurrent"), 0));
    set_parameter(p, "rnn.recurrent_kernel", w, 3);
    numbers(w, cpl_json_get(c, "bias_input"));
    numbers(w + 3, cpl_json_get(c, "bias_recurrent"));
    set_parameter(p, "rnn.bias", w, 6);
    cpl_json_free(c);
    MUST(cpl_carry(p, "state", "h", err));
    return p;
}

/* Rows of `width` numbers, of which `lengths` exist (NULL: all). */
static cpl_status feed_chunk(cpl_program *p, const float *x, const int64_t *lengths, int64_t batch, int64_t width,
                             cpl_error *err)
{
    float target[16] = {0.5f, 0.25f, -0.5f, 1, 0.125f, -1};
    cpl_array a = reals(x, 3, batch, width, 1), b = reals(target, 3, batch, width, 1);
    a.lengths = b.lengths = lengths;
    cpl_status status = cpl_feed(p, "x", &a, err);
    return status == CPL_OK ? cpl_feed(p, "target", &b, err) : status;
}

/* ---- one document ---- */

typedef struct document {
    cpl_program *p;
    float x[6], got[24];
    int64_t chunk;  /* numbers in a batch */
    int reset_at;   /* batch before which the state is reset; −1: none */
    int count;      /* numbers read */
} document;

static cpl_status feed_document(cpl_program *p, int64_t epoch, int64_t batch, void *user, cpl_error *err)
{
    document *d = user;
    (void)epoch;
    cpl_status status = batch == d->reset_at ? cpl_carry_reset(p, (const uint8_t[]){1}, 1, err) : CPL_OK;
    if (status != CPL_OK)
        return status;
    return feed_chunk(p, d->x + batch * d->chunk, NULL, 1, d->chunk, err);
}

static void read_step(void *user, const cpl_progress_event *e)
{
    document *d = user;
    (void)e;
    read_reals(d->p, "y", d->got + d->count, 6);
    d->count += (int)d->chunk;
}

/* Two epochs and a validation after each: every pass over the document begins anew. The rate moves no weight. */
static void fit(document *d)
{
    cpl_batches data = {6 / d->chunk, feed_document, d};
    cpl_fit_rules rules = {.epochs = 2, .learning_rate = 1e-30, .on_step = read_step, .user = d};
    d->p = carrying();
    MUST(cpl_fit(d->p, &data, &data, &rules, NULL, err));
    assert_int_equal(d->count, 12);
    cpl_program_free(d->p);
}

static void case_D10_states_carried_in_training(void **state)
{
    (void)state;
    cpl_json *c = read_case("D10_state_carry.json");
    float full[6], reset[3];
    document d = {.reset_at = -1};
    numbers(d.x, cpl_json_get(c, "x"));
    numbers(full, cpl_json_get(c, "expect_full"));
    numbers(reset, cpl_json_get(c, "second_chunk_after_reset"));
    for (d.chunk = 6; d.chunk > 0; d.chunk = d.chunk == 6 ? 3 : d.chunk == 3 ? 1 : 0, d.count = 0) {
        fit(&d);
        near(d.got, full, 6, 1e-5, "first epoch");
        near(d.got + 6, full, 6, 1e-5, "second epoch");
    }
    d.chunk = 3, d.reset_at = 1, d.count = 0;
    fit(&d);
    near(d.got, full, 3, 1e-5, "before the reset");
    near(d.got + 3, reset, 3, 1e-5, "after the reset");
    cpl_json_free(c);
}

/* ---- what is learned: each chunk's loss, with the state before it as a number ---- */

static double loss_from(cpl_program *p, const float *x, float h)
{
    MUST(feed_chunk(p, x, NULL, 1, 3, err));
    feed(p, "h", reals(&h, 2, 1, 1, 0));
    run(p, CPL_EVALUATE);
    return cpl_scalar(p, "loss");
}

static void case_D10_no_gradient_between_chunks(void **state)
{
    (void)state;
    cpl_json *c = read_case("D10_state_carry.json");
    float x[6], h, gradient[6];
    numbers(x, cpl_json_get(c, "x"));
    cpl_program *p = carrying();
    size_t bias = (size_t)cpl_parameter_find(p, "rnn.bias");
    for (int chunk = 0; chunk < 2; chunk++) {
        MUST(feed_chunk(p, x + 3 * chunk, NULL, 1, 3, err));
        run(p, CPL_TRAIN);
        if (chunk == 0)
            read_reals(p, "state", &h, 1);
    }
    memcpy(gradient, cpl_parameter_gradient(p, bias), sizeof gradient);
    for (int k = 0; k < 6; k++) {
        float *w = cpl_parameter_value(p, bias) + k, old = *w;
        *w = old + 1e-2f;
        double above = loss_from(p, x + 3, h);
        *w = old - 1e-2f;
        double below = loss_from(p, x + 3, h);
        *w = old;
        assert_true(fabs((above - below) / 2e-2 - (double)gradient[k]) < 2e-4);
    }
    cpl_program_free(p);
    cpl_json_free(c);
}

/* ---- several documents: each row has its own state, whatever the lengths in a batch ---- */

static void case_D10_rows_keep_their_documents(void **state)
{
    (void)state;
    cpl_json *c = read_case("D10_state_carry.json");
    float x[6], full[6], y[8];
    numbers(x, cpl_json_get(c, "x"));
    numbers(full, cpl_json_get(c, "expect_full"));
    const float first[] = {x[0], x[1], 0, 0, /**/ x[0], x[1], x[2], x[3]};
    const float second[] = {x[2], x[3], x[4], /**/ x[0], x[1], 0};
    cpl_program *p = carrying();
    MUST(feed_chunk(p, first, (const int64_t[]){2, 4}, 2, 4, err));
    run(p, CPL_TRAIN);
    read_reals(p, "y", y, 8);
    near(y, full, 2, 1e-5, "row 0, first chunk");
    near(y + 4, full, 4, 1e-5, "row 1, first chunk");
    MUST(cpl_carry_reset(p, (const uint8_t[]){0, 1}, 2, err)); /* row 1 begins another document */
    MUST(feed_chunk(p, second, (const int64_t[]){3, 2}, 2, 3, err));
    run(p, CPL_TRAIN);
    read_reals(p, "y", y, 8);
    near(y, full + 2, 3, 1e-5, "row 0 goes on");
    near(y + 3, full, 2, 1e-5, "row 1 begins");
    MUST(cpl_carry_reset(p, NULL, 0, err)); /* everything begins; another number of rows is fine */
    MUST(feed_chunk(p, x, NULL, 1, 6, err));
    run(p, CPL_EVALUATE);
    output_is(p, "y", full, 6, 1e-5);
    cpl_program_free(p);
    cpl_json_free(c);
}

static void case_D10_mistakes_are_named(void **state)
{
    (void)state;
    const float x[6] = {1, 2, 3, 4, 5, 6};
    cpl_program *p = carrying();
    REFUSED(cpl_carry(p, "end", "h", err), "has no output 'end'");
    REFUSED(cpl_carry(p, "state", "start", err), "has no input 'start'");
    REFUSED(cpl_carry(p, "y", "target", err), "'y' is [batch s units=1]", "expected both [batch units]");
    REFUSED(cpl_carry(p, "state", "h", err), "'h' is carried from 'state' already");
    MUST(feed_chunk(p, x, NULL, 1, 3, err));
    run(p, CPL_TRAIN);
    MUST(feed_chunk(p, x, NULL, 2, 3, err));
    REFUSED(cpl_run(p, CPL_TRAIN, err), "the batch has 2 rows but the carried state 'state' has 1");
    REFUSED(cpl_carry_reset(p, (const uint8_t[]){1, 0}, 2, err), "row 1 goes on", "the run before had 1 rows");
    MUST(cpl_carry_reset(p, (const uint8_t[]){0, 1}, 2, err));
    run(p, CPL_TRAIN);
    cpl_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_D10_states_carried_in_training), cmocka_unit_test(case_D10_no_gradient_between_chunks),
        cmocka_unit_test(case_D10_rows_keep_their_documents), cmocka_unit_test(case_D10_mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
