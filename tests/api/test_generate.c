/* Lines in, lines out: their number, their order, and that no answer waits. */
#include "api/api_test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>

static char messages[4][200];
static int message_count;

static void keep(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    if (message_count < 4)
        snprintf(messages[message_count++], sizeof messages[0], "%s", text);
}

/* Runs text through cpl_generate_lines by way of files. Returns the status; out is the whole output. */
static cpl_status run(const place *p, cpl_model *m, const char *text, const cpl_generate_options *o, char *out,
                      cpl_error *err)
{
    char path[300], result[300];
    place_write(p, "in.txt", text);
    FILE *in = fopen(place_file(p, "in.txt", path), "r"), *to = fopen(place_file(p, "out.txt", result), "w+");
    message_count = 0;
    cpl_status status = cpl_generate_lines(m, in, to, o, keep, NULL, err);
    rewind(to);
    out[fread(out, 1, 8191, to)] = '\0';
    fclose(in);
    fclose(to);
    return status;
}

static int lines_in(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void case_H07_an_untrained_model_saves_loads_and_translates(void **state)
{
    (void)state;
    place p;
    place_make(&p);
    model_write(&p, NULL, NULL, 0);
    cpl_model *m = model_open(&p);
    cpl_error err = CPL_ERROR_INIT;
    char *output;
    must(cpl_generate(&output, m, "a b c", NULL, &err), &err);
    assert_non_null(output);
    cpl_free(output);
    cpl_model_close(m);
    place_remove(&p);
}

/* `couplet generate de-en`: the folder of a run, with or without a slash at its end. */
static void the_folder_of_a_run_stands_for_its_model(void **state)
{
    (void)state;
    place p;
    place_make(&p);
    model_write(&p, NULL, NULL, 0);
    char slash[300];
    snprintf(slash, sizeof slash, "%s/", p.folder);
    for (int i = 0; i < 2; i++) {
        cpl_model *m;
        cpl_error err = CPL_ERROR_INIT;
        must(cpl_model_open(&m, i ? slash : p.folder, 1, &err), &err);
        cpl_model_close(m);
    }
    place_remove(&p);
    cpl_model *none;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_model_open(&none, CPL_TEST_DATA, 1, &err), CPL_USAGE);
    assert_null(none);
    assert_non_null(strstr(err.line[0], "/model.safetensors"));
}

static void one_line_for_each_line(void **state)
{
    (void)state;
    place p;
    char out[8192], again[8192], expected[8192] = "";
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    static const char *const lines[] = {"a b c", "", "z y x w v u", " \t ", "q", "a b c d e f g h i j k l m n o p"};
    char text[400] = "";
    for (int i = 0; i < 6; i++) {
        char *one;
        must(cpl_generate(&one, m, lines[i], NULL, &err), &err);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s\n", one);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", lines[i], i < 5 ? "\n" : "");
        cpl_free(one);
    }
    must(run(&p, m, text, NULL, out, &err), &err);
    assert_string_equal(out, expected);
    assert_int_equal(lines_in(out), 6);
    for (int64_t size = 1; size <= 4; size++) {
        must(run(&p, m, text, &(cpl_generate_options){.batch_size = size}, again, &err), &err);
        assert_string_equal(again, out);
    }
    must(run(&p, m, "", NULL, out, &err), &err);
    assert_string_equal(out, "");
    must(run(&p, m, "\n\n", NULL, out, &err), &err);
    assert_string_equal(out, "\n\n");
    cpl_model_close(m);
    place_remove(&p);
}

static void samples_follow_the_seed(void **state)
{
    (void)state;
    place p;
    char a[8192], b[8192], c[8192];
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    cpl_generate_options o = {.temperature = 1, .seed = 4, .batch_size = 1};
    must(run(&p, m, "a b\na b\na b\n", &o, a, &err), &err);
    o.batch_size = 3;
    must(run(&p, m, "a b\na b\na b\n", &o, b, &err), &err);
    o.seed = 5;
    must(run(&p, m, "a b\na b\na b\n", &o, c, &err), &err);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    cpl_model_close(m);
    place_remove(&p);
}

