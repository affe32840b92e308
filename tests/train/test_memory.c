/* test_memory.c: the memory that is planned before the first step is the memory that is used.
 *
 * What training adds to the bare program: the peak of the training process (the log's end event) less the peak of
 * `couplet --version`. The plan may differ from it by 5 % or 4 MiB, whichever is larger. */
#include "train/train_test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char *binary;

static int find_binary(void **state)
{
    binary = getenv("COUPLET_BINARY");
    return make_top(state);
}

/* Runs the command; its output goes nowhere. Returns its peak resident bytes. */
static int64_t peak_of(char *const *arguments)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execv(binary, arguments);
        _exit(127);
    }
    int status;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return (int64_t)usage.ru_maxrss * 1024;
}

static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...)
{
    va_list arguments;
    char *text = cpl_alloc(1024, 1);
    assert_non_null(text);
    va_start(arguments, format);
    vsnprintf(text, 1024, format, arguments);
    va_end(arguments);
    return text;
}

/* Pairs of ten words out of a few. */
static void put_many(const char *name, int pairs)
{
    cpl_str text = {0};
    for (int i = 0; i < pairs; i++)
        for (int side = 0; side < 2; side++)
            for (int k = 0; k < 10; k++)
                cpl_str_printf(&text, "word%d%c", (i * 7 + k * (i % 5 + side)) % 50, k < 9 ? ' ' : side ? '\n' : '\t');
    put_file(name, text.data);
    cpl_str_free(&text);
}

/* Trains a few steps on the sample (or a file of the test's) with these settings and compares plan and peak. budget:
 * not 0, the bytes that training.memory allows. */
static void check_within(const char *name, const char *model, const char *training, const char *data, double budget)
{
    if (!binary || !binary[0] || getenv("COUPLET_SANITIZED"))
        skip(); /* no command was built, or sanitizers keep memory of their own */
    char *pairs = text_of("%s/%s", data ? top : CPL_TEST_DATA, data ? data : "../data/sample/train.tsv");
    char *config = text_of("model: {%s}\ndata: {train: %s, valid: %s/../data/sample/valid.tsv}\ntraining: {%s}\n",
                           model, pairs, CPL_TEST_DATA, training);
    put_file("config.yaml", config);
    char *path = text_of("%s/config.yaml", top), *folder = text_of("%s/%s", top, name);
    char train_word[] = "train", o[] = "-o", version[] = "--version", program[] = "couplet";
    char *const arguments[] = {program, train_word, path, o, folder, NULL}, *const bare[] = {program, version, NULL};
    int64_t base = peak_of(bare);
    peak_of(arguments);
    cpl_json *end;
    assert_int_equal(read_events(name, "end", &end, 1), 1);
    double used = number(end, "peak_rss_bytes") - (double)base, planned = number(end, "planned_peak_bytes");
    double room = fmax(0.05 * used, 4 << 20);
    print_message("%s: planned %.2f MiB, used %.2f MiB (%+.1f %%)\n", name, planned / 1048576, used / 1048576,
                  100 * (planned / used - 1));
    assert_true(fabs(planned - used) <= room);
    assert_true(budget <= 0 || used <= budget);
    cpl_json_free(end);
    cpl_release(pairs);
    cpl_release(config);
    cpl_release(path);
    cpl_release(folder);
}

static void check(const char *name, const char *model, const char *training, const char *data)
{
    check_within(name, model, training, data, 0);
}

static void small_model(void **state)
{
    (void)state;
    check("small", "units: 32", "batch_size: 16, max_steps: 20, validation_steps: 5", NULL);
}

/* Reading the data takes more than training. */
static void large_data(void **state)
{
    (void)state;
    put_many("many.tsv", 100000);
    check("many", "units: 2", "batch_size: 2, max_steps: 1, validation_steps: 1", "many.tsv");
}

static void large_batch(void **state)
{
    (void)state;
    check("batch", "units: 96, dropout: 0.2", "batch_size: 512, max_steps: 6, validation_steps: 1, clip_norm: 1", NULL);
}

/* The same within budgets that need pieces: less is used than they allow. */
static void within_a_budget(void **state)
{
    (void)state;
    check_within("budget", "units: 96, dropout: 0.2",
                 "batch_size: 512, max_steps: 6, validation_steps: 1, clip_norm: 1, memory: 48MiB", NULL, 48 << 20);
    check_within("tight", "units: 96, dropout: 0.2",
                 "batch_size: 512, max_steps: 6, validation_steps: 1, clip_norm: 1, memory: 40MiB", NULL, 40 << 20);
}

static void large_model(void **state)
{
    (void)state;
    check("model", "units: 512, encoder: {cell: lstm}, decoder: {cell: lstm}",
          "batch_size: 8, max_steps: 3, validation_steps: 1", NULL);
}

/* The average of the weights, beside a model that is kept. */
static void average_of_a_large_model(void **state)
{
    (void)state;
    check("ema", "units: 512, encoder: {cell: lstm}, decoder: {cell: lstm}",
          "batch_size: 8, max_steps: 3, validation_steps: 1, ema: 0.99, keep: 1, label_smoothing: 0.1", NULL);
}

/* Several batches in an update, whole and in pieces; batches of tokens. */
static void grouped_and_token_batches(void **state)
{
    (void)state;
    check("grouped", "units: 96, dropout: 0.2",
          "batch_size: 256, accumulate: 2, max_steps: 4, validation_steps: 1, label_smoothing: 0.1", NULL);
    check_within("grouped_pieces", "units: 96, dropout: 0.2",
                 "batch_size: 256, accumulate: 2, max_steps: 4, validation_steps: 1, memory: 44MiB", NULL, 44 << 20);
    check("tokens", "units: 96, dropout: 0.2", "batch_tokens: 3000, max_steps: 6, validation_steps: 1", NULL);
    check_within("token_pieces", "units: 96, dropout: 0.2",
                 "batch_tokens: 3000, max_steps: 6, validation_steps: 1, memory: 44MiB", NULL, 44 << 20);
}

static void without_state(void **state)
{
    (void)state;
    check("sgd", "units: 256, encoder: {merge: concat}",
          "batch_size: 32, max_steps: 4, validation_steps: 1, optimizer: {name: sgd}, show_examples: 0", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_model), cmocka_unit_test(large_data),
                                       cmocka_unit_test(large_batch), cmocka_unit_test(within_a_budget),
                                       cmocka_unit_test(large_model),
                                       cmocka_unit_test(average_of_a_large_model),
                                       cmocka_unit_test(grouped_and_token_batches),
                                       cmocka_unit_test(without_state)};
    return cmocka_run_group_tests(tests, find_binary, remove_top);
}
