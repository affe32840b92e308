/* test_given.c: vocabularies and word vectors that the configuration gives by file (text.*.vocabulary, vectors). */
#include "train/train_test.h"

#include "model/model_file.h"

static const char basis[] = "model: {units: 4}\n"
                            "data: {train: train.tsv, valid: valid.tsv}\n"
                            "training: {batch_size: 4, show_examples: 0, threads: 1, max_steps: 3, log_every: 1}\n";

#define SPECIALS "\n[UNK]\n[START]\n[END]\n"
static const char words[] = SPECIALS "uno\ndos\ntres\ncasa\nperro\ngato\nagua\n"; /* no sol */

static void prepare(const char *text)
{
    char config[900];
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("words.txt", words);
    snprintf(config, sizeof config, "%s%s", basis, text);
    put_file("config.yaml", config);
}

static cpl_model_file *open_model(const char *folder, const char *name)
{
    char path[700];
    cpl_model_file *f;
    cpl_error err = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s/%s/%s", top, folder, name);
    if (cpl_model_file_open(&f, path, &err) != CPL_OK)
        cpl_error_print(&err, stderr);
    assert_non_null(f);
    return f;
}

static void must_train(run *r)
{
    if (train(r) != CPL_OK)
        fail_msg("%s (%s)", r->error.line[0], r->error.hint);
}

/* What train refuses must be in one of the error's lines. */
static void must_refuse(run *r, const char *part)
{
    assert_int_equal(train(r), CPL_USAGE);
    for (int i = 0; i < r->error.lines; i++)
        if (strstr(r->error.line[i], part))
            return;
    fail_msg("'%s' is not in: %s", part, r->error.line[0]);
}

/* ---- vocabularies ---- */

/* Written to a file and read again, the vocabulary that training builds gives the same ids, hence the same weights. */
static void same_ids_same_weights(void **state)
{
    (void)state;
    char path[700];
    prepare("");
    run built = {.folder = "built", .overwrite = 1};
    must_train(&built);
    cpl_model_file *f = open_model("built", "model.safetensors");
    snprintf(path, sizeof path, "%s/source.txt", top);
    assert_int_equal(cpl_vocabulary_write(f->source, path, NULL), CPL_OK);
    snprintf(path, sizeof path, "%s/target.txt", top);
    assert_int_equal(cpl_vocabulary_write(f->target, path, NULL), CPL_OK);
    run given = {.folder = "given", .overwrite = 1,
                 .set = {"text.source.vocabulary=source.txt", "text.target.vocabulary=target.txt"}};
    must_train(&given);
    assert_same_tensors("built", "given", "model.safetensors");
    cpl_model_file *g = open_model("given", "model.safetensors");
    assert_int_equal(cpl_vocabulary_checksum(f->source), cpl_vocabulary_checksum(g->source));
    assert_int_equal(cpl_vocabulary_checksum(f->target), cpl_vocabulary_checksum(g->target));
    assert_string_equal(g->config->text.source.vocabulary.written, "source.txt");
    cpl_model_file_close(f);
    cpl_model_file_close(g);
}

/* A list that lacks a word: it is unknown, the report says how often, and the model needs the file no longer. */
static void the_model_holds_the_vocabulary(void **state)
{
    (void)state;
    char path[700];
    cpl_json *events[4];
    cpl_error err = CPL_ERROR_INIT;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    run r = {.folder = "m", .overwrite = 1, .set = {"training.max_steps=2"}};
    must_train(&r);
    assert_int_equal(read_events("m", "start", events, 4), 1);
    const cpl_json *side = cpl_json_get(cpl_json_get(events[0], "data"), "source");
    assert_string_equal(cpl_json_text(cpl_json_get(side, "vocabulary_from"), NULL), "words.txt");
    assert_int_equal(cpl_json_int(cpl_json_get(side, "vocabulary_size"), 0), 11);
    double unknown = cpl_json_real(cpl_json_get(side, "unknown_share"), 0);
    assert_true(unknown > 0.05 && unknown < 0.5);
    cpl_json_free(events[0]);
    run twice = {.folder = "m", .resume = 1, .set = {"training.max_steps=4"}};
    must_train(&twice);
    put_file("words.txt", SPECIALS "uno\ndos\ntres\ncasa\nperro\nagua\ngato\n");
    run other = {.folder = "m", .resume = 1, .set = {"training.max_steps=6"}};
    must_refuse(&other, "entry 9 is 'gato' and 'agua'");
    snprintf(path, sizeof path, "%s/words.txt", top);
    assert_int_equal(unlink(path), 0);
    run gone = {.folder = "n", .overwrite = 1};
    must_refuse(&gone, "words.txt");
    cpl_model *m;
    snprintf(path, sizeof path, "%s/m/model.safetensors", top);
    assert_int_equal(cpl_model_open(&m, path, 1, &err), CPL_OK);
    cpl_model_close(m);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    run size = {.folder = "n", .set = {"text.source.vocabulary_size=32000"}};
    must_refuse(&size, "'text.source.vocabulary_size' is set, but 'text.source.vocabulary' names a list");
    run count = {.folder = "n", .set = {"text.source.min_count=2"}};
    must_refuse(&count, "'text.source.min_count' is set");
    run neither = {.folder = "n", .set = {"text.source.vocabulary=", "text.source.min_count=2"}};
    must_train(&neither);
    prepare("text: {target: {vocabulary: words.txt, vocabulary_size: 8}}\n");
    run line = {.folder = "o", .set = {NULL}};
    must_refuse(&line, "config.yaml:4: 'text.target.vocabulary_size' is set");
}

