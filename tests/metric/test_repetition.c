/* test_repetition.c: repeated trigrams and copied tokens, counted by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "metric/repetition.h"

static void add(cpl_repetition_counts *c, cpl_bleu_split split, const char *output, const char *source)
{
    assert_int_equal(cpl_repetition_add(c, split, (cpl_metric_text){output, strlen(output)},
                                        (cpl_metric_text){source, strlen(source)}, NULL), CPL_OK);
}

static void check(cpl_bleu_split split, const char *output, const char *source, const uint64_t expected[4])
{
    cpl_repetition_counts c = {0};
    add(&c, split, output, source);
    assert_int_equal(c.repeated, expected[0]);
    assert_int_equal(c.trigrams, expected[1]);
    assert_int_equal(c.copied, expected[2]);
    assert_int_equal(c.tokens, expected[3]);
}

static void counts_follow_by_hand(void **state)
{
    (void)state;
    check(CPL_BLEU_13A, "", "a b", (uint64_t[]){0, 0, 0, 0});
    check(CPL_BLEU_13A, "a b", "", (uint64_t[]){0, 0, 0, 2});
    check(CPL_BLEU_13A, "a b c", "c a", (uint64_t[]){0, 1, 2, 3});
    /* abc bca cab abc bca: the last two are repeated */
    check(CPL_BLEU_13A, "a b c a b c a", "b", (uint64_t[]){2, 5, 2, 7});
    /* overlapping: aaa aaa aaa */
    check(CPL_BLEU_13A, "a a a a a", "a", (uint64_t[]){2, 3, 5, 5});
    /* the dog , the dog , the dog . has "the dog ,", "dog , the" and ", the dog" twice */
    check(CPL_BLEU_13A, "the dog, the dog, the dog.", "The dog.", (uint64_t[]){3, 7, 4, 9});
    /* split at white space alone: the dog, the dog, the dog. */
    check(CPL_BLEU_NONE, "the dog, the dog, the dog.", "The dog.", (uint64_t[]){1, 4, 1, 6});
    check(CPL_BLEU_CHAR, "xyxyx", "y", (uint64_t[]){1, 3, 2, 5}); /* xyx yxy xyx */
    /* slices that look alike are no trigrams: "ab c d" and "a bc d" differ */
    check(CPL_BLEU_NONE, "ab c d a bc d", "d", (uint64_t[]){0, 4, 2, 6});
}

/* An output repeats itself, not the output before it; shares are of all tokens together. */
static void shares_are_of_all_outputs_together(void **state)
{
    (void)state;
    cpl_repetition_counts c = {0};
    assert_true(cpl_repeated_trigrams(&c) == 0 && cpl_copy_rate(&c) == 0);
    add(&c, CPL_BLEU_13A, "a b c", "a");
    add(&c, CPL_BLEU_13A, "a b c", "x");
    assert_true(cpl_repeated_trigrams(&c) == 0);
    add(&c, CPL_BLEU_13A, "a a a a", "a");
    assert_true(fabs(cpl_repeated_trigrams(&c) - 1.0 / 4) < 1e-12);
    assert_true(fabs(cpl_copy_rate(&c) - 5.0 / 10) < 1e-12);
    char signature[CPL_SIGNATURE_SIZE];
    assert_string_equal(cpl_repetition_signature(CPL_BLEU_CHAR, signature, sizeof signature),
                        "case:mixed|tok:char|version:couplet-" CPL_VERSION_STRING);
}

static void short_memory_is_told(void **state)
{
    (void)state;
    cpl_repetition_counts c = {0};
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        cpl_memory_fail_at(at);
        cpl_status status = cpl_repetition_add(&c, CPL_BLEU_13A, (cpl_metric_text){"a b c a", 7},
                                               (cpl_metric_text){"a", 1}, NULL);
        cpl_memory_fail_at(0);
        if (status == CPL_OK)
            break;
        assert_true(c.tokens == 0 && c.copied == 0 && c.trigrams == 0);
        failures++;
    }
    assert_true(failures > 3);
    assert_true(c.tokens == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_follow_by_hand),
        cmocka_unit_test(shares_are_of_all_outputs_together),
        cmocka_unit_test(short_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
