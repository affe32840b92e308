/* test_lengths.c: sources of 10 to 2,000 tokens in one data set. */
#include "train/train_test.h"

enum { SHORTEST = 10, LONGEST = 2000, PAIRS = 60 };

/* Lengths grow by a constant factor, in a scrambled order; a target is the source's first words. */
static void put_lengths(const char *name, int pairs, int64_t *tokens)
{
    static const char *const words[] = {"uno", "dos", "tres", "casa", "perro", "gato", "agua", "sol"};
    cpl_str text = {0};
    for (int i = 0; i < pairs; i++) {
        double at = (double)(i * 17 % pairs) / (double)(pairs - 1), n = SHORTEST;
        for (int k = 0; k < 100; k++) /* n · 200^at, by a hundred equal factors */
            n *= 1 + at * 0.0544114;
        int length = (int)(n > LONGEST ? LONGEST : n);
        length = i * 17 % pairs == pairs - 1 ? LONGEST : length;
        for (int k = 0; k < length; k++)
            cpl_str_printf(&text, "%s%s", k ? " " : "", words[(i + k * 3) % 8]);
        cpl_str_add_char(&text, '\t');
        for (int k = 0; k < 5; k++)
            cpl_str_printf(&text, "%s%s", words[(i + k * 3) % 8], k < 4 ? " " : "\n");
        *tokens += length + 2 + 5 + 1;
    }
    put_file(name, text.data);
    cpl_str_free(&text);
}

/* One trace, the two plans that are made before the first step and count the longest, and no work for padding: whatever
 * lengths come, in whatever order. */
static void sources_of_10_to_2000_tokens(void **state)
{
    (void)state;
    int64_t tokens = 0, valid = 0;
    put_lengths("train.tsv", PAIRS, &tokens);
    put_lengths("valid.tsv", 6, &valid);
    put_file("config.yaml", "model: {units: 4}\ndata: {train: train.tsv, valid: valid.tsv}\n"
                            "text: {source: {tokens: word}, target: {tokens: word}}\n"
                            "training: {batch_size: 8, epochs: 2, log_every: 1, threads: 1, show_examples: 0}\n");
    run r = {.folder = "lengths"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(r.steps_seen, 2 * ((PAIRS + 7) / 8));
    cpl_json *epochs[2], *plans[8];
    assert_int_equal(read_events("lengths", "epoch", epochs, 2), 2);
    assert_int_equal(read_events("lengths", "plan", plans, 8), 2);
    for (int i = 0; i < 2; i++) {
        assert_true(number(epochs[i], "valid_token_share") == 1.0);
        assert_true(number(epochs[i], "traces") == 1);
        assert_true(number(epochs[i], "plans") == 2);
        const cpl_json *capacity = cpl_json_get(plans[i], "capacity");
        assert_true(number(capacity, "longest_s") == LONGEST + 2); /* with START and END */
        assert_true(number(capacity, "tokens_s") < 8.0 * LONGEST);
        cpl_json_free(epochs[i]);
        cpl_json_free(plans[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sources_of_10_to_2000_tokens)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
