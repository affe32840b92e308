/* test_budget.c: a budget for the memory: what fits, how batches are cut, that the result stays the same, and what a
 * refusal says. */
#include "train/train_test.h"

#include <math.h>

#include "train/limit.h"
#include "train/trainer.h"

#define CONFIG(training)                                                                                               \
    "model: {units: 24, dropout: {embedding: 0.3, layer: 0.3, recurrent: 0.3, attention: 0.1, word: 0.1}}\n"           \
    "data: {train: train.tsv, valid: valid.tsv}\ntraining: {threads: 1, log_every: 1, " training "}\n"

/* ---- helpers ---- */

/* `plan --json` with this much memory (NULL: as the configuration says). NULL: refused, err says why. */
static cpl_json *plan(const char *memory, cpl_error *err)
{
    char config[700], *text;
    snprintf(config, sizeof config, "%s/config.yaml", top);
    cpl_train_options o = {.config_path = config, .memory = memory};
    cpl_json *root;
    if (cpl_plan(&o, 1, &text, err) != CPL_OK)
        return NULL;
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    cpl_free(text);
    return root;
}

/* Planned bytes of training itself: what reading took before depends on what this process did earlier. */
static double peak_of(const cpl_json *plan)
{
    const cpl_json *reading = cpl_json_get(cpl_json_get(plan, "parts"), "reading");
    return number(plan, "peak_bytes") - (reading ? cpl_json_real(reading, 0) : 0);
}

/* A budget that leaves this share of the activations of whole batches. */
static int64_t budget_of(double share)
{
    cpl_json *root = plan(NULL, NULL);
    assert_non_null(root);
    double peak = peak_of(root), activations = number(cpl_json_get(root, "parts"), "activations");
    cpl_json_free(root);
    return (int64_t)(peak - (1 - share) * activations + (1 << 18) + peak / 256);
}

static const char *memory_set(char text[64], int64_t bytes)
{
    snprintf(text, 64, "training.memory=%" PRId64, bytes);
    return text;
}

/* All lines of an error and its hint say this. */
static int says(const cpl_error *e, const char *text)
{
    for (int i = 0; i < e->lines; i++)
        if (strstr(e->line[i], text))
            return 1;
    return strstr(e->hint, text) != NULL;
}

#define assert_says(e, text)                                                                                           \
    do {                                                                                                               \
        if (!says((e), (text))) {                                                                                      \
            cpl_error_print((e), stderr);                                                                              \
            fail_msg("the error does not say: %s", (text));                                                            \
        }                                                                                                              \
    } while (0)

static int exists(const char *folder)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", top, folder);
    return cpl_file_exists(path);
}

/* ---- the same result ---- */

/* Steps, validations and weights of a run in pieces are those of a run in whole batches, dropout included. */
static void same_result(const char *whole, const char *pieces, double share)
{
    char memory[64];
    run a = {.folder = whole}, b = {.folder = pieces, .set = {memory_set(memory, budget_of(share))}};
    cpl_json *from[64], *to[64], *start;
    assert_int_equal(train(&a), CPL_OK);
    assert_int_equal(train(&b), CPL_OK);
    assert_int_equal(read_events(pieces, "start", &start, 1), 1);
    assert_true(number(start, "micro_batch") >= 1);
    assert_true(number(start, "micro_batch") < 16 || number(start, "recomputed_calls") > 0);
    cpl_json_free(start);
    const char *const events[] = {"step", "epoch"}, *const keys[] = {"loss", "val_loss"};
    for (int i = 0; i < 2; i++) {
        size_t n = read_events(whole, events[i], from, 64);
        assert_int_equal(read_events(pieces, events[i], to, 64), n);
        assert_true(n > 1);
        for (size_t k = 0; k < n; k++) {
            double x = number(from[k], keys[i]), y = number(to[k], keys[i]);
            assert_true(x > 0 && fabs(x - y) <= 1e-4 * x);
            if (i == 1)
                assert_int_equal(number(to[k], "plans"), 2); /* nothing came that was not planned */
            cpl_json_free(from[k]);
            cpl_json_free(to[k]);
        }
    }
}

