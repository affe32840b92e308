/* The notation of signatures: read, matched against types, turned into types, and what a mismatch says. */
#include "graph/graph_test.h"
#include "graph/signature.h"

static cpl_dim feature(const char *name, int64_t size)
{
    return (cpl_dim){.name = name, .size = size, .symbol = CPL_NO_SYMBOL, .kind = CPL_DIM_FEATURE};
}

static cpl_dim symbol(const char *name, int index)
{
    return (cpl_dim){.name = name, .symbol = index, .kind = cpl_dim_word(name, strlen(name))};
}

static cpl_type type_of(int rank, cpl_dim a, cpl_dim b, cpl_dim c)
{
    return (cpl_type){.rank = rank, .dim = {a, b, c}, .order = CPL_ORDER_CALLER};
}

static cpl_signature parsed(const char *text)
{
    cpl_signature s;
    MUST(cpl_signature_parse(&s, text, err));
    return s;
}

static void reads_all_of_the_notation(void **state)
{
    (void)state;
    cpl_signature s = parsed("x[batch t in] w[in 3u] b[2 3u]? id y[... =vocab] -> z[batch t u+2v] h[batch u] ; "
                             "keep[4u]");
    assert_int_equal(s.inputs, 4);
    assert_int_equal(s.outputs, 3);
    assert_int_equal(s.visible, 2);
    assert_string_equal(s.in[0].name, "x");
    assert_int_equal(s.in[0].rank, 3);
    assert_string_equal(s.in[0].dim[2].name, "in");
    assert_int_equal(s.in[1].dim[1].factor, 3);
    assert_string_equal(s.in[1].dim[1].name, "u");
    assert_int_equal(s.in[2].optional, 1);
    assert_int_equal(s.in[2].dim[0].factor, 2);
    assert_string_equal(s.in[2].dim[0].name, "");
    assert_int_equal(s.in[3].id, 1);
    assert_string_equal(s.in[3].name, "y");
    assert_int_equal(s.in[3].dim[0].ellipsis, 1);
    assert_int_equal(s.in[3].dim[1].vocabulary, 1);
    assert_string_equal(s.out[0].dim[2].name2, "v");
    assert_int_equal(s.out[0].dim[2].factor2, 2);
    assert_int_equal(s.out[1].hidden, 0);
    assert_int_equal(s.out[2].hidden, 1);
}

static void a_number_is_not_an_ordinary_word(void **state)
{
    (void)state;
    assert_int_equal(parsed("x[] -> y[]").in[0].rank, 0);
    assert_int_equal(cpl_dim_word("batch", 5), CPL_DIM_BATCH);
    assert_int_equal(cpl_dim_word("s", 1), CPL_DIM_TIME);
    assert_int_equal(cpl_dim_word("t", 1), CPL_DIM_TIME);
    assert_int_equal(cpl_dim_word("padded", 6), CPL_DIM_PADDED);
    assert_int_equal(cpl_dim_word("steps", 5), CPL_DIM_FEATURE);
}

static void malformed_signatures(void **state)
{
    (void)state;
    static const char *const bad[] = {"x[batch", "x batch]", "x[a]", "x[a] -> y[a", "x[a,b] -> y[a]", "x[?] -> y[]",
                                      "x[a b c d e f g] -> y[a]", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cpl_signature s;
        cpl_error err = CPL_ERROR_INIT;
        if (cpl_signature_parse(&s, bad[i], &err) != CPL_FAILED)
            fail_msg("'%s' was accepted", bad[i]);
        assert_non_null(strstr(err.line[0], "malformed op signature"));
    }
}

static void every_op_parses(void **state)
{
    (void)state;
    size_t n = 0;
    for (; cpl_op_at(n); n++) {
        cpl_signature s = parsed(cpl_op_at(n)->signature);
        assert_true(s.inputs > 0 && s.visible > 0);
        assert_ptr_equal(cpl_op_named(cpl_op_at(n)->name), cpl_op_at(n));
    }
    assert_true(n > 15);
    assert_null(cpl_op_named("no such op"));
}

/* A match with two inputs, by the signature alone. */
static cpl_status match_two(const char *text, const cpl_type *x, const cpl_type *w, cpl_bindings *b, cpl_error *err)
{
    cpl_signature s = parsed(text);
    const cpl_op op = {.name = "product", .signature = text};
    const cpl_type *types[CPL_MAX_INPUTS] = {x, w};
    const char *paths[CPL_MAX_INPUTS] = {"decoder.rnn", "decoder.query.kernel"};
    return cpl_signature_match(&op, &s, types, paths, b, err);
}

static const char product[] = "x[... in] w[in 3u] -> y[... u 2 u+in]";

static void matches_and_makes_types(void **state)
{
    (void)state;
    cpl_type x = type_of(3, symbol("batch", 0), symbol("t", 1), feature("units", 4));
    cpl_type w = type_of(2, feature("in", 4), feature("gates", 15), feature("", 0));
    cpl_bindings b;
    MUST(match_two(product, &x, &w, &b, err));
    cpl_signature s = parsed(product);
    cpl_arena *names = cpl_arena_new(1024);
    cpl_type y;
    char text[160];
    MUST(cpl_signature_type(&s.out[0], &b, names, &y, err));
    assert_int_equal(y.rank, 5);
    assert_int_equal(y.dim[0].kind, CPL_DIM_BATCH);
    assert_int_equal(y.dim[1].symbol, 1);
    assert_int_equal(y.dim[2].size, 5);
    assert_int_equal(y.dim[3].size, 2);
    assert_int_equal(y.dim[4].size, 9);
    assert_int_equal(strncmp(cpl_type_text(&y, text, sizeof text), "[batch t ", 9), 0);
    cpl_arena_free(names);
}

