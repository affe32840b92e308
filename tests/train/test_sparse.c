/* test_sparse.c: training.optimizer.sparse_embeddings: rows without a gradient wait, all others are updated as ever. */
#include "train/train_test.h"

#include <math.h>

#include "train/optimizer.h"

/* ---- the update alone ---- */

/* An engine with one table, its weights and its gradient. */
typedef struct bench {
    cpl_config *config;
    cpl_engine *engine;
    cpl_optimizer *optimizer;
    int64_t rows, units;
    float *gradients, *w, *g;
} bench;

enum { SPARSE = 1, TIED = 2, MATRIX = 4 }; /* the option; and what else than an embedding the table is */

static bench start(int kind, int threads, int64_t rows, int64_t units, const char *const *set)
{
    bench x = {.rows = rows, .units = units};
    assert_int_equal(cpl_config_default(&x.config, NULL), CPL_OK);
    x.config->training.optimizer.sparse_embeddings = kind & SPARSE;
    for (; set && *set; set++)
        assert_int_equal(cpl_config_set_pair(x.config, *set, NULL), CPL_OK);
    assert_int_equal(cpl_engine_new(&x.engine, threads, 1, NULL), CPL_OK);
    cpl_parameters *p = x.engine->parameters;
    cpl_parameter_info info = {.path = "table", .rank = 2, .size = {rows, units}, .dim = {"entries", "units"},
                               .where = "test:1"};
    assert_true(cpl_parameters_add(p, &info, NULL) == 0);
    cpl_parameters_at(p, 0)->reached = 1;
    cpl_parameters_at(p, 0)->read_as = kind & MATRIX ? CPL_READ_COLUMNS : CPL_READ_ROWS;
    cpl_parameters_at(p, 0)->projects = (kind & TIED) != 0;
    assert_int_equal(cpl_parameters_allocate(p, 1, NULL), CPL_OK);
    x.gradients = cpl_alloc(cpl_parameters_bytes(p), 1);
    x.w = cpl_parameters_value(p, 0), x.g = x.gradients;
    for (int64_t i = 0; i < rows * units; i++)
        x.w[i] = (float)(i % 17 - 8) / 16;
    assert_int_equal(cpl_optimizer_new(&x.optimizer, &x.config->training, x.engine, x.gradients, NULL), CPL_OK);
    return x;
}

static void finish(bench *x)
{
    cpl_optimizer_free(x->optimizer);
    cpl_engine_release(x->engine);
    cpl_release(x->gradients);
    cpl_config_free(x->config);
}

static real *state_of(const bench *x, int i)
{
    const char *name;
    return cpl_optimizer_state(x->optimizer, i, &name);
}

/* A gradient for the row: every fifth element of it, from the third on, is zero. */
static void touch(bench *x, int64_t row, float scale)
{
    for (int64_t i = 0; i < x->units; i++)
        x->g[row * x->units + i] = scale * (float)(i % 5 - 2);
}

static void clear(bench *x)
{
    memset(x->g, 0, (size_t)(x->rows * x->units) * sizeof *x->g);
}

#define NEAR(x, y) assert_true(fabs((double)(x) - (y)) < 1e-6)

/* Adam as Kingma and Ba have it, in double, of one weight: t counts all steps, also those in which the row waits. */
typedef struct by_hand {
    double w, m, v;
} by_hand;

static void adam(by_hand *x, double g, int t)
{
    x->m = 0.9 * x->m + (1 - 0.9) * g;
    x->v = 0.999 * x->v + (1 - 0.999) * g * g;
    x->w -= 0.01 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * x->m / (sqrt(x->v) + 1e-7);
}