static void pieces_give_the_same_result(void **state)
{
    (void)state;
    put_pairs_of_lengths("train.tsv", 75, 40);
    put_pairs_of_lengths("valid.tsv", 20, 40);
    put_file("config.yaml", CONFIG("batch_size: 16, epochs: 3, clip_norm: 1, show_examples: 2"));
    same_result("half", "half_pieces", 0.5);
    same_result("quarter", "quarter_pieces", 0.25);
}

static int runs_again(const cpl_json *facts)
{
    return strcmp(cpl_json_text(cpl_json_get(facts, "recompute"), NULL), "none") != 0;
}

/* Among ever smaller budgets there is one in which calls run again; with it the same is learned. */
static void recomputation_gives_the_same_result(void **state)
{
    (void)state;
    char value[32];
    put_pairs_of_lengths("train.tsv", 75, 40);
    put_pairs_of_lengths("valid.tsv", 20, 40);
    put_file("config.yaml", CONFIG("batch_size: 16, epochs: 2, clip_norm: 1, show_examples: 0"));
    double share = 0.97;
    for (int found = 0; !found; assert_true(share > 0.05)) {
        share -= 0.03;
        snprintf(value, sizeof value, "%" PRId64, budget_of(share));
        cpl_json *p = plan(value, NULL), *start;
        assert_non_null(p);
        found = runs_again(p);
        assert_true(!found || (number(p, "recomputed_calls") > 0 && number(p, "recompute_saved_bytes") > 0));
        cpl_json_free(p);
        if (!found)
            continue;
        same_result("plain", "again", share);
        assert_int_equal(read_events("again", "start", &start, 1), 1);
        assert_true(runs_again(start) && number(start, "recomputed_calls") > 0);
        cpl_json_free(start);
    }
}

/* The budget may change on resume. */
static void memory_may_differ_on_resume(void **state)
{
    (void)state;
    char memory[64];
    put_pairs_of_lengths("train.tsv", 40, 30);
    put_pairs_of_lengths("valid.tsv", 10, 30);
    put_file("config.yaml", CONFIG("batch_size: 8, epochs: 2"));
    run r = {.folder = "resumed", .stop_at = 3};
    assert_int_equal(train(&r), CPL_STOPPED);
    r = (run){.folder = "resumed", .resume = 1, .set = {memory_set(memory, budget_of(0.5))}};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 7);
}

/* ---- C03 ---- */

static void product(cpl_graph *g, const void *user)
{
    (void)user;
    cpl_node *x = cpl_input(g, "x", CPL_REALS(1), "batch t in");
    cpl_node *y = cpl_dense(g, "w", x, &(cpl_dense_options){.units = 1, .no_bias = 1});
    cpl_minimize(g, cpl_sum(g, y));
}

/* A run whose gradient is that of a mean over `tokens` tokens, each with the gradient `each`. */
static void run_part(cpl_program *p, int64_t tokens, float each, cpl_batch_part part)
{
    float x[8];
    for (int64_t i = 0; i < tokens; i++)
        x[i] = each / (float)tokens;
    p->part = part;
    cpl_array array = {.type = CPL_FLOAT32, .rank = 3, .shape = {1, tokens, 1}, .data = x};
    assert_int_equal(cpl_feed(p, "x", &array, NULL), CPL_OK);
    assert_int_equal(cpl_run(p, CPL_TRAIN, NULL), CPL_OK);
}