static void one_vocabulary_of_an_autoencoder(void **state)
{
    (void)state;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    run r = {.folder = "ae", .overwrite = 1, .set = {"model.type=autoencoder", "model.bottleneck=3"}};
    must_train(&r);
    cpl_model_file *f = open_model("ae", "model.safetensors");
    assert_int_equal(cpl_vocabulary_size(f->target), 11);
    assert_int_equal(cpl_vocabulary_checksum(f->source), cpl_vocabulary_checksum(f->target));
    cpl_model_file_close(f);
}

/* A part brings its vocabulary: a file that says the same is fine, another one is refused with the first difference. */
static void case_H02_a_part_and_a_file(void **state)
{
    (void)state;
    char init[800];
    prepare("text: {source: {vocabulary: words.txt}}\n");
    run first = {.folder = "a", .overwrite = 1};
    must_train(&first);
    snprintf(init, sizeof init, "training.init={encoder: %s/a/model.safetensors}", top);
    run same = {.folder = "b", .overwrite = 1, .set = {init}};
    must_train(&same);
    put_file("words.txt", SPECIALS "dos\nuno\ntres\ncasa\nperro\ngato\nagua\n");
    run other = {.folder = "c", .overwrite = 1, .set = {init}};
    must_refuse(&other, "entry 4 is 'uno' and 'dos'");
}

static void in_words(const char *text, const char *const *parts)
{
    run r = {.folder = "n", .set = {NULL}};
    put_file("words.txt", text);
    for (; *parts; parts++)
        must_refuse(&r, *parts);
}

#define IN_WORDS(text, ...) in_words(text, (const char *const[]){__VA_ARGS__, NULL})

static void case_E07_duplicates_through_the_configuration(void **state)
{
    (void)state;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    IN_WORDS(SPECIALS "house\ncat\nhouse\n", "'house' stands on lines 5 and 7, as ids 4 and 6",
             "cannot use the source vocabulary (text.source.vocabulary)", "/words.txt'");
}

static void case_E08_specials_through_the_configuration(void **state)
{
    (void)state;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    IN_WORDS("<s>\n</s>\n<pad>\n<unk>\nuno\n", "line 1 is '<s>'");
}

static void case_E09_odd_lines_through_the_configuration(void **state)
{
    (void)state;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    IN_WORDS(SPECIALS "uno\n\nb\r\nthe 118\n", "line 6 is blank", "line 7 'b\\r' ends in a carriage return",
             "line 8 'the 118'");
}

static void case_C11_padding_through_the_configuration(void **state)
{
    (void)state;
    prepare("text: {source: {vocabulary: words.txt}}\n");
    IN_WORDS("the\ncat\nsat\n", "line 1 is 'the': id 0 must be the padding entry");
}

/* ---- vectors ---- */

static const char vectors[] = "4 4\nuno 1 -2 0.5 0.1\ncasa 5 6 7 8\nmanzana 9 9 9 9\nhouse 0.25 0 0 -1\n";

static const float *row_of(const cpl_model_file *f, int target, const char *word)
{
    const cpl_tensor_entry *t =
        cpl_tensor_file_find(f->tensors, target ? "decoder.embedding.kernel" : "encoder.embedding.kernel");
    int32_t id = cpl_vocabulary_id(target ? f->target : f->source, word, strlen(word));
    return (const float *)t->data + (size_t)id * 4;
}

/* Frozen, the rows are after training what they were before it: the file's numbers, and what chance gave the others. */
static void rows_begin_with_vectors(void **state)
{
    (void)state;
    static const float uno[] = {1, -2, 0.5f, 0.1f}, casa[] = {5, 6, 7, 8}, house[] = {0.25f, 0, 0, -1};
    prepare("");
    put_file("v.vec", vectors);
    run plain = {.folder = "plain", .overwrite = 1,
                 .set = {"training.freeze=[encoder.embedding, decoder.embedding]"}};
    must_train(&plain);
    run r = {.folder = "v", .overwrite = 1,
             .set = {plain.set[0], "text.source.vectors=v.vec", "text.target.vectors=v.vec"}};
    must_train(&r);
    assert_non_null(strstr(r.warned, "of the tokens of the source have a vector in 'v.vec'"));
    cpl_model_file *a = open_model("plain", "model.safetensors"), *b = open_model("v", "model.safetensors");
    assert_memory_equal(row_of(b, 0, "uno"), uno, sizeof uno);
    assert_memory_equal(row_of(b, 0, "casa"), casa, sizeof casa);
    assert_memory_equal(row_of(b, 1, "house"), house, sizeof house);
    assert_memory_equal(row_of(b, 1, "dog"), row_of(a, 1, "dog"), sizeof uno);
    assert_memory_equal(row_of(b, 0, "perro"), row_of(a, 0, "perro"), sizeof uno);
    assert_memory_equal(row_of(b, 0, "no such word"), row_of(a, 0, "no such word"), sizeof uno); /* [UNK] */
    cpl_model_file_close(a);
    cpl_model_file_close(b);
}