/* Row 0 in all steps, row 1 in steps 1 and 3, row 2 in step 2, row 3 never. */
static void adam_by_hand(void **state)
{
    (void)state;
    const double gradient[3][4] = {{0.5, 0.25, 0, 0}, {0.1, 0, -0.75, 0}, {-0.3, 0.125, 0, 0}};
    bench x = start(SPARSE, 2, 4, 2, NULL);
    by_hand want[4];
    for (int r = 0; r < 4; r++)
        want[r] = (by_hand){.w = (double)x.w[2 * r]};
    float never[2] = {x.w[6], x.w[7]};
    for (int t = 1; t <= 3; t++) {
        for (int r = 0; r < 4; r++) {
            x.g[2 * r] = (float)gradient[t - 1][r];
            if (gradient[t - 1][r] != 0)
                adam(&want[r], gradient[t - 1][r], t);
        }
        cpl_optimizer_update(x.optimizer, t, 0.01, 0);
        for (int r = 0; r < 4; r++) {
            NEAR(x.w[2 * r], want[r].w);
            NEAR(state_of(&x, 0)[2 * r], want[r].m);
            NEAR(state_of(&x, 1)[2 * r], want[r].v);
        }
    }
    assert_memory_equal(never, x.w + 6, sizeof never);
    /* A dense update would have moved row 1 in step 2 by its moment of step 1: 0.0066, and decayed both moments. */
    bench dense = start(0, 2, 4, 2, NULL);
    dense.g[2] = 0.25f;
    cpl_optimizer_update(dense.optimizer, 1, 0.01, 0);
    float before = dense.w[2];
    dense.g[2] = 0;
    cpl_optimizer_update(dense.optimizer, 2, 0.01, 0);
    assert_true(before - dense.w[2] > 0.006f);
    finish(&dense);
    finish(&x);
}

/* Rows that wait keep every bit of weights and state; the others are those of a dense update that began alike. Rows of
 * 100 units stand across the pieces that threads take; rows of 20,000 are longer than one. */
static void check_rows(int64_t rows, int64_t units, const int64_t *touched, const char *const *set)
{
    enum { DENSE, THREADS = 3 };
    bench x[1 + THREADS];
    double norm[1 + THREADS];
    size_t row_bytes = (size_t)units * sizeof(float);
    for (int k = 0; k <= THREADS; k++) {
        x[k] = start(k == DENSE ? 0 : SPARSE, k == DENSE ? 2 : k, rows, units, set);
        for (int64_t r = 0; r < rows; r++)
            touch(&x[k], r, 0.01f * (float)(r % 7 + 1));
        cpl_optimizer_update(x[k].optimizer, 1, 0.01, cpl_optimizer_norm(x[k].optimizer));
    }
    float *before = cpl_alloc((size_t)(rows * units), sizeof *before);
    memcpy(before, x[DENSE].w, (size_t)rows * row_bytes);
    for (int k = 0; k <= THREADS; k++) {
        assert_memory_equal(x[k].w, before, (size_t)rows * row_bytes); /* all rows had a gradient */
        clear(&x[k]);
        for (const int64_t *r = touched; *r >= 0; r++)
            touch(&x[k], *r, 3);
        for (int64_t i = 1; i < units; i++) /* of one row all but the first element are zero, of one but the last */
            x[k].g[touched[0] * units + i] = 0, x[k].g[touched[1] * units + units - 1 - i] = 0;
        norm[k] = cpl_optimizer_norm(x[k].optimizer);
        assert_true(norm[k] == norm[DENSE]);
        cpl_optimizer_update(x[k].optimizer, 2, 0.01, norm[k]);
    }
    for (int k = 1; k <= THREADS; k++) {
        const int64_t *next = touched;
        for (int64_t r = 0; r < rows; r++) {
            int waits = r != *next;
            next += !waits;
            assert_memory_equal(x[k].w + r * units, (waits ? before : x[DENSE].w) + r * units, row_bytes);
            int moved = memcmp(x[k].w + r * units, before + r * units, row_bytes) != 0;
            assert_true(waits != moved);
            for (int s = 0; state_of(&x[k], s); s++) {
                const real *kept = state_of(&x[k], s) + r * units, *dense = state_of(&x[DENSE], s) + r * units;
                assert_true((memcmp(kept, dense, row_bytes) == 0) == !waits); /* dense ones fade */
            }
        }
    }
    for (int k = 0; k <= THREADS; k++)
        finish(&x[k]);
    cpl_release(before);
}