/* Eight tokens of gradient 1, then two of gradient 6: (8 · 1 + 2 · 6) / 10. */
static void case_C03_parts_weigh_as_their_tokens(void **state)
{
    (void)state;
    cpl_program *p;
    assert_int_equal(cpl_compile(&p, product, NULL, &(cpl_compile_options){.threads = 1}, NULL), CPL_OK);
    cpl_program_stage_gradients(p, 1);
    for (int again = 0; again < 2; again++) {
        run_part(p, 8, 1, (cpl_batch_part){.active = 1, .first = 1, .weight = 0.8});
        run_part(p, 2, 6, (cpl_batch_part){.active = 1, .first_sentence = 1, .weight = 0.2});
        assert_true(fabs((double)cpl_parameter_gradient(p, 0)[0] - 2.0) < 1e-6);
    }
    run_part(p, 2, 6, (cpl_batch_part){.active = 0}); /* a whole batch again */
    assert_true(fabs((double)cpl_parameter_gradient(p, 0)[0] - 6.0) < 1e-6);
    cpl_program_free(p);
}

/* Sgd with a rate of 1: the weights after two passes show every gradient. The last batch of a pass has 3 of 8 pairs; it
 * is cut and applied as well. */
static void case_C03_update_equals_the_whole_batch(void **state)
{
    (void)state;
    char memory[64], path[700];
    put_pairs_of_lengths("train.tsv", 11, 40);
    put_pairs_of_lengths("valid.tsv", 3, 10);
    put_file("config.yaml", CONFIG("batch_size: 8, epochs: 2, optimizer: {name: sgd, learning_rate: 1}, "
                                   "show_examples: 0"));
    run a = {.folder = "c03"}, b = {.folder = "c03_pieces", .set = {memory_set(memory, budget_of(0.3))}};
    assert_int_equal(train(&a), CPL_OK);
    assert_int_equal(train(&b), CPL_OK);
    assert_int_equal(a.steps_seen, 4);
    assert_int_equal(b.steps_seen, 4);
    cpl_tensor_file *f[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s/checkpoint.safetensors", top, i ? "c03_pieces" : "c03");
        assert_int_equal(cpl_tensor_file_open(&f[i], path, NULL), CPL_OK);
    }
    for (size_t i = 0; i < cpl_tensor_file_count(f[0]); i++) {
        const cpl_tensor_entry *x = cpl_tensor_file_at(f[0], i), *y = cpl_tensor_file_find(f[1], x->name);
        const float *u = x->data, *v = y->data;
        for (uint64_t k = 0; k < (uint64_t)cpl_tensor_elements(x); k++)
            assert_true(fabs((double)u[k] - (double)v[k]) <= 2e-5);
    }
    cpl_tensor_file_close(f[0]);
    cpl_tensor_file_close(f[1]);
}

/* ---- B02 ---- */

static void case_B02_whole_logits(void **state)
{
    (void)state;
    cpl_json *root = read_case("B02_plan.json"), *p;
    const cpl_json *dims = cpl_json_get(root, "dims");
    int64_t t = (int64_t)number(dims, "t"), batch = (int64_t)number(dims, "batch"),
            vocab = (int64_t)number(dims, "vocab");
    uint64_t budget = (uint64_t)number(root, "budget_bytes");
    assert_true((double)cpl_logits_bytes(t, batch, vocab) == number(root, "expect_bytes"));
    assert_int_equal(cpl_logits_batch(budget, t, vocab), (int64_t)number(root, "max_batch_for_logits_alone"));
    assert_true(cpl_logits_bytes(INT64_MAX / 4, batch, vocab) == UINT64_MAX); /* no overflow */
    cpl_json_free(root);
    put_pairs_of_lengths("train.tsv", 30, 20);
    put_pairs_of_lengths("valid.tsv", 5, 20);
    put_file("config.yaml", CONFIG("batch_size: 10"));
    p = plan(NULL, NULL); /* 20 words and END or START, 8 words and 4 special entries */
    assert_true(number(p, "whole_logits_bytes") == 21.0 * 10 * 12 * 4);
    assert_true(number(p, "logits_block_bytes") > 0);
    assert_true(number(p, "micro_batch") == 10);
    assert_string_equal(cpl_json_text(cpl_json_get(p, "recompute"), NULL), "none");
    assert_true(number(p, "recomputed_calls") == 0 && number(p, "recompute_saved_bytes") == 0);
    assert_true(number(p, "loss_block_rows") == 384);
    cpl_json_free(p);
}