/* Resumed after a stop the run ends as without one, though the file has gone; the start event has the coverage. */
static void resume_reads_no_vectors(void **state)
{
    (void)state;
    char path[700];
    cpl_json *events[4];
    cpl_error err = CPL_ERROR_INIT;
    prepare("text: {source: {vectors: v.vec}}\n");
    put_file("v.vec", vectors);
    run whole = {.folder = "whole", .overwrite = 1, .set = {"training.max_steps=6"}};
    must_train(&whole);
    run half = {.folder = "half", .overwrite = 1};
    must_train(&half);
    assert_int_equal(read_events("half", "start", events, 4), 1);
    const cpl_json *side = cpl_json_get(cpl_json_get(events[0], "data"), "source");
    const cpl_json *v = cpl_json_get(side, "vectors");
    assert_string_equal(cpl_json_text(cpl_json_get(v, "file"), NULL), "v.vec");
    assert_int_equal(cpl_json_int(cpl_json_get(v, "vectors"), 0), 4);
    assert_int_equal(cpl_json_int(cpl_json_get(v, "exact"), 0), 2);
    assert_int_equal(cpl_json_int(cpl_json_get(v, "lower_case"), -1), 0);
    assert_true(number(v, "word_share") == 0.25); /* two of eight words */
    cpl_json_free(events[0]);
    snprintf(path, sizeof path, "%s/v.vec", top);
    assert_int_equal(unlink(path), 0);
    half.overwrite = 0, half.resume = 1, half.set[0] = "training.max_steps=6";
    must_train(&half);
    assert_same_tensors("whole", "half", "model.safetensors");
    run other = {.folder = "half", .resume = 1, .set = {"training.max_steps=8", "text.source.vectors=w.vec"}};
    must_refuse(&other, "'text.source.vectors' was v.vec in the run and is now w.vec");
    cpl_model *m;
    snprintf(path, sizeof path, "%s/half/model.safetensors", top);
    assert_int_equal(cpl_model_open(&m, path, 1, &err), CPL_OK);
    cpl_model_close(m);
}

static void vectors_that_cannot_be(void **state)
{
    (void)state;
    char init[800];
    prepare("text: {source: {vectors: v.vec}}\n");
    put_file("v.vec", vectors);
    run wide = {.folder = "n", .set = {"model.units=6"}};
    must_refuse(&wide, "'v.vec' has vectors of 4 numbers, but encoder.embedding has 6 (model.units)");
    assert_string_equal(wide.error.hint, "set model.embedding to 4, or take vectors of 6 numbers");
    run fits = {.folder = "a", .overwrite = 1, .set = {"model.units=6", "model.embedding=4"}};
    must_train(&fits);
    snprintf(init, sizeof init, "training.init={encoder: %s/a/model.safetensors}", top);
    run both = {.folder = "n", .set = {"model.units=6", "model.embedding=4", init}};
    must_refuse(&both, "it gives 'encoder.embedding.kernel' its weights, and so does text.source.vectors ('v.vec')");
    snprintf(init, sizeof init, "training.init={encoder.rnn: %s/a/model.safetensors}", top);
    must_train(&both);
    run reduced = {.folder = "b", .overwrite = 1, .set = {"model.units=4", "training.precision=bfloat16"}};
    must_train(&reduced);
    run mirror = {.folder = "c", .overwrite = 1, .set = {"model.type=autoencoder"}};
    must_train(&mirror);
    run bottle = {.folder = "d", .overwrite = 1,
                  .set = {"model.type=autoencoder", "model.bottleneck=3",
                          "training.freeze=[encoder.embedding, decoder.embedding]"}};
    must_train(&bottle);
    static const float casa[] = {5, 6, 7, 8};
    cpl_model_file *f = open_model("d", "model.safetensors");
    assert_memory_equal(row_of(f, 0, "casa"), casa, sizeof casa);
    assert_memory_equal(row_of(f, 1, "casa"), casa, sizeof casa);
    cpl_model_file_close(f);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_top, remove_top)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(same_ids_same_weights),
        IN_FOLDER(the_model_holds_the_vocabulary),
        IN_FOLDER(contradictions_are_refused),
        IN_FOLDER(one_vocabulary_of_an_autoencoder),
        IN_FOLDER(case_H02_a_part_and_a_file),
        IN_FOLDER(case_E07_duplicates_through_the_configuration),
        IN_FOLDER(case_E08_specials_through_the_configuration),
        IN_FOLDER(case_E09_odd_lines_through_the_configuration),
        IN_FOLDER(case_C11_padding_through_the_configuration),
        IN_FOLDER(rows_begin_with_vectors),
        IN_FOLDER(resume_reads_no_vectors),
        IN_FOLDER(vectors_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