static void rows_wait_or_are_as_ever(void **state)
{
    (void)state;
    static const char *const adamw[] = {"training.optimizer.name=adamw", "training.optimizer.weight_decay=0.1", NULL};
    static const char *const momentum[] = {"training.optimizer.name=sgd", "training.optimizer.momentum=0.9", NULL};
    static const char *const norm[] = {"training.clip_norm=1", NULL};
    static const char *const tensor[] = {"training.clip_tensor_norm=1", NULL};
    static const char *const value[] = {"training.clip_value=0.5", NULL};
    const char *const *const sets[] = {NULL, adamw, momentum, norm, tensor, value};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        /* 163 stands across the border of the first two pieces, 327 across the next */
        check_rows(400, 100, (const int64_t[]){0, 163, 164, 327, 399, -1}, sets[i]);
        check_rows(400, 100, (const int64_t[]){163, 327, -1}, sets[i]);
        check_rows(400, 100, (const int64_t[]){162, 164, 328, -1}, sets[i]);
        check_rows(5, 20000, (const int64_t[]){1, 3, -1}, sets[i]);
        check_rows(40, 4, (const int64_t[]){5, 6, 39, -1}, sets[i]);
    }
}

/* The option is for tables of embeddings alone: a projection has a gradient in each row, and where one is zero all the
 * same, the row moves on by its moment. */
static void other_tables_stay_dense(void **state)
{
    (void)state;
    const int kinds[] = {0, SPARSE | TIED, SPARSE | MATRIX};
    for (int k = 0; k < 3; k++) {
        bench x = start(kinds[k], 1, 3, 2, NULL);
        touch(&x, 1, 1);
        cpl_optimizer_update(x.optimizer, 1, 0.01, 0);
        float before = x.w[2];
        clear(&x);
        cpl_optimizer_update(x.optimizer, 2, 0.01, 0);
        assert_true(x.w[2] != before);
        finish(&x);
    }
}

/* A gradient that is no number is one: hiding it would hide that a run has parted. */
static void nan_is_a_gradient(void **state)
{
    (void)state;
    bench x = start(SPARSE, 1, 3, 11, NULL);
    x.g[11 + 10] = NAN;
    cpl_optimizer_update(x.optimizer, 1, 0.01, 0);
    assert_true(isnan(x.w[11 + 10]) && x.w[0] == -0.5f && x.w[22] == -0.1875f);
    finish(&x);
}

/* ---- runs ---- */

/* "luna" and "moon" are words that no pair has; a batch of two pairs lacks some of the others too. */
static const char config[] = "model: {units: 8}\n"
                             "text: {source: {vocabulary: from.txt}, target: {vocabulary: to.txt}}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 2, show_examples: 1, threads: 2, max_steps: 12, log_every: 1,\n"
                             "           checkpoint_every: 1,\n"
                             "           optimizer: {learning_rate: 0.01, sparse_embeddings: true}}\n";

static int make_runs(void **state)
{
    if (make_top(state) != 0)
        return -1;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 5);
    put_file("from.txt", "\n[UNK]\n[START]\n[END]\nuno\ndos\ntres\ncasa\nperro\ngato\nagua\nsol\nluna\n");
    put_file("to.txt", "\n[UNK]\n[START]\n[END]\none\ntwo\nthree\nhouse\ndog\ncat\nwater\nsun\nmoon\n");
    put_file("config.yaml", config);
    run whole = {.folder = "whole"};
    return train(&whole) == CPL_OK ? 0 : -1;
}

enum { UNITS = 8, LUNA = 12 };