/* Whole batches do not fit, nor does anything else: need, budget, the largest part, the knobs; nothing is written. */
static void case_B02_refusal_says_what_fits(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    char memory[64];
    put_pairs_of_lengths("train.tsv", 30, 200);
    put_pairs_of_lengths("valid.tsv", 5, 200);
    put_file("config.yaml", CONFIG("batch_size: 10, show_examples: 0"));
    cpl_json *whole = plan(NULL, NULL);
    int64_t fixed = (int64_t)(peak_of(whole) - number(cpl_json_get(whole, "parts"), "activations"));
    cpl_json_free(whole);
    snprintf(memory, sizeof memory, "%" PRId64, fixed + (1 << 18) + fixed / 200 + 100000);
    assert_null(plan(memory, &err));
    assert_int_equal(err.status, CPL_USAGE);
    assert_says(&err, "even with one pair at a time");
    assert_says(&err, "with batches of 10; largest part: activations");
    assert_says(&err, "training.memory");
    assert_says(&err, "what fits: one pair of up to");
    assert_says(&err, "batches of up to");
    assert_says(&err, "in order of effect");
    run r = {.folder = "b02", .set = {memory_set((char[64]){0}, atoll(memory))}};
    assert_int_equal(train(&r), CPL_USAGE);
    assert_false(exists("b02"));
}

/* ---- B03 ---- */

static void case_B03_one_long_pair(void **state)
{
    (void)state;
    char text[900], memory[64];
    snprintf(text, sizeof text, "model: {units: 16}\n"
             "data: {train: %s/cases/B03_one_long_pair_last.tsv, valid: valid.tsv}\n"
             "training: {threads: 1, batch_size: 16, epochs: 1, show_examples: 0}\n", CPL_TEST_DATA);
    put_pairs("valid.tsv", 4);
    put_file("config.yaml", text);
    cpl_json *long_one = plan(NULL, NULL);
    int64_t peak = (int64_t)peak_of(long_one);
    double activations = number(cpl_json_get(long_one, "parts"), "activations");
    cpl_json_free(long_one);
    /* A quarter of the activations: enough for 16 pairs of 50 tokens, not for one of 902. */
    snprintf(memory, sizeof memory, "training.memory=%" PRId64, peak - (int64_t)(0.75 * activations) + (1 << 18));
    run r = {.folder = "b03", .set = {memory}};
    assert_int_equal(train(&r), CPL_USAGE);
    assert_says(&r.error, "_last.tsv' line 60, has 900 source and 900 target tokens and needs ");
    assert_says(&r.error, "drop 1 pair;");
    assert_says(&r.error, "text.source.max_length and text.target.max_length of");
    assert_int_equal(r.steps_seen, 0);
    assert_false(exists("b03"));
    /* As the hint says: the same budget does without that pair. */
    r.set[1] = "text.source.max_length=50", r.set[2] = "text.target.max_length=50";
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 4);
    /* And where it fits, it is trained. */
    run all = {.folder = "b03all"};
    assert_int_equal(train(&all), CPL_OK);
    assert_int_equal(all.steps_seen, 4);
}

/* ---- B05 ---- */

