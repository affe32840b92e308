/* test_sampling.c: training.scheduled_sampling: which words the decoder reads in training. The model's own words are
 * found anew here, as the largest of the logits that the score graph gives for the true targets. */
#include "train/train_test.h"

#include "config/config.h"
#include "data/data.h"
#include "graph/program.h"
#include "text/text.h"
#include "train/trainer.h"

enum { PAIRS = 16, LONGEST = 8, MOST_WORDS = 32 };

static const char config[] = "model: {units: 8, dropout: 0.3}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 16, show_examples: 0, threads: 1, epochs: 3, log_every: 1}\n";

typedef struct opened {
    cpl_config *config;
    cpl_dataset *data;
    cpl_trainer *trainer;
} opened;

static opened open_trainer(const char *share)
{
    char path[700];
    opened o;
    put_pairs("train.tsv", 40), put_pairs("valid.tsv", 8), put_file("config.yaml", config);
    snprintf(path, sizeof path, "%s/config.yaml", top);
    assert_int_equal(cpl_config_load(&o.config, path, NULL), CPL_OK);
    assert_int_equal(cpl_config_set(o.config, "training.scheduled_sampling", share, NULL), CPL_OK);
    assert_int_equal(cpl_dataset_new(&o.data, &(cpl_dataset_options){.config = o.config}, NULL), CPL_OK);
    assert_int_equal(cpl_trainer_new(&o.trainer, &(cpl_trainer_options){.config = o.config, .data = o.data}, NULL),
                     CPL_OK);
    return o;
}

static void close_trainer(opened *o)
{
    cpl_trainer_free(o->trainer);
    cpl_dataset_free(o->data);
    cpl_config_free(o->config);
}

/* own[i][k]: the likeliest word behind the true words 0 … k. */
static void find_own(const cpl_trainer *t, const cpl_batch *b, int32_t own[PAIRS][LONGEST])
{
    static float logits[PAIRS * LONGEST * MOST_WORDS];
    cpl_program shared = {.engine = t->program->engine}, *p;
    cpl_compile_options o = {.name = "score", .share = &shared, .inference = 1};
    int64_t words = t->sizes.target_vocabulary, shape[6];
    int rank;
    assert_true(b->pairs <= PAIRS && words <= MOST_WORDS);
    assert_int_equal(cpl_compile(&p, t->kind->score, &t->sizes, &o, NULL), CPL_OK);
    assert_int_equal(cpl_feed_ids(p, "source", b->source, b->source_length, b->pairs, NULL), CPL_OK);
    assert_int_equal(cpl_feed_ids(p, "target_in", b->target_in, b->target_length, b->pairs, NULL), CPL_OK);
    assert_int_equal(cpl_feed_ids(p, "target_out", b->target_out, b->target_length, b->pairs, NULL), CPL_OK);
    assert_int_equal(cpl_run(p, CPL_EVALUATE, NULL), CPL_OK);
    assert_int_equal(cpl_read(p, "logits", logits, sizeof logits / sizeof *logits, shape, &rank, NULL), CPL_OK);
    for (int64_t i = 0; i < b->pairs; i++)
        for (int64_t k = 0; k < b->target_length[i]; k++) {
            const float *row = logits + (i * shape[1] + k) * words;
            own[i][k] = 0;
            for (int32_t w = 1; w < words; w++)
                if (row[w] > row[own[i][k]])
                    own[i][k] = w;
        }
    cpl_program_free(p);
}

/* Trains a little, then looks at what the next batch would read: how many of the words are the model's own although
 * they could be told from the true ones, of how many. */
static double share_of_own(const char *share)
{
    int32_t own[PAIRS][LONGEST];
    opened o = open_trainer(share);
    cpl_step_result r;
    int differ = 0, taken = 0;
    cpl_trainer *t = o.trainer;
    assert_int_equal(cpl_optimizer_new(&t->optimizer, t->training, t->program->engine, t->program->gradients, NULL),
                     CPL_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(cpl_trainer_step(t, &r, NULL), CPL_OK);
    for (int batch = 0; batch < 4; batch++) {
        const cpl_batch *b = cpl_batcher_next(o.trainer->train);
        find_own(o.trainer, b, own);
        assert_int_equal(cpl_trainer_sample(o.trainer, b, NULL), CPL_OK);
        const int32_t *const *read = cpl_trainer_target_in(o.trainer, b, CPL_TRAIN);
        assert_ptr_equal(cpl_trainer_target_in(o.trainer, b, CPL_EVALUATE), b->target_in);
        for (int64_t i = 0; i < b->pairs; i++) {
            assert_int_equal(read[i][0], CPL_ID_START);
            for (int64_t k = 1; k < b->target_length[i]; k++) {
                int32_t true_word = b->target_in[i][k], own_word = own[i][k - 1];
                assert_true(read[i][k] == true_word || read[i][k] == own_word);
                int usable = own_word != true_word && own_word != CPL_ID_PADDING && own_word != CPL_ID_START;
                differ += usable, taken += usable && read[i][k] == own_word;
            }
        }
    }
    close_trainer(&o);
    assert_true(differ > 30);
    return (double)taken / differ;
}

static void a_share_of_the_words_is_the_models_own(void **state)
{
    (void)state;
    assert_true(share_of_own("1") == 1);
    double half = share_of_own("0.5");
    assert_true(half > 0.25 && half < 0.75);
}

static void without_it_nothing_is_made(void **state)
{
    (void)state;
    opened o = open_trainer("0");
    const cpl_batch *b = cpl_batcher_next(o.trainer->train);
    assert_null(o.trainer->sampler);
    assert_int_equal(cpl_trainer_sample(o.trainer, b, NULL), CPL_OK);
    assert_ptr_equal(cpl_trainer_target_in(o.trainer, b, CPL_TRAIN), b->target_in);
    close_trainer(&o);
}

/* The plan names what it takes. */
static void the_plan_has_it(void **state)
{
    (void)state;
    opened o = open_trainer("0.3");
    const cpl_memory_figures *m = cpl_trainer_memory(o.trainer);
    uint64_t bytes = 0;
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->part[i].name, "sampling") == 0)
            bytes = m->part[i].bytes;
    assert_true(bytes > 16 * 4 * sizeof(float));
    uint64_t before = cpl_memory_live_bytes();
    const cpl_batch *b = cpl_batcher_next(o.trainer->train);
    assert_int_equal(cpl_trainer_sample(o.trainer, b, NULL), CPL_OK);
    assert_int_equal(cpl_memory_live_bytes(), before); /* all of it was taken beforehand */
    close_trainer(&o);
}

static void what_cannot_be_sampled_is_refused(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c;
    (void)state;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    assert_int_equal(cpl_config_set_pair(c, "training.scheduled_sampling=1.5", &err), CPL_USAGE);
    assert_int_equal(cpl_config_set_pair(c, "training.scheduled_sampling=0.2", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_OK);
    assert_int_equal(cpl_config_set_pair(c, "model.copy=true", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "the words of a model that copies come from two sides"));
    assert_int_equal(cpl_config_set_pair(c, "model.copy=false", &err), CPL_OK);
    assert_int_equal(cpl_config_set_pair(c, "model.type=autoencoder", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "has no decoder that reads words"));
    cpl_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_share_of_the_words_is_the_models_own),
                                       cmocka_unit_test(without_it_nothing_is_made),
                                       cmocka_unit_test(the_plan_has_it),
                                       cmocka_unit_test(what_cannot_be_sampled_is_refused)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