/* Default limit: the larger of 2 · source tokens + 20 and the longest training target (9 here). */
static void case_F01_cut_outputs_are_counted(void **state)
{
    (void)state;
    place p;
    char out[8192];
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, endless, NULL, 0);
    cpl_model *m = model_open(&p);
    must(run(&p, m, "b c\n\n", &(cpl_generate_options){.max_length = 5}, out, &err), &err);
    assert_string_equal(out, "a a a a a\n\n");
    assert_int_equal(message_count, 1);
    assert_string_equal(messages[0], "1 of 1 outputs were cut at their maximum length");
    must(run(&p, m, "b c\n", NULL, out, &err), &err);
    assert_int_equal(strlen(out), 2 * (2 * 2 + 20));
    must(run(&p, m, "b c\n\n", &(cpl_generate_options){.max_length = 3, .json = 1}, out, &err), &err);
    char *second = strchr(out, '\n') + 1;
    double score = 0, each = 10 - log(exp(10) + 29); /* 30 tokens, one of them 10 above the rest */
    assert_int_equal(sscanf(out, "{\"text\": \"a a a\", \"score\": %lf, \"finished\": false}", &score), 1);
    assert_true(fabs(score - 3 * each) < 1e-6);
    assert_string_equal(second, "{\"text\": \"\", \"score\": 0.0, \"finished\": true}\n");
    cpl_model_close(m);
    place_remove(&p);
}

static void bytes_that_are_no_text_are_replaced_and_told(void **state)
{
    (void)state;
    place p;
    char out[8192];
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    must(run(&p, m, "a b\na \xff b\r\nc\n", NULL, out, &err), &err);
    assert_int_equal(lines_in(out), 3);
    assert_int_equal(message_count, 1);
    assert_non_null(strstr(messages[0], "line 2"));
    char *output;
    assert_int_equal(cpl_generate(&output, m, "a \xff", NULL, &err), CPL_USAGE);
    assert_null(output);
    cpl_model_close(m);
    place_remove(&p);
}

static void case_F06_options_out_of_range_are_named(void **state)
{
    (void)state;
    place p;
    char out[8192], *output;
    static const struct { cpl_generate_options o; const char *text; } wrong[] = {
        {{.temperature = -1}, "temperature is -1"},
        {{.max_length = -2}, "max-length is -2"},
        {{.batch_size = -3}, "batch-size is -3"},
        {{.beam = 5, .nbest = 10}, "nbest is 10, but beam is 5"}, /* case F05: nothing is translated */
        {{.beam = 4, .temperature = 1}, "beam is 4 and temperature 1"},
        {{.length_penalty = NAN}, "length-penalty is nan"},
        {{.length_penalty_kind = "wu"}, "length-penalty-kind is 'wu'"},
        {{.top_k = 3}, "top-k is given, but temperature is 0"},
        {{.temperature = 1, .top_p = 1.5}, "top-p is 1.5"},
        {{.min_length = 5, .max_length = 4}, "min-length is 5 tokens, but max-length is 4"}};
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cpl_error err = CPL_ERROR_INIT;
        assert_int_equal(cpl_generate(&output, m, "a", &wrong[i].o, &err), CPL_USAGE);
        assert_non_null(strstr(err.line[0], wrong[i].text));
        assert_int_equal(run(&p, m, "a\n", &wrong[i].o, out, &err), CPL_USAGE);
    }
    cpl_model_close(m);
    place_remove(&p);
}

/* index ||| text ||| score, indexes from 0, best first; the same by any batch; the first text is the plain output. */
static void case_F05_nbest_lines(void **state)
{
    (void)state;
    place p;
    char one[8192], out[8192], again[8192];
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    cpl_generate_options o = {.beam = 4, .max_length = 12};
    must(run(&p, m, "a b c\n\nq\n", &o, one, &err), &err);
    assert_int_equal(lines_in(one), 3);
    o.nbest = 3;
    must(run(&p, m, "a b c\n\nq\n", &o, out, &err), &err);
    o.batch_size = 1;
    must(run(&p, m, "a b c\n\nq\n", &o, again, &err), &err);
    assert_string_equal(out, again);
    int lines[3] = {0}, last = 0;
    double before = 0;
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
        char *text = strstr(line, " ||| "), *score = text ? strstr(text + 5, " ||| ") : NULL;
        assert_non_null(score);
        int index = atoi(line);
        assert_true(index >= last && index < 3);
        assert_true(lines[index] == 0 || atof(score + 5) <= before);
        if (lines[index]++ == 0 && index == 0)
            assert_memory_equal(one, text + 5, (size_t)(score - text - 5));
        before = atof(score + 5);
        last = index;
    }
    assert_true(lines[0] >= 1 && lines[0] <= 3 && lines[1] == 1 && lines[2] >= 1);
    o.json = 1;
    must(run(&p, m, "a b c\n", &o, out, &err), &err);
    assert_non_null(strstr(out, "\"nbest\": ["));
    assert_non_null(strstr(out, "\"normalized_score\": "));
    /* without a beam there is one output, ranked by its score */
    must(run(&p, m, "a b c\n", &(cpl_generate_options){.nbest = 1, .json = 1, .max_length = 12}, out, &err), &err);
    const char *score = strstr(out, "\"score\": "), *ranked = strstr(out, "\"normalized_score\": ");
    assert_true(score && ranked && atof(score + 9) < 0);
    assert_true(atof(ranked + 20) == atof(score + 9));
    cpl_model_close(m);
    place_remove(&p);
}

