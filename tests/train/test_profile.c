/* train --profile: phases that add up, nodes that are counted, a trace that nests, and a run that is the same. */
#include "train/train_test.h"

#include <math.h>

#include "support/run.h"
#include "train/trainer.h"

#define CONFIG(model, training)                                                                      \
    "model: {units: 8" model "}\ndata: {train: train.tsv, valid: valid.tsv}\ntraining: {threads: 2, " training "}\n"

enum { MOST = 5000 };

static void put_data(void)
{
    put_pairs("train.tsv", 30);
    put_pairs("valid.tsv", 7);
}

static cpl_json *read_profile(const char *folder)
{
    size_t length;
    char *text = read_file(folder, "profile.json", &length);
    cpl_json *root;
    assert_int_equal(cpl_json_parse(&root, text, length, NULL), CPL_OK);
    cpl_release(text);
    return root;
}

static int has_file(const char *folder, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s/%s", top, folder, name);
    return cpl_file_exists(path);
}

static const char *text(const cpl_json *object, const char *key)
{
    const char *found = cpl_json_text(cpl_json_get(object, key), NULL);
    return found ? found : "";
}

/* ---- the figures ---- */

/* Phases are disjoint, and with what is in none they are the whole time. */
static void check_phases(const cpl_json *profile)
{
    const cpl_json *phases = cpl_json_get(profile, "phases");
    double sum = 0, shares = 0, steps = 0;
    assert_int_equal(cpl_json_size(phases), CPL_PHASES + 1);
    for (int i = 0; i <= CPL_PHASES; i++) {
        const cpl_json *one = cpl_json_get(phases, cpl_phase_name((cpl_phase)i));
        double busy = cpl_json_real(cpl_json_get(one, "busy"), 0.5);
        assert_true(number(one, "seconds") >= 0 && busy > 0 && busy <= 1);
        sum += number(one, "seconds");
        shares += number(one, "share");
        steps += i <= CPL_PHASE_OPTIMIZER ? number(one, "seconds") : 0;
    }
    assert_true(fabs(sum - number(profile, "seconds")) <= 1e-4 * number(profile, "seconds") + 1e-6);
    assert_true(fabs(shares - 1) <= 1e-4);
    assert_true(steps <= number(profile, "step_seconds") * (1 + 1e-5));
    assert_true(number(profile, "step_seconds") <= number(profile, "seconds"));
}

/* The list holds each node once; what all of a pass took is no more than its phase. */
static void check_nodes(const cpl_json *profile, int64_t steps)
{
    const cpl_json *nodes = cpl_json_get(profile, "nodes"), *phases = cpl_json_get(profile, "phases");
    double forward = 0, rest = 0, validation = 0, last = INFINITY, flops = 0;
    for (size_t i = 0; i < cpl_json_size(nodes); i++) {
        const cpl_json *n = cpl_json_at(nodes, i);
        const char *pass = text(n, "pass");
        double s = number(n, "seconds"), peak = cpl_json_real(cpl_json_get(n, "peak_share"), 0);
        assert_true(text(n, "node")[0] && text(n, "op")[0] && number(n, "calls") >= 1 && s >= 0 && peak >= 0);
        if (strcmp(pass, "validation") == 0) {
            validation += s;
            continue;
        }
        assert_true(validation == 0 && s <= last); /* training's first, by time */
        last = s;
        assert_int_equal((int64_t)number(n, "calls") % steps, 0);
        *(strcmp(pass, "forward") == 0 ? &forward : &rest) += s;
        flops += cpl_json_real(cpl_json_get(n, "flops"), 0);
        for (size_t k = 0; k < i; k++)
            assert_false(strcmp(text(cpl_json_at(nodes, k), "node"), text(n, "node")) == 0 &&
                         strcmp(text(cpl_json_at(nodes, k), "op"), text(n, "op")) == 0 &&
                         strcmp(text(cpl_json_at(nodes, k), "pass"), pass) == 0);
    }
    assert_true(forward > 0 && forward <= number(cpl_json_get(phases, "forward"), "seconds") * (1 + 1e-4));
    assert_true(rest > 0 && rest <= number(cpl_json_get(phases, "backward"), "seconds") * (1 + 1e-4));
    assert_true(validation > 0 && validation <= number(cpl_json_get(phases, "validation"), "seconds") * (1 + 1e-4));
    assert_true(flops > 0 && fabs(flops - number(profile, "flops")) <= 1e-9 * flops);
}

static int64_t calls_of(const cpl_json *profile, const char *node, const char *op, const char *pass)
{
    const cpl_json *nodes = cpl_json_get(profile, "nodes");
    for (size_t i = 0; i < cpl_json_size(nodes); i++) {
        const cpl_json *n = cpl_json_at(nodes, i);
        if (strcmp(text(n, "node"), node) == 0 && strcmp(text(n, "op"), op) == 0 && strcmp(text(n, "pass"), pass) == 0)
            return (int64_t)number(n, "calls");
    }
    return 0;
}

