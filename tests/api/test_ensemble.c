/* Several models that generate together, from files. */
#include "api/run_text.h"

#include <math.h>
#include "api/model.h"

static const char TEXT[] = "a b c\n\nd e f g h\nz\na b c\n";

static cpl_model *open_all(const char *first, const char *second)
{
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_model_open_ensemble(&m, (const char *[]){first, second}, second ? 2 : 1, 1, &err), &err);
    return m;
}

/* Equal texts, with numbers that may differ in the sixth digit. */
static void expect_alike(const char *a, const char *b)
{
    while (*a || *b) {
        if (((*a >= '0' && *a <= '9') || *a == '-') && ((*b >= '0' && *b <= '9') || *b == '-')) {
            char *x, *y;
            double u = strtod(a, &x), v = strtod(b, &y);
            if (x == a || y == b) /* a hyphen */
                x = (char *)(uintptr_t)(a + 1), y = (char *)(uintptr_t)(b + 1);
            else if (!(fabs(u - v) <= 2e-5 + 1e-6 * fabs(u)))
                fail_msg("%.10g and %.10g", u, v);
            a = x, b = y;
            continue;
        }
        if (*a++ != *b++)
            fail_msg("'%.40s' and '%.40s'", a - 1, b - 1);
    }
}

/* Another seed in effect: the same layers, turned around. */
static void other(cpl_parameters *p)
{
    int64_t n;
    lively(p);
    for (size_t i = 0; i < cpl_parameters_count(p); i++) {
        real *x = cpl_parameters_value(p, i);
        n = cpl_parameters_at(p, i)->elements;
        for (int64_t k = 0; k < n / 2; k++) {
            real y = x[k];
            x[k] = x[n - 1 - k], x[n - 1 - k] = y;
        }
    }
    memset(values_of(p, "decoder.output.bias", &n), 0, sizeof(real) * (WORDS + 4));
    values_of(p, "decoder.output.bias", &n)[CPL_ID_END] = 1;
}

