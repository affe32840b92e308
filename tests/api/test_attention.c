/* generate with a folder for attention: numbers that are a distribution, and pictures that any reader of XML takes. */
#include "api/api_test.h"

#include <math.h>
#include <sys/stat.h>
#include "api/model.h"
#include "api/picture.h"
#include "base/files.h"

/* Weights differ from place to place, and outputs end. */
static cpl_model *open_lively(place *p)
{
    place_make(p);
    model_write(p, lively, (const char *const[]){"model.decoder.attention.heads=2"}, 1);
    return model_open(p);
}

/* Text through cpl_generate_lines; out gets the whole output. */
static cpl_status run(const place *p, cpl_model *m, const char *text, const cpl_generate_options *o, char out[32768],
                      cpl_error *err)
{
    char path[300], result[300];
    place_write(p, "in.txt", text);
    FILE *in = fopen(place_file(p, "in.txt", path), "r"), *to = fopen(place_file(p, "out.txt", result), "w+");
    cpl_status status = cpl_generate_lines(m, in, to, o, NULL, NULL, err);
    rewind(to);
    out[fread(out, 1, 32767, to)] = '\0';
    fclose(in);
    fclose(to);
    return status;
}

static char *read_picture(const char *folder, const char *name)
{
    char path[600], *data;
    size_t length;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    must(cpl_file_read(path, &data, &length, &err), &err);
    assert_int_equal(strlen(data), length);
    return data;
}

static int occurrences(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

/* ---- well-formed: every element is closed in its order, attributes are quoted, & starts one of the entities ---- */

static const char *expect_entity(const char *p)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (int i = 0; i < 4; i++)
        if (strncmp(p, entities[i], strlen(entities[i])) == 0)
            return p + strlen(entities[i]);
    fail_msg("not an entity: %.20s", p);
    return p;
}

/* From after the name to after '>'. *empty: 1 when the element ends by itself. */
static const char *expect_attributes(const char *p, int *empty)
{
    *empty = 0;
    while (*p == ' ') {
        p += 1 + strcspn(p + 1, "= >/<\"");
        assert_int_equal(strncmp(p, "=\"", 2), 0);
        for (p += 2; *p != '"'; p++)
            assert_true(*p != '\0' && *p != '<' && *p != '&');
        p++;
    }
    if (*p == '/')
        *empty = 1, p++;
    assert_int_equal(*p, '>');
    return p + 1;
}

static void expect_well_formed(const char *p)
{
    const char *open[16];
    int depth = 0, empty, elements = 0;
    static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    assert_int_equal(strncmp(p, head, sizeof head - 1), 0);
    assert_int_equal(cpl_utf8_valid(p, strlen(p)), strlen(p));
    for (p += sizeof head - 1; *p;) {
        size_t name = strcspn(p + 1, " />");
        assert_true((unsigned char)*p >= 0x20 || *p == '\n');
        if (*p == '&') {
            p = expect_entity(p);
        } else if (*p != '<') {
            assert_true(depth > 0 || *p == '\n');
            assert_int_not_equal(*p, '>');
            p++;
        } else if (p[1] == '/') {
            assert_true(depth > 0);
            name = strcspn(p + 2, ">");
            assert_int_equal(strncmp(open[--depth], p + 2, name), 0);
            assert_int_equal(strcspn(open[depth], " />"), name);
            p += name + 3;
        } else {
            assert_true(depth < 15 && (depth > 0 || elements == 0)); /* one root */
            open[depth] = p + 1;
            elements++;
            p = expect_attributes(p + 1 + name, &empty);
            depth += !empty;
        }
    }
    assert_int_equal(depth, 0);
    assert_true(elements > 3);
}

/* ---- generate ---- */

static void weights_of_each_token_sum_to_one(void **state)
{
    (void)state;
    place p;
    cpl_model *m = open_lively(&p);
    cpl_error err = CPL_ERROR_INIT;
    const cpl_answer *answers;
    cpl_line lines[] = {{"a b c", 5, 1}, {"", 0, 2}, {"z y x w v u t", 13, 3}};
    must(cpl_model_answer(m, lines, 3, &(cpl_generate_options){.attention_folder = p.folder}, &answers, &err), &err);
    for (int i = 0; i < 3; i++) {
        const cpl_decoded *o = &answers[i].output;
        assert_int_equal(answers[i].blank, i == 1);
        if (i == 1)
            continue;
        assert_int_equal(o->source_length, i == 0 ? 5 : 9);
        for (int64_t t = 0; t < o->length + o->finished; t++) {
            double sum = 0;
            for (int64_t s = 0; s < o->source_length; s++)
                sum += (double)o->attention[t * o->source_length + s];
            assert_true(fabs(sum - 1) < 1e-5);
        }
    }
    cpl_model_close(m);
    place_remove(&p);
}