static void table_of(const char *folder, const char *side, float rows[13][UNITS])
{
    char path[700], name[100];
    cpl_tensor_file *f;
    snprintf(path, sizeof path, "%s/%s/checkpoint.safetensors", top, folder);
    snprintf(name, sizeof name, "%s.embedding.kernel", side);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    const cpl_tensor_entry *e = cpl_tensor_file_find(f, name);
    assert_non_null(e);
    assert_int_equal(cpl_tensor_elements(e), 13 * UNITS);
    memcpy(rows, e->data, 13 * UNITS * sizeof(float));
    cpl_tensor_file_close(f);
}

static int same_files(const char *a, const char *b)
{
    float x[13][UNITS], y[13][UNITS];
    table_of(a, "encoder", x), table_of(b, "encoder", y);
    return memcmp(x, y, sizeof x) == 0;
}

/* Where all moments are zero, a dense update leaves the same rows alone: one step is the same to the bit. */
static void the_first_step_is_the_dense_one(void **state)
{
    (void)state;
    run sparse = {.folder = "one", .set = {"training.max_steps=1"}};
    run dense = {.folder = "one-dense", .set = {"training.max_steps=1", "training.optimizer.sparse_embeddings=false"}};
    run later = {.folder = "dense", .set = {"training.optimizer.sparse_embeddings=false"}};
    assert_int_equal(train(&sparse), CPL_OK);
    assert_int_equal(train(&dense), CPL_OK);
    assert_int_equal(train(&later), CPL_OK);
    assert_same_tensors("one", "one-dense", "checkpoint.safetensors");
    assert_false(same_files("whole", "dense"));
}

static void threads_and_interruptions_change_no_bit(void **state)
{
    (void)state;
    run threads[] = {{.folder = "t1", .set = {"training.threads=1"}}, {.folder = "t3", .set = {"training.threads=3"}}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(train(&threads[i]), CPL_OK);
        assert_same_tensors("whole", threads[i].folder, "checkpoint.safetensors");
    }
    run r = {.folder = "resumed", .stop_at = 5};
    assert_int_equal(train(&r), CPL_STOPPED);
    r.resume = 1, r.stop_at = 0;
    run other = {.folder = "resumed", .resume = 1, .set = {"training.optimizer.sparse_embeddings=false"}};
    assert_int_equal(train(&other), CPL_USAGE); /* another update is another run */
    assert_int_equal(train(&r), CPL_OK);
    assert_same_tensors("whole", "resumed", "checkpoint.safetensors");
    assert_same_tensors("whole", "resumed", "model.safetensors");
}

/* Decay would move a row that no batch has; so it would where an update has several batches, or weights an average. */
static void a_word_that_never_occurs_stays(void **state)
{
    (void)state;
    run r[] = {{.folder = "decay"}, {.folder = "decay-grouped", .set = {"training.accumulate=4", "training.ema=0.9"}},
               {.folder = "decay-dense", .set = {"training.optimizer.sparse_embeddings=false"}}};
    run begun = {.folder = "begun", .set = {"training.max_steps=1", "training.optimizer.learning_rate=0"}};
    float first[2][13][UNITS], last[13][UNITS];
    assert_int_equal(train(&begun), CPL_OK);
    table_of("begun", "encoder", first[0]), table_of("begun", "decoder", first[1]);
    for (int i = 0; i < 3; i++) {
        int n = i == 1 ? 2 : i == 2;
        r[i].set[n] = "training.optimizer.name=adamw", r[i].set[n + 1] = "training.optimizer.weight_decay=0.1";
        assert_int_equal(train(&r[i]), CPL_OK);
        for (int side = 0; side < 2; side++) {
            table_of(r[i].folder, side ? "decoder" : "encoder", last);
            int stays = memcmp(first[side][LUNA], last[LUNA], sizeof last[LUNA]) == 0;
            assert_true(stays == (i < 2));
            for (int word = 4; word < LUNA; word++)
                assert_memory_not_equal(first[side][word], last[word], sizeof last[word]);
        }
    }
}