static const cpl_generate_options kinds[] = {
    {.json = 1}, {.beam = 4, .json = 1}, {.beam = 4, .nbest = 3, .length_penalty = 1}, {.temperature = 1, .json = 1},
    {.beam = 3, .coverage_penalty = .5, .json = 1}, {.no_repeat = 2, .min_length = 3, .json = 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void a_model_with_itself_is_that_model(void **state)
{
    (void)state;
    place p;
    place_make(&p);
    model_write(&p, lively, (const char *const[]){"model.decoder.attention.heads=2"}, 1);
    cpl_model *alone = open_all(p.model, NULL), *twice = open_all(p.model, p.model);
    for (int i = 0; i < KINDS; i++) {
        char *one = run(&p, alone, TEXT, &kinds[i]), *two = run(&p, twice, TEXT, &kinds[i]);
        expect_alike(one, two);
        cpl_release(one);
        cpl_release(two);
    }
    cpl_model_close(alone);
    cpl_model_close(twice);
    place_remove(&p);
}

/* Models of other sizes, that read the source by other rules. The order of the models and the batch change nothing. */
static void models_need_not_be_alike(void **state)
{
    (void)state;
    place p, q;
    place_make(&p);
    place_make(&q);
    model_write(&p, lively, NULL, 0);
    model_write(&q, other, (const char *const[]){"model.units=8", "model.decoder.cell=lstm", "model.encoder.cell=lstm",
                                                 "text.source.tokens=char"}, 4);
    cpl_model *a = open_all(p.model, NULL), *b = open_all(q.model, NULL), *ab = open_all(p.model, q.model),
              *ba = open_all(q.model, p.model);
    int differ = 0;
    for (int i = 0; i < KINDS; i++) {
        cpl_generate_options o = kinds[i], single = kinds[i];
        o.max_length = single.max_length = 25; /* the default is a matter of the first model's tokens */
        o.coverage_penalty = single.coverage_penalty = 0;
        char *x = run(&p, ab, TEXT, &o), *y = run(&p, ba, TEXT, &o), *one = run(&p, a, TEXT, &o),
             *two = run(&p, b, TEXT, &o);
        single.batch_size = 1;
        char *z = run(&p, ab, TEXT, &single);
        expect_alike(x, y);
        expect_alike(x, z);
        differ += strcmp(x, one) != 0 && strcmp(x, two) != 0;
        cpl_release(x), cpl_release(y), cpl_release(z), cpl_release(one), cpl_release(two);
    }
    assert_int_equal(differ, KINDS);
    cpl_model_close(a);
    cpl_model_close(b);
    cpl_model_close(ab);
    cpl_model_close(ba);
    place_remove(&p);
    place_remove(&q);
}

static void attention_needs_the_same_source_tokens(void **state)
{
    (void)state;
    place p, q;
    char folder[300], *text;
    place_make(&p);
    place_make(&q);
    model_write(&p, lively, NULL, 0);
    model_write(&q, other, (const char *const[]){"text.source.tokens=char"}, 1);
    cpl_generate_options o = {.attention_folder = place_file(&p, "looks", folder), .json = 1};
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *m = open_all(p.model, q.model);
    assert_int_equal(cpl_generate(&text, m, "a b", &o, &err), CPL_USAGE);
    assert_true(says(&err, "reads its source as"));
    cpl_model_close(m);
    model_write(&q, other, NULL, 0);
    m = open_all(p.model, q.model);
    char *out = run(&p, m, "a b c\n", &o), *at = strstr(out, "\"weights\": [[");
    assert_non_null(at);
    double sum = 0;
    at += strlen("\"weights\": [[");
    for (int s = 0; s < 5; s++, at++)
        sum += strtod(at, &at);
    assert_true(fabs(sum - 1) < 1e-3);
    cpl_release(out);
    cpl_model_close(m);
    place_remove(&p);
    place_remove(&q);
}

static void refused(const place *p, const place *q, const char *why)
{
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_model_open_ensemble(&m, (const char *[]){p->model, q->model}, 2, 1, &err), CPL_USAGE);
    assert_null(m);
    if (!says(&err, why)) {
        cpl_error_print(&err, stderr);
        fail_msg("'%s' is not said", why);
    }
}

static void what_cannot_join_is_refused(void **state)
{
    (void)state;
    place p, q;
    char why[700];
    place_make(&p);
    place_make(&q);
    model_write(&p, lively, NULL, 0);
    model_write_for(&q, "abdcefghijklmnopqrstuvwxyz", lively, NULL, 0);
    snprintf(why, sizeof why, "target entry 6 is 'c' in '%s' but 'd' in '%s'", p.model, q.model);
    refused(&p, &q, why);
    model_write(&q, lively, (const char *const[]){"text.target.tokens=char"}, 1);
    refused(&p, &q, "the target's tokens are of the kind 'word'");
    model_write(&q, lively, (const char *const[]){"model.copy=true", "model.decoder.attention.heads=1"}, 2);
    refused(&p, &q, "model 2 copies words of its source");
    refused(&q, &p, "model 1 copies words of its source");
    place_remove(&p);
    place_remove(&q);
}

static void probabilities_are_of_one_model(void **state)
{
    (void)state;
    place p;
    char pairs[300], *text;
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    place_write(&p, "pairs.tsv", "a b\tc d\ne\tf\n");
    cpl_model *m = open_all(p.model, p.model);
    cpl_error err = CPL_ERROR_INIT;
    cpl_evaluate_options o = {.pairs = place_file(&p, "pairs.tsv", pairs), .json = 1};
    must(cpl_evaluate(m, &o, &text, &err), &err); /* by default what outputs have */
    assert_non_null(strstr(text, "\"bleu\""));
    assert_null(strstr(text, "\"loss\""));
    cpl_free(text);
    o.metrics = "bleu,loss";
    assert_int_equal(cpl_evaluate(m, &o, &text, &err), CPL_USAGE);
    assert_true(says(&err, "come from one model, but 2 were given"));
    assert_int_equal(cpl_score_pairs(m, &(cpl_score_options){.pairs = pairs}, stdout, &err), CPL_USAGE);
    cpl_model_close(m);
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_with_itself_is_that_model),
        cmocka_unit_test(models_need_not_be_alike),
        cmocka_unit_test(attention_needs_the_same_source_tokens),
        cmocka_unit_test(what_cannot_join_is_refused),
        cmocka_unit_test(probabilities_are_of_one_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