static void a_picture_for_each_line_with_an_output(void **state)
{
    (void)state;
    place p;
    char folder[300], out[32768], plain[32768];
    struct stat about;
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *m = open_lively(&p);
    cpl_generate_options o = {.attention_folder = place_file(&p, "new/pictures", folder)};
    must(run(&p, m, "a b c\n\nq r <&> \"s\"\n", &o, out, &err), &err);
    must(run(&p, m, "a b c\n\nq r <&> \"s\"\n", NULL, plain, &err), &err);
    assert_string_equal(out, plain); /* the output is the same */
    char *first = read_picture(folder, "000001.svg"), *third = read_picture(folder, "000003.svg"), missing[400];
    snprintf(missing, sizeof missing, "%s/000002.svg", folder);
    assert_int_equal(stat(missing, &about), -1);
    expect_well_formed(first);
    expect_well_formed(third);
    assert_non_null(strstr(first, ">a</text>"));
    assert_int_equal(occurrences(first, ">[START]</text>"), 1);
    assert_non_null(strstr(third, ">&lt;<title>&lt; (not in the vocabulary)</title></text>"));
    assert_non_null(strstr(third, ">&amp;<title>"));
    assert_non_null(strstr(third, ">&quot;<title>"));
    assert_null(strstr(third, "\xEF\xBF\xAD")); /* joiners are not shown */
    char *one;
    must(cpl_generate(&one, m, "a b c", &o, &err), &err);
    char *again = read_picture(folder, "000001.svg");
    assert_string_equal(again, first);
    cpl_free(one);
    cpl_release(first);
    cpl_release(third);
    cpl_release(again);
    cpl_model_close(m);
    place_remove(&p);
}

static void expect_json(const cpl_json *o)
{
    const cpl_json *a = cpl_json_get(o, "attention"), *source = cpl_json_get(a, "source");
    const cpl_json *target = cpl_json_get(a, "target"), *weights = cpl_json_get(a, "weights");
    size_t n = cpl_json_size(source), rows = cpl_json_size(target);
    assert_int_equal(n, 5);
    assert_string_equal(cpl_json_text(cpl_json_at(source, 0), NULL), "[START]");
    assert_string_equal(cpl_json_text(cpl_json_at(source, 1), NULL), "a");
    assert_string_equal(cpl_json_text(cpl_json_at(source, 2), NULL), "unheard"); /* the line's own word */
    assert_string_equal(cpl_json_text(cpl_json_at(source, 4), NULL), "[END]");
    if (cpl_json_bool(cpl_json_get(o, "finished"), 0))
        assert_string_equal(cpl_json_text(cpl_json_at(target, rows - 1), NULL), "[END]");
    assert_int_equal(cpl_json_size(weights), rows);
    for (size_t t = 0; t < rows; t++) {
        double sum = 0;
        assert_int_equal(cpl_json_size(cpl_json_at(weights, t)), n);
        for (size_t s = 0; s < n; s++)
            sum += cpl_json_real(cpl_json_at(cpl_json_at(weights, t), s), NAN);
        assert_true(fabs(sum - 1) < 1e-3); /* four digits each */
    }
}

static void json_has_the_numbers_when_asked(void **state)
{
    (void)state;
    place p;
    char folder[300], out[32768];
    cpl_error err = CPL_ERROR_INIT;
    cpl_json *o;
    cpl_model *m = open_lively(&p);
    cpl_generate_options options = {.json = 1, .attention_folder = place_file(&p, "pictures", folder)};
    must(run(&p, m, "a unheard c\n\n", &options, out, &err), &err);
    char *second = strchr(out, '\n') + 1;
    assert_string_equal(second, "{\"text\": \"\", \"score\": 0.0, \"finished\": true, \"attention\": {\"source\": [], "
                                "\"target\": [], \"weights\": []}}\n");
    if (cpl_json_available()) {
        must(cpl_json_parse(&o, out, (size_t)(second - out), &err), &err);
        expect_json(o);
        cpl_json_free(o);
    }
    options.attention_folder = NULL;
    must(run(&p, m, "a unheard c\n", &options, out, &err), &err);
    assert_null(strstr(out, "attention"));
    cpl_model_close(m);
    place_remove(&p);
}

static void a_folder_that_cannot_be_is_told_first(void **state)
{
    (void)state;
    place p;
    char file[300], out[32768], *one;
    cpl_model *m = open_lively(&p);
    place_write(&p, "taken", "a file");
    cpl_generate_options o = {.attention_folder = place_file(&p, "taken", file)};
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(run(&p, m, "a b\n", &o, out, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "cannot make folder"));
    assert_string_equal(out, "");
    assert_int_equal(cpl_generate(&one, m, "a b", &o, &err), CPL_FAILED);
    cpl_model_close(m);
    place_remove(&p);
}

/* ---- the picture alone ---- */

#define LABEL(text) {(text), sizeof(text) - 1, CPL_LABEL_WORD}