/* ---- the trace ---- */

typedef struct span {
    const char *name, *kind;
    double begun, ended;
    int thread;
} span;

/* Spans in the order of the file. */
static size_t read_spans(const cpl_json *root, span *spans)
{
    const cpl_json *events = cpl_json_get(root, "traceEvents");
    size_t count = 0;
    for (size_t i = 0; i < cpl_json_size(events); i++) {
        const cpl_json *e = cpl_json_at(events, i);
        if (strcmp(text(e, "ph"), "M") == 0)
            continue;
        assert_string_equal(text(e, "ph"), "X");
        assert_true(count < MOST && number(e, "ts") >= 0 && number(e, "dur") >= 0);
        spans[count++] = (span){text(e, "name"), text(e, "cat"), number(e, "ts"), number(e, "ts") + number(e, "dur"),
                                (int)number(e, "tid")};
    }
    return count;
}

/* On each row a span lies inside the one around it or begins after it; a nanosecond is the file's last digit. */
static void check_nesting(const span *spans, size_t count, int rows)
{
    for (int row = 0; row < rows; row++) {
        double open[16];
        int depth = 0;
        double last = 0;
        for (size_t i = 0; i < count; i++) {
            if (spans[i].thread != row)
                continue;
            assert_true(spans[i].begun >= last);
            last = spans[i].begun;
            while (depth > 0 && open[depth - 1] <= spans[i].begun + 5e-4)
                depth--;
            assert_true(depth == 0 || spans[i].ended <= open[depth - 1] + 1e-3);
            assert_true(depth < 16);
            open[depth++] = spans[i].ended;
        }
    }
}

/* On the same row: other threads show what they do for a phase under its name. What begins at the nanosecond at which a
 * step ends belongs to the next one, however short it is. */
static int is_inside(const span *s, const span *around)
{
    return s->thread == around->thread && s->begun >= around->begun - 5e-4 && s->begun < around->ended - 5e-4 &&
           s->ended <= around->ended + 1e-3;
}

static size_t count_spans(const span *spans, size_t count, const char *name, const span *inside)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += strcmp(spans[i].name, name) == 0 && (!inside || is_inside(&spans[i], inside));
    return n;
}

static void check_step(const span *spans, size_t count, const span *step)
{
    const char *const once[] = {"data", "feed", "forward", "backward", "optimizer"};
    const span *found[5] = {NULL};
    for (int k = 0; k < 5; k++) {
        assert_int_equal(count_spans(spans, count, once[k], step), 1);
        for (size_t i = 0; i < count; i++)
            if (strcmp(spans[i].name, once[k]) == 0 && is_inside(&spans[i], step))
                found[k] = &spans[i];
        assert_true(k == 0 || found[k]->begun >= found[k - 1]->ended - 1e-3);
    }
    for (size_t i = 0; i < count; i++) {
        const span *s = &spans[i];
        if (!is_inside(s, step))
            continue;
        const span *side = strcmp(s->kind, "forward") == 0 ? found[2] : step;
        side = strcmp(s->kind, "backward") == 0 ? found[3] : side;
        assert_true(s->begun >= side->begun - 1e-3 && s->ended <= side->ended + 1e-3);
    }
}

/* ---- tests ---- */

static void what_is_told_adds_up(void **state)
{
    (void)state;
    put_data();
    put_file("config.yaml", CONFIG("", "batch_size: 4, epochs: 2, log_every: 1, show_examples: 2"));
    run r = {.folder = "adds_up", .profile = 1};
    assert_int_equal(train(&r), CPL_OK);
    cpl_json *root = read_profile("adds_up"), *event, *last;
    const cpl_json *profile = cpl_json_get(root, "profile");
    assert_int_equal(number(profile, "steps"), 16); /* 30 pairs, 8 batches, twice */
    assert_int_equal(number(profile, "threads"), 2);
    assert_true(number(profile, "peak_gflops_per_second") > 0.01);
    check_phases(profile);
    check_nodes(profile, 16);
    assert_int_equal(calls_of(profile, "decoder.rnn", "gru", "forward"), 16);
    assert_int_equal(calls_of(profile, "decoder.rnn", "gru", "backward"), 16);
    assert_int_equal(calls_of(profile, "decoder.rnn", "gru", "validation"), 4); /* 7 pairs, 2 batches, twice */
    /* the log has the same, before its end */
    assert_int_equal(read_events("adds_up", "profile", &event, 1), 1);
    assert_int_equal(read_events("adds_up", "end", &last, 1), 1);
    assert_int_equal(number(event, "steps"), 16);
    check_phases(event);
    check_nodes(event, 16);
    assert_true(number(event, "seconds") <= number(event, "elapsed_seconds"));
    assert_true(number(event, "elapsed_seconds") <= number(last, "elapsed_seconds"));
    cpl_json_free(root);
    cpl_json_free(event);
    cpl_json_free(last);
}