static void mismatches_name_op_dimension_sizes_and_shapes(void **state)
{
    (void)state;
    cpl_bindings b;
    cpl_type x = type_of(3, symbol("batch", 0), symbol("t", 1), feature("units", 12));
    cpl_type w = type_of(2, feature("in", 16), feature("out", 9), feature("", 0));
    REFUSED(match_two(product, &x, &w, &b, err), "product", "dimension 'in' is 12",
            "x 'decoder.rnn' [batch t units=12]", "16 in w 'decoder.query.kernel' [in=16 out=9]");
    w = type_of(2, feature("in", 12), feature("out", 10), feature("", 0)); /* 10 is no multiple of 3 */
    REFUSED(match_two(product, &x, &w, &b, err), "expected w [in 3u]", "[in=12 out=10]");
    w = type_of(1, feature("in", 12), feature("", 0), feature("", 0));
    REFUSED(match_two(product, &x, &w, &b, err), "expected w [in 3u]", "[in=12]");
    REFUSED(match_two(product, &x, NULL, &b, err), "input 'w' is missing");
    x.element = CPL_ELEMENT_ID;
    REFUSED(match_two(product, &x, &w, &b, err), "x must be real numbers");
}

/* Equal sizes do not make s and t one; a time is not a feature. */
static void symbols_are_not_sizes(void **state)
{
    (void)state;
    cpl_bindings b;
    cpl_type x = type_of(2, symbol("batch", 0), symbol("s", 1), feature("", 0));
    cpl_type y = type_of(2, symbol("batch", 0), symbol("t", 2), feature("", 0));
    REFUSED(match_two("a[batch t] b[batch t] -> c[]", &x, &y, &b, err), "'t'", "'s'", "[batch s]", "[batch t]");
    MUST(match_two("a[batch t] b[batch t] -> c[]", &x, &x, &b, err));
    cpl_type f = type_of(2, symbol("batch", 0), feature("units", 3), feature("", 0));
    REFUSED(match_two("a[batch t] b[batch t] -> c[]", &f, &x, &b, err), "expected a [batch t]", "[batch units=3]");
    REFUSED(match_two("a[...] b[...] -> c[...]", &x, &f, &b, err), "shapes differ", "[batch s]", "[batch units=3]");
}

static void optional_and_ids(void **state)
{
    (void)state;
    cpl_bindings b;
    cpl_type x = type_of(1, feature("n", 3), feature("", 0), feature("", 0));
    MUST(match_two("x[n] b[n]? -> y[n]", &x, NULL, &b, err));
    REFUSED(match_two("id x[n] b[n]? -> y[n]", &x, NULL, &b, err), "x must be integer ids");
}

/* Rows and widths of types under one batch, by hand. */
static void sizes_of_types(void **state)
{
    (void)state;
    cpl_binding b = {.batch = 4, .rows = {0, 10, 6, 7}, .longest = {0, 4, 3}};
    b.pairs[1][2] = b.pairs[2][1] = 17;
    cpl_type sequence = type_of(3, symbol("batch", 0), symbol("s", 1), feature("units", 5));
    assert_int_equal(cpl_type_rows(&sequence, &b), 10);
    assert_int_equal(cpl_type_width(&sequence), 5);
    assert_int_equal(cpl_type_bytes(&sequence, &b), 10 * 5 * sizeof(float));
    cpl_type state_type = type_of(2, symbol("batch", 0), feature("units", 5), feature("", 0));
    assert_int_equal(cpl_type_elements(&state_type, &b), 20);
    cpl_type padded = type_of(3, symbol("batch", 0), symbol("padded", 3), feature("units", 2));
    assert_int_equal(cpl_type_elements(&padded, &b), 4 * 7 * 2);
    cpl_type weights = {.rank = 4, .dim = {feature("heads", 2), symbol("batch", 0), symbol("t", 2), symbol("s", 1)}};
    assert_int_equal(cpl_type_elements(&weights, &b), 2 * 17);
    cpl_type scalar = {.rank = 0};
    assert_int_equal(cpl_type_elements(&scalar, &b), 1);
    cpl_binding larger = b;
    larger.batch = 5;
    assert_true(cpl_binding_fits(&b, &larger) && !cpl_binding_fits(&larger, &b));
    cpl_binding_grow(&b, &larger);
    assert_int_equal(b.batch, 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(reads_all_of_the_notation),
    cmocka_unit_test(a_number_is_not_an_ordinary_word),
    cmocka_unit_test(malformed_signatures),
    cmocka_unit_test(every_op_parses),
    cmocka_unit_test(matches_and_makes_types),
    cmocka_unit_test(mismatches_name_op_dimension_sizes_and_shapes),
    cmocka_unit_test(symbols_are_not_sizes),
    cmocka_unit_test(optional_and_ids),
    cmocka_unit_test(sizes_of_types),
};

CPL_TEST_MAIN(tests)