/* Beam 1 is the same as no beam; a token that the vocabulary lacks is refused. */
static void tokens_of_rules_are_of_the_vocabulary(void **state)
{
    (void)state;
    place p;
    char plain[8192], out[8192];
    static const char *const stranger = "stranger", *const known = "a";
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    must(run(&p, m, "a b c\nq\n", NULL, plain, &err), &err);
    must(run(&p, m, "a b c\nq\n", &(cpl_generate_options){.beam = 1}, out, &err), &err);
    assert_string_equal(out, plain);
    for (int64_t beam = 1; beam < 4; beam++) {
        must(run(&p, m, "b c\n", &(cpl_generate_options){.beam = beam, .prefix = "a b", .max_length = 9}, out, &err),
             &err);
        assert_memory_equal(out, "a b", 3);
        must(run(&p, m, "a b c\n", &(cpl_generate_options){.beam = beam, .forbid = &known, .forbid_count = 1}, out,
                 &err), &err);
        assert_null(strchr(out, 'a'));
        must(run(&p, m, "q\n", &(cpl_generate_options){.beam = beam, .force = &known, .force_count = 1}, out, &err),
             &err);
        assert_non_null(strchr(out, 'a'));
    }
    assert_int_equal(run(&p, m, "a\n", &(cpl_generate_options){.forbid = &stranger, .forbid_count = 1}, out, &err),
                     CPL_USAGE);
    assert_non_null(strstr(err.line[0], "'stranger'"));
    cpl_model_close(m);
    place_remove(&p);
}

static void broken(cpl_parameters *p)
{
    int64_t n;
    values_of(p, "decoder.output.bias", &n)[7] = NAN;
}

static void case_F07_nan_is_an_error_with_its_place(void **state)
{
    (void)state;
    place p;
    char out[8192];
    cpl_error err = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, broken, NULL, 0);
    cpl_model *m = model_open(&p);
    assert_int_equal(run(&p, m, "\na b\n", &(cpl_generate_options){.json = 1}, out, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "step 1"));
    assert_non_null(strstr(err.line[0], "'decoder.output.bias'"));
    assert_non_null(strstr(err.line[1], "line 2"));
    assert_int_equal(lines_in(out), 2);
    assert_non_null(strstr(out, "\"score\": null"));
    assert_non_null(strstr(out, "\"reason\": "));
    cpl_model_close(m);
    place_remove(&p);
}

/* Resident KiB of the process, counted page by page: statm may lag behind by some dozen pages. */
static long resident(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    assert_non_null(f);
    while (!kib && fgets(line, sizeof line, f))
        if (sscanf(line, "Rss: %ld", &kib) != 1)
            kib = 0;
    fclose(f);
    return kib;
}

/* 10,000 times the same line of 20 words: no byte more is held, the process grows by less than 1 % after the first
 * 1,000, and the text never changes. That no call does more than the first is in tests/decode. */
