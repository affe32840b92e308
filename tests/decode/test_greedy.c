/* cpl_greedy: a step program of the user's own stops when all sentences have ended. */
#include "graph/graph_test.h"

enum { END = 2, WORD = 3, MOST = 20 };

/* A state that counts up to 1: WORD while it is not positive, then END. */
static void counter(cpl_graph *g, const void *user)
{
    cpl_node *token = cpl_input(g, "token", CPL_ID("words", 4), "batch");
    cpl_node *h = cpl_input(g, "h", CPL_REALS(1), "batch in");
    cpl_node *x = cpl_embedding(g, "embedding", token, &(cpl_embedding_options){.size = 4, .units = 1, .dim = "in"});
    (void)user;
    h = cpl_add(g, cpl_dense(g, "next", h, &(cpl_dense_options){.units = 1, .dim = "in"}), x);
    cpl_output(g, "h", h);
    cpl_output(g, "token", cpl_argmax(g, cpl_dense(g, "output", h, &(cpl_dense_options){.units = 4, .dim = "vocab"})));
}

typedef struct first {
    float h[4]; /* sentence i ends after −h[i] words */
    int64_t batch, steps;
} first;

/* The first states; later ones are carried. */
static cpl_status feed_first(cpl_program *p, int64_t number, void *user, cpl_error *err)
{
    first *f = user;
    cpl_array h = reals(f->h, 2, f->batch, 1, 0);
    f->steps++;
    return number == 0 ? cpl_feed(p, "h", &h, err) : CPL_OK;
}

static cpl_program *counting(void)
{
    cpl_program *p = compiled(counter, NULL, &(cpl_compile_options){.inference = 1});
    set_parameter(p, "embedding.kernel", (const float[]){0, 0, 0, 0}, 4);
    set_parameter(p, "next.kernel", (const float[]){1}, 1);
    set_parameter(p, "next.bias", (const float[]){1}, 1);
    set_parameter(p, "output.kernel", (const float[]){0, 0, 1, -1}, 4);
    set_parameter(p, "output.bias", (const float[]){-9, -9, -0.25f, 0.25f}, 4);
    MUST(cpl_carry(p, "h", "h", err));
    return p;
}

static void stops_when_all_sentences_have_ended(void **state)
{
    (void)state;
    cpl_program *p = counting();
    first f = {{-2, 0, -5, -3}, 4, 0};
    cpl_greedy_options o = {"token", "token", 1, END, MOST, feed_first, &f};
    int32_t tokens[4 * MOST];
    int64_t lengths[4], steps;
    for (int again = 0; again < 2; again++) { /* no state survives: case D10 */
        f.steps = 0;
        MUST(cpl_greedy(p, 4, &o, tokens, lengths, &steps, err));
        assert_int_equal(steps, 6); /* five words and END */
        assert_int_equal(f.steps, 6);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(lengths[i], (int)-f.h[i]);
            for (int k = 0; k < MOST; k++)
                assert_int_equal(tokens[i * MOST + k], k < lengths[i] ? WORD : END);
        }
    }
    o.max_steps = 3;
    MUST(cpl_greedy(p, 4, &o, tokens, lengths, &steps, err));
    assert_int_equal(steps, 3);
    assert_int_equal(lengths[2], 3); /* cut */
    assert_int_equal(lengths[0], 2);
    f.batch = 1, f.h[0] = 0; /* ends at once; another batch */
    MUST(cpl_greedy(p, 1, &o, tokens, lengths, &steps, err));
    assert_int_equal(steps, 1);
    assert_int_equal(lengths[0], 0);
    cpl_program_free(p);
}

static void mistakes_name_the_step(void **state)
{
    (void)state;
    cpl_program *p = counting();
    int32_t tokens[MOST];
    int64_t lengths[1];
    first f = {{-2}, 1, 0};
    cpl_greedy_options o = {"word", "token", 1, END, MOST, feed_first, &f};
    REFUSED(cpl_greedy(p, 1, &o, tokens, lengths, NULL, err), "cannot decode at step 0", "'word'");
    cpl_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stops_when_all_sentences_have_ended),
                                       cmocka_unit_test(mistakes_name_the_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