/* Short training pairs, long validation pairs: they are planned before the first step, and validated in pieces. */
static void case_B05_validation_is_planned(void **state)
{
    (void)state;
    char memory[64];
    put_pairs_of_lengths("train.tsv", 40, 10);
    put_pairs_of_lengths("valid.tsv", 24, 200);
    put_file("config.yaml", CONFIG("batch_size: 12, epochs: 2, show_examples: 2"));
    int64_t budget = budget_of(0.35);
    snprintf(memory, sizeof memory, "%" PRId64, budget);
    cpl_json *p = plan(memory, NULL), *from[4], *to[4];
    assert_non_null(p);
    assert_true(number(p, "micro_batch") == 12);
    assert_true(number(p, "validation_micro_batch") < 12);
    assert_true(peak_of(p) <= (double)budget);
    cpl_json_free(p);
    run a = {.folder = "b05"}, b = {.folder = "b05_pieces", .set = {memory_set(memory, budget)}};
    assert_int_equal(train(&a), CPL_OK);
    assert_int_equal(train(&b), CPL_OK);
    assert_int_equal(read_events("b05", "epoch", from, 4), 2);
    assert_int_equal(read_events("b05_pieces", "epoch", to, 4), 2);
    assert_int_equal(count_events("b05", "example"), 4);
    assert_int_equal(count_events("b05_pieces", "example"), 4);
    for (int i = 0; i < 2; i++) {
        assert_true(fabs(number(from[i], "val_loss") - number(to[i], "val_loss")) < 1e-5);
        cpl_json_free(from[i]);
        cpl_json_free(to[i]);
    }
    run none = {.folder = "b05_none", .set = {memory_set(memory, budget_of(0.02))}};
    assert_int_equal(train(&none), CPL_USAGE);
    assert_says(&none.error, "the longest validation pair, ");
    assert_false(exists("b05_none"));
}

/* ---- B06 ---- */

static void case_B06_optimizer_is_counted(void **state)
{
    (void)state;
    cpl_json *root = read_case("B06_optimizer_bytes.json");
    const cpl_json *param = cpl_json_get(root, "param"), *expect = cpl_json_get(root, "expect");
    cpl_parameters *p = cpl_parameters_new();
    cpl_parameter_info info = {.path = "embedding", .rank = 2, .trainable = 1, .where = "test"};
    info.size[0] = (int64_t)number(param, "rows"), info.size[1] = (int64_t)number(param, "cols");
    info.dim[0] = "entries", info.dim[1] = "units";
    info.elements = info.size[0] * info.size[1];
    assert_int_equal(cpl_parameters_add(p, &info, NULL), 0);
    cpl_config *config;
    assert_int_equal(cpl_config_default(&config, NULL), CPL_OK);
    double bytes = (double)cpl_parameters_bytes(p);
    double state_bytes = (double)cpl_optimizer_state_bytes(&config->training, p);
    assert_true(bytes == number(expect, "param") && bytes == number(expect, "grad"));
    assert_true(state_bytes == number(expect, "adam_m") + number(expect, "adam_v"));
    assert_true(2 * bytes + state_bytes == number(expect, "total"));
    cpl_config_free(config);
    cpl_parameters_free(p);
    cpl_json_free(root);
}

static void case_B06_batch_size_does_not_help(void **state)
{
    (void)state;
    put_pairs_of_lengths("train.tsv", 30, 5);
    put_pairs_of_lengths("valid.tsv", 5, 5);
    put_file("config.yaml", CONFIG("batch_size: 10"));
    run r = {.folder = "b06", .set = {"model.units=256", "training.memory=4MiB"}};
    assert_int_equal(train(&r), CPL_USAGE);
    assert_says(&r.error, "parameters, gradients and optimizer take");
    assert_says(&r.error, "which does not depend on the batch size and exceeds the budget alone");
    assert_says(&r.error, "no batch, no source and no target length fits");
    assert_says(&r.error, "but the budget is 4.0 MiB (training.memory)");
    assert_false(exists("b06"));
}

/* ---- B04 ---- */