static void case_J03_ten_thousand_calls(void **state)
{
    (void)state;
    place p;
    cpl_error err = CPL_ERROR_INIT;
    char *first, *again;
    uint64_t bytes = 0;
    long kib = resident(); /* so that its own code is in memory, too */
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *m = model_open(&p);
    static const char line[] = "a b c d e f g h i j k l m n o p q r s t";
    must(cpl_generate(&first, m, line, NULL, &err), &err);
    for (int i = 0; i < 10000; i++) {
        must(cpl_generate(&again, m, line, NULL, &err), &err);
        assert_string_equal(again, first);
        cpl_free(again);
        if (i == 10)
            bytes = cpl_memory_live_bytes();
        if (i == 1000)
            kib = resident();
    }
    assert_int_equal(cpl_memory_live_bytes(), bytes);
    print_message("resident after 1,000 calls %ld KiB, after 10,000 %ld\n", kib, resident());
    assert_true(getenv("COUPLET_SANITIZED") || resident() * 100 < kib * 101);
    cpl_free(first);
    cpl_model_close(m);
    place_remove(&p);
}

/* Products are large enough to be cut for the threads. */
static void case_F09_threads_change_nothing(void **state)
{
    (void)state;
    static const cpl_generate_options kinds[] = {{.json = 1}, {.beam = 3, .json = 1}, {.temperature = 1, .json = 1}};
    place p;
    char text[40 * 12 + 1] = "", first[8192], out[8192];
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"model.units=128"}, 1);
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), 12, "%c %c %c\n", 'a' + i % 26, 'a' + i * 7 % 26, 'a' + i * 5 % 26);
    for (int k = 0; k < 3; k++)
        for (int threads = 1; threads <= 4; threads++) {
            cpl_model *m;
            cpl_error err = CPL_ERROR_INIT;
            cpl_generate_options o = kinds[k];
            o.max_length = 4;
            must(cpl_model_open(&m, p.model, threads, &err), &err);
            must(run(&p, m, text, &o, threads == 1 ? first : out, &err), &err);
            if (threads > 1)
                assert_string_equal(out, first);
            cpl_model_close(m);
        }
    assert_int_equal(lines_in(first), 40);
    place_remove(&p);
}

/* A program that sends a line and waits for its answer before the next: every answer must come at once. */
static void an_answer_comes_before_the_next_line(void **state)
{
    (void)state;
    place p;
    int to[2], from[2], code;
    static const char *const lines[] = {"a b c\n", "\n", "d e f g\n", "z\n"};
    char line[4096], expected[8192];
    cpl_error error = CPL_ERROR_INIT;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    cpl_model *alone = model_open(&p);
    must(run(&p, alone, "a b c\n\nd e f g\nz\n", NULL, expected, &error), &error);
    cpl_model_close(alone);
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        cpl_model *m;
        cpl_error err = CPL_ERROR_INIT;
        close(to[1]);
        close(from[0]);
        alarm(60); /* a test that hangs must end */
        int failed = cpl_model_open(&m, p.model, 1, &err) != CPL_OK ||
                     cpl_generate_lines(m, fdopen(to[0], "r"), fdopen(from[1], "w"), NULL, NULL, NULL, &err) != CPL_OK;
        if (failed)
            cpl_error_print(&err, stderr);
        _exit(failed);
    }
    close(to[0]);
    close(from[1]);
    FILE *answers = fdopen(from[0], "r");
    const char *next = expected;
    alarm(60);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(write(to[1], lines[i], strlen(lines[i])), strlen(lines[i]));
        assert_non_null(fgets(line, sizeof line, answers)); /* waits for ever if the answer is held back */
        assert_int_equal(strncmp(next, line, strlen(line)), 0);
        next += strlen(line);
    }
    close(to[1]);
    assert_null(fgets(line, sizeof line, answers));
    alarm(0);
    fclose(answers);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_H07_an_untrained_model_saves_loads_and_translates),
        cmocka_unit_test(the_folder_of_a_run_stands_for_its_model),
        cmocka_unit_test(one_line_for_each_line),
        cmocka_unit_test(samples_follow_the_seed),
        cmocka_unit_test(case_F01_cut_outputs_are_counted),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced_and_told),
        cmocka_unit_test(case_F05_nbest_lines),
        cmocka_unit_test(tokens_of_rules_are_of_the_vocabulary),
        cmocka_unit_test(case_F06_options_out_of_range_are_named),
        cmocka_unit_test(case_F07_nan_is_an_error_with_its_place),
        cmocka_unit_test(case_J03_ten_thousand_calls),
        cmocka_unit_test(case_F09_threads_change_nothing),
        cmocka_unit_test(an_answer_comes_before_the_next_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