static void draw(const cpl_label *source, size_t columns, const cpl_label *target, size_t lines, cpl_str *svg)
{
    float weights[64];
    for (int i = 0; i < 64; i++)
        weights[i] = (float)i / 100;
    cpl_str_clear(svg);
    cpl_picture_write(&(cpl_picture){.title = "a < b & \"c\"", .weights = weights,
                                     .source = {source, columns, CPL_TOKENS_WORD},
                                     .target = {target, lines, CPL_TOKENS_CHAR}}, svg);
    assert_int_equal(svg->failed, 0);
    expect_well_formed(svg->data);
}

static int left_of(const char *svg)
{
    const char *grid = strstr(svg, "d=\"M");
    return grid ? atoi(grid + 4) : -1;
}

/* Hebrew and Arabic read towards their squares from either side; two Chinese characters need the room of four letters;
 * a mark needs none. */
static void scripts_get_direction_and_room(void **state)
{
    (void)state;
    cpl_str svg = {0};
    static const cpl_label source[] = {LABEL("שלום"), LABEL("abc")}, target[] = {LABEL("مرحبا")};
    draw(source, 2, target, 1, &svg);
    assert_non_null(strstr(svg.data, "rotate(-45)\" text-anchor=\"end\" direction=\"rtl\">שלום</text>"));
    assert_non_null(strstr(svg.data, "rotate(-45)\">abc</text>"));
    const char *arabic = strstr(svg.data, " direction=\"rtl\">مرحبا</text>");
    assert_non_null(arabic);
    assert_null(strstr(arabic - 20, "text-anchor")); /* its start is its right end, beside the squares */
    static const cpl_label latin[] = {LABEL("abcd")}, chinese[] = {LABEL("世界")}, marked[] = {LABEL("a\u0301bcd")};
    static const cpl_label two[] = {LABEL("ab")};
    draw(source, 1, latin, 1, &svg);
    int four = left_of(svg.data);
    assert_non_null(strstr(svg.data, " text-anchor=\"end\">abcd</text>"));
    draw(source, 1, chinese, 1, &svg);
    assert_int_equal(left_of(svg.data), four);
    draw(source, 1, marked, 1, &svg);
    assert_int_equal(left_of(svg.data), four);
    draw(source, 1, two, 1, &svg);
    assert_true(left_of(svg.data) < four);
    cpl_str_free(&svg);
}

static void long_labels_are_cut_and_odd_ones_shown(void **state)
{
    (void)state;
    cpl_str svg = {0};
    static const cpl_label source[] = {LABEL("abcdefghijklmnopqrstuvwxyz"), LABEL("abcdefghijklmnopqrst"),
                                       LABEL("世界世界世界世界世界世界"), LABEL("\x01\uFFFE\x7F")};
    static const cpl_label target[] = {LABEL(" "), LABEL(""), LABEL("<![CDATA[")};
    draw(source, 4, target, 3, &svg);
    assert_non_null(strstr(svg.data, ">abcdefghijklmnopqrs…<title>abcdefghijklmnopqrstuvwxyz</title></text>"));
    assert_non_null(strstr(svg.data, ">abcdefghijklmnopqrst</text>"));
    assert_non_null(strstr(svg.data, ">世界世界世界世界世…<title>"));
    assert_non_null(strstr(svg.data, ">��\x7F</text>"));
    assert_non_null(strstr(svg.data, ">␣</text>"));
    assert_non_null(strstr(svg.data, ">(padding)</text>"));
    assert_non_null(strstr(svg.data, ">&lt;![CDATA[</text>"));
    cpl_str_free(&svg);
}

static void shades_are_the_weights(void **state)
{
    (void)state;
    cpl_str svg = {0};
    static const cpl_label source[] = {LABEL("a"), LABEL("b")}, target[] = {LABEL("x"), LABEL("y")};
    static const float weights[] = {0.25F, 0.75F, 1, 0.0004F};
    cpl_picture_write(&(cpl_picture){.title = "", .weights = weights, .source = {source, 2, CPL_TOKENS_SPACE},
                                     .target = {target, 2, CPL_TOKENS_SPACE}}, &svg);
    assert_non_null(strstr(svg.data, "fill-opacity=\"0.250\"><title>0.250</title>"));
    assert_non_null(strstr(svg.data, "fill-opacity=\"0.750\"><title>0.750</title>"));
    assert_non_null(strstr(svg.data, "fill-opacity=\"1.000\"><title>1.000</title>"));
    assert_int_equal(occurrences(svg.data, "fill-opacity"), 3); /* what cannot be seen is not drawn */
    cpl_str_free(&svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_each_token_sum_to_one),
        cmocka_unit_test(a_picture_for_each_line_with_an_output),
        cmocka_unit_test(json_has_the_numbers_when_asked),
        cmocka_unit_test(a_folder_that_cannot_be_is_told_first),
        cmocka_unit_test(scripts_get_direction_and_room),
        cmocka_unit_test(long_labels_are_cut_and_odd_ones_shown),
        cmocka_unit_test(shades_are_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