static void the_trace_nests(void **state)
{
    (void)state;
    static span spans[MOST];
    put_data();
    put_file("config.yaml", CONFIG("", "batch_size: 4, epochs: 2, show_examples: 2"));
    run r = {.folder = "nests", .profile = 1};
    assert_int_equal(train(&r), CPL_OK);
    cpl_json *root = read_profile("nests");
    const cpl_json *trace = cpl_json_get(cpl_json_get(root, "profile"), "trace");
    size_t count = read_spans(root, spans), steps = 0;
    assert_int_equal(number(trace, "spans"), count);
    assert_int_equal(number(trace, "left_out"), 0);
    assert_int_equal(number(trace, "steps"), CPL_TRACED_STEPS);
    check_nesting(spans, count, 4);
    for (size_t i = 0; i < count; i++) {
        char name[20];
        if (strcmp(spans[i].kind, "step") != 0)
            continue;
        snprintf(name, sizeof name, "step %zu", ++steps);
        assert_string_equal(spans[i].name, name);
        check_step(spans, count, &spans[i]);
    }
    assert_int_equal(steps, CPL_TRACED_STEPS);
    assert_int_equal(count_spans(spans, count, "validation", NULL), 2);
    assert_int_equal(count_spans(spans, count, "examples", NULL), 2);
    assert_true(count_spans(spans, count, "saving", NULL) >= 2);
    assert_true(count_spans(spans, count, "order of pass 1", NULL) == 1); /* by the batcher's thread, ahead */
    cpl_json_free(root);
}

/* With attention before the cell the decoder is a loop: its calls run once for each word. */
static void a_decoder_that_loops_is_profiled(void **state)
{
    (void)state;
    static span spans[MOST];
    cpl_str pairs = {0};
    for (int i = 0; i < 8; i++)
        cpl_str_add(&pairs, "uno dos tres\tone two three\n"); /* four steps with END */
    put_file("train.tsv", pairs.data);
    put_file("valid.tsv", pairs.data);
    cpl_str_free(&pairs);
    put_file("config.yaml", CONFIG(", decoder: {attention: {position: before}}", "batch_size: 4, epochs: 1"));
    run r = {.folder = "loop", .profile = 1};
    assert_int_equal(train(&r), CPL_OK);
    cpl_json *root = read_profile("loop");
    const cpl_json *profile = cpl_json_get(root, "profile");
    check_phases(profile);
    check_nodes(profile, 2);
    assert_int_equal(calls_of(profile, "decoder.rnn", "gru_cell", "forward"), 2 * 4);
    assert_int_equal(calls_of(profile, "decoder.rnn", "gru_cell", "backward"), 2 * 4);
    assert_int_equal(calls_of(profile, "encoder.rnn.forward", "gru", "forward"), 2);
    size_t count = read_spans(root, spans);
    check_nesting(spans, count, 4);
    cpl_json_free(root);
}

static void nothing_else_changes(void **state)
{
    (void)state;
    put_data();
    put_file("config.yaml", CONFIG(", dropout: 0.2", "batch_size: 4, epochs: 2, log_every: 1, accumulate: 2"));
    run plain = {.folder = "plain"}, measured = {.folder = "measured", .profile = 1};
    assert_int_equal(train(&plain), CPL_OK);
    assert_int_equal(train(&measured), CPL_OK);
    assert_same_file("plain", "measured", "model.safetensors");
    assert_same_tensors("plain", "measured", "checkpoint.safetensors");
    assert_int_equal(has_file("plain", "profile.json"), 0);
    assert_int_equal(count_events("plain", "profile"), 0);
    cpl_json *a, *b;
    assert_int_equal(read_events("plain", "start", &a, 1), 1);
    assert_int_equal(read_events("measured", "start", &b, 1), 1);
    double more = number(b, "planned_peak_bytes") - number(a, "planned_peak_bytes");
    /* The plan counts its room; what else the process holds when it is made differs by some hundred bytes. */
    assert_true(more >= 0.99 * CPL_TRACE_ROOM * sizeof(cpl_span));
    cpl_json_free(a);
    cpl_json_free(b);
    cpl_json *root = read_profile("measured"); /* accumulate 2: 8 batches are 4 steps of 2 runs */
    assert_int_equal(number(cpl_json_get(root, "profile"), "steps"), 8);
    assert_int_equal(calls_of(cpl_json_get(root, "profile"), "decoder.rnn", "gru", "forward"), 16);
    check_phases(cpl_json_get(root, "profile"));
    cpl_json_free(root);
}