/* Whichever allocation fails, the run ends with a message or did without; it never crashes. */
static void case_B04_an_allocation_fails(void **state)
{
    (void)state;
    char memory[64], config[700], folder[700];
    put_pairs_of_lengths("train.tsv", 9, 12);
    put_pairs_of_lengths("valid.tsv", 4, 12);
    put_file("config.yaml", CONFIG("batch_size: 4, epochs: 1, show_examples: 1, validate_every: 2"));
    snprintf(config, sizeof config, "%s/config.yaml", top);
    snprintf(folder, sizeof folder, "%s/b04", top);
    const char *set[] = {memory};
    cpl_train_options o = {.config_path = config, .folder = folder, .set = set, .overwrite = 1};
    assert_int_equal(cpl_train(&o, NULL), CPL_OK); /* what reading takes is measured: now plan and runs see the same */
    memory_set(memory, budget_of(0.5)), o.set_count = 1;
    uint64_t before = cpl_memory_allocations();
    assert_int_equal(cpl_train(&o, NULL), CPL_OK);
    uint64_t all = cpl_memory_allocations() - before, stride = all / 150 + 1;
    int failed = 0;
    for (uint64_t at = 1; at <= all; at += at < 40 || at + 40 > all ? 1 : stride) {
        cpl_error err = CPL_ERROR_INIT;
        cpl_memory_fail_at(at);
        cpl_status status = cpl_train(&o, &err);
        cpl_memory_fail_at(0);
        assert_true(status == CPL_OK || (status == CPL_FAILED && err.lines > 0 && err.line[0][0]));
        failed += status == CPL_FAILED;
    }
    print_message("%d of the allocations that failed ended the run\n", failed);
    assert_true(failed > 50);
    assert_int_equal(cpl_train(&o, NULL), CPL_OK);
}

/* ---- limits ---- */

static void put_in(const char *folder, const char *name, const char *text)
{
    char path[700], file[100];
    snprintf(path, sizeof path, "%s/%s", top, folder);
    assert_int_equal(cpl_folder_make(path, NULL), CPL_OK);
    snprintf(file, sizeof file, "%s/%s", folder, name);
    put_file(file, text);
}

static uint64_t room_of(const char *groups, uint64_t *limit)
{
    char path[700], mount[700];
    put_file("groups", groups);
    snprintf(path, sizeof path, "%s/groups", top);
    snprintf(mount, sizeof mount, "%s/mount", top);
    return cpl_memory_group_room(path, mount, limit);
}

static void limits_of_control_groups(void **state)
{
    (void)state;
    uint64_t limit;
    const uint64_t mib = 1 << 20;
    put_in("mount/a/b", "memory.max", "max\n");
    put_in("mount/a", "memory.max", "268435456\n");
    put_in("mount/a", "memory.stat", "anon 67108864\nfile 1000\n");
    put_in("mount/memory/c", "memory.limit_in_bytes", "134217728\n");
    put_in("mount/memory/c", "memory.stat", "cache 5\nrss 6\ntotal_rss 1048576\n");
    put_in("mount/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(room_of("0::/a/b\n", &limit) == (256 - 64 - 4 - 8) * mib); /* 4 MiB and a 32nd are kept */
    assert_int_equal(limit, 256 * mib);
    assert_true(room_of("7:cpu:/a\n4:blkio,memory:/c\n0::/\n", &limit) == (128 - 1 - 4 - 4) * mib);
    assert_true(room_of("0::/a\n4:memory:/c\n", &limit) == (128 - 1 - 4 - 4) * mib); /* the tighter one */
    assert_true(room_of("0::/\n3:memories:/c\n", &limit) == UINT64_MAX);
    assert_true(cpl_memory_group_room("/nowhere", "/nowhere", &limit) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_give_the_same_result),
        cmocka_unit_test(recomputation_gives_the_same_result),
        cmocka_unit_test(memory_may_differ_on_resume),
        cmocka_unit_test(case_C03_parts_weigh_as_their_tokens),
        cmocka_unit_test(case_C03_update_equals_the_whole_batch),
        cmocka_unit_test(case_B02_whole_logits),
        cmocka_unit_test(case_B02_refusal_says_what_fits),
        cmocka_unit_test(case_B03_one_long_pair),
        cmocka_unit_test(case_B05_validation_is_planned),
        cmocka_unit_test(case_B06_optimizer_is_counted),
        cmocka_unit_test(case_B06_batch_size_does_not_help),
        cmocka_unit_test(case_B04_an_allocation_fails),
        cmocka_unit_test(limits_of_control_groups),
    };
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
