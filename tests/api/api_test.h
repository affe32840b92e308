/* api_test.h: a small untrained model in a file of a fresh folder, and files to read and write. */
#ifndef CPL_TESTS_API_API_TEST_H
#define CPL_TESTS_API_API_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"
#include "decode/decode.h"
#include "model/model_file.h"

static inline void must(cpl_status status, const cpl_error *err)
{
    if (status != CPL_OK)
        cpl_error_print(err, stderr);
    assert_int_equal(status, CPL_OK);
}

typedef struct place {
    char folder[256], model[300];
} place;

static inline void place_make(place *p)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(p->folder, sizeof p->folder, "%s/couplet-api-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->model, sizeof p->model, "%s/model.safetensors", p->folder);
}

static inline char *place_file(const place *p, const char *name, char path[300])
{
    snprintf(path, 300, "%s/%s", p->folder, name);
    return path;
}

static inline void place_write(const place *p, const char *name, const char *text)
{
    char path[300];
    FILE *f = fopen(place_file(p, name, path), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static inline void place_remove(const place *p)
{
    char command[400];
    snprintf(command, sizeof command, "rm -r '%s'", p->folder);
    assert_int_equal(system(command), 0);
}

enum { WORDS = 26 }; /* a … z; with the special entries 30 */

/* One entry for each letter, which are WORDS. */
static inline cpl_vocabulary *letters_of(const char *alphabet)
{
    static const char *const special[] = {"", "[UNK]", "[START]", "[END]"};
    cpl_json *array = cpl_json_array();
    cpl_vocabulary *v;
    cpl_error err = CPL_ERROR_INIT;
    for (int i = 0; i < 4; i++)
        cpl_json_add_text(array, special[i], strlen(special[i]));
    for (int i = 0; i < WORDS; i++)
        cpl_json_add_text(array, alphabet + i, 1);
    must(cpl_vocabulary_from_json(&v, array, &err), &err);
    cpl_json_free(array);
    return v;
}

static const char ALPHABET[] = "abcdefghijklmnopqrstuvwxyz";

static inline cpl_vocabulary *letters(void)
{
    return letters_of(ALPHABET);
}

/* Changes the parameters before they are written. */
typedef void (*shaper)(cpl_parameters *p);

static inline real *values_of(cpl_parameters *p, const char *path, int64_t *elements)
{
    int i = cpl_parameters_find(p, path);
    assert_true(i >= 0);
    *elements = cpl_parameters_at(p, (size_t)i)->elements;
    return cpl_parameters_value(p, (size_t)i);
}

/* Outputs differ from source to source and end by themselves. */
static inline void lively(cpl_parameters *p)
{
    int64_t n;
    for (size_t i = 0; i < cpl_parameters_count(p); i++)
        for (int64_t k = 0; strstr(cpl_parameters_at(p, i)->path, "embedding") && k < cpl_parameters_at(p, i)->elements;
             k++)
            cpl_parameters_value(p, i)[k] *= 40;
    values_of(p, "decoder.output.bias", &n)[CPL_ID_END] = 1;
}

/* Every token always has the same probability; nothing depends on the source. */
static inline void uniform(cpl_parameters *p)
{
    int64_t n;
    real *x = values_of(p, "decoder.output.kernel", &n);
    memset(x, 0, (size_t)n * sizeof *x);
}

/* Always the letter a: never ends. */
static inline void endless(cpl_parameters *p)
{
    int64_t n;
    uniform(p);
    values_of(p, "decoder.output.bias", &n)[CPL_ID_WORDS] = 10;
}

/* Builds, and saves without any training. targets: the letters of the target. */
static inline void model_write_for(const place *p, const char *targets, shaper shape, const char *const *set, int sets)
{
    cpl_config *config;
    cpl_engine *engine;
    cpl_decoder *decoder;
    cpl_model_set *models;
    cpl_error err = CPL_ERROR_INIT;
    cpl_vocabulary *source = letters(), *target = letters_of(targets);
    must(cpl_config_default(&config, &err), &err);
    must(cpl_config_set_pair(config, "model.units=16", &err), &err);
    for (int i = 0; i < sets; i++)
        must(cpl_config_set_pair(config, set[i], &err), &err);
    cpl_model_sizes n = {.config = config, .source_vocabulary = WORDS + 4, .target_vocabulary = WORDS + 4};
    must(cpl_engine_new(&engine, 1, 5, &err), &err);
    must(cpl_decoder_new(&decoder, &cpl_translator, &n, engine, &err), &err);
    if (shape)
        shape(engine->parameters);
    cpl_model_facts facts = {.config = config, .source = source, .target = target, .parameters = engine->parameters,
                             .longest_target = 9};
    must(cpl_model_set_new(&models, &facts, &err), &err);
    cpl_tensor_set view = cpl_model_set_view(models, 0, 0, "[]", NULL);
    must(cpl_tensor_file_write(p->model, &view, &err), &err);
    cpl_model_set_free(models);
    cpl_decoder_free(decoder);
    cpl_engine_release(engine);
    cpl_vocabulary_free(source);
    cpl_vocabulary_free(target);
    cpl_config_free(config);
}

static inline void model_write(const place *p, shaper shape, const char *const *set, int sets)
{
    model_write_for(p, ALPHABET, shape, set, sets);
}

static inline cpl_model *model_open(const place *p)
{
    cpl_model *m;
    cpl_error err = CPL_ERROR_INIT;
    must(cpl_model_open(&m, p->model, 1, &err), &err);
    return m;
}

#endif