static void a_stop_and_a_resumed_run_tell_their_own(void **state)
{
    (void)state;
    put_data();
    put_file("config.yaml", CONFIG("", "batch_size: 4, epochs: 2"));
    run r = {.folder = "stopped", .profile = 1, .stop_at = 5};
    assert_int_equal(train(&r), CPL_STOPPED);
    cpl_json *root = read_profile("stopped");
    assert_int_equal(number(cpl_json_get(root, "profile"), "steps"), 5);
    check_phases(cpl_json_get(root, "profile"));
    cpl_json_free(root);
    r = (run){.folder = "stopped", .profile = 1, .resume = 1};
    assert_int_equal(train(&r), CPL_OK);
    root = read_profile("stopped");
    assert_int_equal(number(cpl_json_get(root, "profile"), "steps"), 11);
    cpl_json_free(root);
    r = (run){.folder = "stopped", .overwrite = 1};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(has_file("stopped", "profile.json"), 0); /* it was of the run that was replaced */
}

/* What a person sees. */
typedef struct seen {
    char text[8000];
    int profiles, ends;
} seen;

static void on_event(void *user, const cpl_progress_event *e)
{
    seen *s = user;
    s->ends += strcmp(e->kind, "end") == 0;
    if (strcmp(e->kind, "profile") != 0)
        return;
    assert_int_equal(s->ends, 0);
    s->profiles++;
    snprintf(s->text, sizeof s->text, "%s", e->text);
}

static void the_tables_name_phases_and_nodes(void **state)
{
    (void)state;
    char config[700], folder[700];
    static seen s;
    cpl_error err = CPL_ERROR_INIT;
    put_data();
    put_file("config.yaml", CONFIG("", "batch_size: 4, epochs: 1"));
    snprintf(config, sizeof config, "%s/config.yaml", top);
    snprintf(folder, sizeof folder, "%s/tables", top);
    cpl_train_options o = {.config_path = config, .folder = folder, .profile = 1, .on_event = on_event, .user = &s};
    assert_int_equal(cpl_train(&o, &err), CPL_OK);
    assert_true(s.profiles == 1 && s.ends == 1);
    const char *const lines[] = {"profile of 8 steps on 2 threads, ", "\nwaiting for data ", "\nfeeding ",
                                 "\nforward ", "\nbackward ", "\noptimizer ", "\nvalidation ", "\nsaving ",
                                 "\neverything else ", "\nnode ", "\ndecoder.rnn ", " more ", "tables/profile.json'"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(s.text, lines[i]))
            fail_msg("'%s' is missing in: %s", lines[i], s.text);
    assert_null(strstr(s.text, "sampling targets")); /* there is no such phase in this run */
    for (const char *line = s.text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        assert_true(end - line <= 160);
}

/* A folder comes to stand where the file should go. */
static void take_its_place(void *user, const cpl_progress_event *e)
{
    (void)e;
    assert_int_equal(cpl_folder_make(user, NULL), CPL_OK);
}

static void a_file_that_cannot_be_written_is_said(void **state)
{
    (void)state;
    char config[700], folder[700], taken[800];
    cpl_error err = CPL_ERROR_INIT;
    put_data();
    put_file("config.yaml", CONFIG("", "batch_size: 4, epochs: 1"));
    snprintf(config, sizeof config, "%s/config.yaml", top);
    snprintf(folder, sizeof folder, "%s/taken", top);
    snprintf(taken, sizeof taken, "%s/profile.json/inside", folder);
    cpl_train_options o = {.config_path = config, .folder = folder, .profile = 1, .on_step = take_its_place,
                           .user = taken};
    assert_int_equal(cpl_train(&o, &err), CPL_FAILED);
    char all[1000] = "";
    for (int i = 0; i < err.lines; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s\n", err.line[i]);
    assert_non_null(strstr(all, "cannot write the profile"));
    assert_non_null(strstr(all, "profile.json"));
    assert_int_equal(has_file("taken", "model.safetensors"), 1); /* training was over and is saved */
    assert_int_equal(has_file("taken", "checkpoint.safetensors"), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_told_adds_up),
    cmocka_unit_test(the_trace_nests),
    cmocka_unit_test(a_decoder_that_loops_is_profiled),
    cmocka_unit_test(nothing_else_changes),
    cmocka_unit_test(a_stop_and_a_resumed_run_tell_their_own),
    cmocka_unit_test(the_tables_name_phases_and_nodes),
    cmocka_unit_test(a_file_that_cannot_be_written_is_said),
};

int main(int argc, char **argv)
{
    if (argc > 1 && !cpl_test_choose(tests, sizeof tests / sizeof *tests, argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