/* The budget with which half of the activations of this run fit. */
static void half_the_activations(const char *const set[2], char budget[64])
{
    char path[700], *text;
    cpl_json *root;
    snprintf(path, sizeof path, "%s/config.yaml", top);
    cpl_train_options o = {.config_path = path, .set = set, .set_count = 2};
    assert_int_equal(cpl_plan(&o, 1, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    const cpl_json *parts = cpl_json_get(root, "parts");
    double peak = number(root, "peak_bytes") - (cpl_json_get(parts, "reading") ? number(parts, "reading") : 0);
    peak -= 0.5 * number(parts, "activations");
    assert_true(number(root, "sparse_parameters") == 2 * 13 * UNITS);
    snprintf(budget, 64, "training.memory=%lld", (long long)(peak + (1 << 18) + peak / 256));
    cpl_json_free(root);
    cpl_free(text);
}

/* A batch in pieces has the gradient of the whole: the same rows wait, and the others agree but for rounding. */
static void pieces_of_a_batch_are_one_update(void **state)
{
    (void)state;
    char budget[64];
    const char *const set[] = {"data.train=long.tsv", "training.batch_size=16"};
    put_pairs_of_lengths("long.tsv", 60, 40);
    half_the_activations(set, budget);
    run whole = {.folder = "uncut", .set = {set[0], set[1]}}, cut = {.folder = "cut", .set = {set[0], set[1], budget}};
    assert_int_equal(train(&whole), CPL_OK);
    assert_int_equal(train(&cut), CPL_OK);
    cpl_json *e;
    assert_int_equal(read_events("cut", "start", &e, 1), 1);
    assert_true(number(e, "micro_batch") < 16 || number(e, "recomputed_calls") > 0);
    cpl_json_free(e);
    for (int side = 0; side < 2; side++) {
        float x[13][UNITS], y[13][UNITS];
        table_of("uncut", side ? "decoder" : "encoder", x), table_of("cut", side ? "decoder" : "encoder", y);
        for (int i = 0; i < UNITS; i++) {
            for (int r = 0; r < 13; r++)
                assert_true(fabsf(x[r][i] - y[r][i]) < 1e-4f);
            assert_true(x[LUNA][i] == y[LUNA][i]);
        }
    }
}

/* The log says which weights it is for; where there are none, a warning does. */
static void it_is_told(void **state)
{
    (void)state;
    const struct { const char *set[2]; double weights; int warnings; } cases[] = {
        {{NULL}, 2 * 13 * UNITS, 0}, {{"model.tie=target"}, 13 * UNITS, 0},
        {{"training.freeze=['decoder.embedding']"}, 13 * UNITS, 0},
        {{"training.freeze=['*.embedding']"}, 0, 1}, {{"model.tie=target", "training.freeze=['encoder']"}, 0, 1}};
    char folder[40];
    cpl_json *e;
    for (int i = 0; i < 5; i++) {
        snprintf(folder, sizeof folder, "told%d", i);
        run r = {.folder = folder, .set = {"training.max_steps=2", cases[i].set[0], cases[i].set[1]}};
        assert_int_equal(train(&r), CPL_OK);
        int told = strstr(r.warned, "'training.optimizer.sparse_embeddings' changes nothing") != NULL;
        assert_int_equal(told, cases[i].warnings);
        assert_int_equal(read_events(folder, "start", &e, 1), 1);
        assert_true(number(e, "sparse_parameters") == cases[i].weights);
        cpl_json_free(e);
    }
    assert_int_equal(read_events("dense", "start", &e, 1), 1);
    assert_null(cpl_json_get(e, "sparse_parameters"));
    cpl_json_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_by_hand), cmocka_unit_test(rows_wait_or_are_as_ever),
        cmocka_unit_test(other_tables_stay_dense), cmocka_unit_test(nan_is_a_gradient),
        cmocka_unit_test(the_first_step_is_the_dense_one), cmocka_unit_test(threads_and_interruptions_change_no_bit),
        cmocka_unit_test(a_word_that_never_occurs_stays), cmocka_unit_test(pieces_of_a_batch_are_one_update),
        cmocka_unit_test(it_is_told)};
    return cmocka_run_group_tests(tests, make_runs, remove_top);
}
