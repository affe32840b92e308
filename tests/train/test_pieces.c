/* test_pieces.c: batches cut to fit a budget (training.memory) together with what else changes a step: frozen parts,
 * noise, padding that is read. Every loss is that of the whole batch. */
#include "train/train_test.h"

#include <math.h>

#include "train/trainer.h"

/* Lines of 1 to 40 words, of two columns or one. */
static void put_lines(const char *name, int lines, int columns)
{
    static const char *const words[] = {"uno", "dos", "tres", "casa", "perro", "gato", "agua", "sol"};
    cpl_str text = {0};
    for (int i = 0; i < lines; i++)
        for (int side = 0; side < columns; side++) {
            int n = 1 + (i * 7 + side * 3) % 40;
            for (int k = 0; k < n; k++)
                cpl_str_printf(&text, "%s%s", words[(i + k * (side + 1)) % 8],
                               k + 1 < n ? " " : side + 1 < columns ? "\t" : "\n");
        }
    put_file(name, text.data);
    cpl_str_free(&text);
}

/* A budget that leaves a third of the activations of whole batches. */
static void budget(char set[64])
{
    char config[700], *text;
    cpl_json *root;
    snprintf(config, sizeof config, "%s/config.yaml", top);
    assert_int_equal(cpl_plan(&(cpl_train_options){.config_path = config}, 1, &text, NULL), CPL_OK);
    assert_int_equal(cpl_json_parse(&root, text, strlen(text), NULL), CPL_OK);
    const cpl_json *parts = cpl_json_get(root, "parts"), *reading = cpl_json_get(parts, "reading");
    double peak = number(root, "peak_bytes") - (reading ? cpl_json_real(reading, 0) : 0);
    snprintf(set, 64, "training.memory=%" PRId64,
             (int64_t)(peak - number(parts, "activations") * 2 / 3 + (1 << 18) + peak / 256));
    cpl_json_free(root);
    cpl_free(text);
}

/* Runs both ways; all losses of steps and of validations agree. */
static void same_losses(const char *name, const char *config)
{
    char memory[64], pieces[64];
    put_file("config.yaml", config);
    budget(memory);
    snprintf(pieces, sizeof pieces, "%s_pieces", name);
    run a = {.folder = name}, b = {.folder = pieces, .set = {memory}};
    cpl_json *from[64], *to[64], *start;
    assert_int_equal(train(&a), CPL_OK);
    assert_int_equal(train(&b), CPL_OK);
    assert_int_equal(read_events(pieces, "start", &start, 1), 1);
    assert_true(number(start, "micro_batch") >= 1 && number(start, "micro_batch") < 16);
    cpl_json_free(start);
    const char *const events[] = {"step", "epoch", "epoch"}, *const keys[] = {"loss", "val_loss", "valid_token_share"};
    for (int i = 0; i < 3; i++) {
        size_t n = read_events(name, events[i], from, 64);
        assert_int_equal(read_events(pieces, events[i], to, 64), n);
        assert_true(n > 1);
        for (size_t k = 0; k < n; k++) {
            double x = number(from[k], keys[i]), y = number(to[k], keys[i]);
            if (!(x > 0 && fabs(x - y) <= 1e-4 * x))
                fail_msg("%s: %s %zu is %.9g in pieces, %.9g whole", name, keys[i], k + 1, y, x);
            cpl_json_free(from[k]);
            cpl_json_free(to[k]);
        }
    }
}

#define CONFIG(model, data, training)                                                                                  \
    "model: {units: 24, dropout: 0.3, " model "}\ndata: {train: train.tsv, valid: valid.tsv" data "}\n"                \
    "training: {threads: 1, log_every: 1, batch_size: 16, epochs: 2, show_examples: 0" training "}\n"

static void with_a_frozen_part(void **state)
{
    (void)state;
    put_lines("train.tsv", 75, 2), put_lines("valid.tsv", 20, 2);
    same_losses("frozen", CONFIG("type: translator", "", ", freeze: [encoder]"));
    same_losses("pattern", CONFIG("type: translator", "", ", freeze: ['*.embedding', decoder.rnn], clip_norm: 0.5"));
}

static void with_noise(void **state)
{
    (void)state;
    put_lines("train.tsv", 75, 1), put_lines("valid.tsv", 20, 1);
    same_losses("noise", CONFIG("type: autoencoder", ", noise: {mask: 0.2, swap: 0.2}", ""));
    same_losses("vector", CONFIG("type: autoencoder, bottleneck: 12", ", noise: {drop: 0.2, mask: 0.1}", ""));
    same_losses("both", CONFIG("type: autoencoder, bottleneck: 12", ", noise: {drop: 0.2}", ", freeze: [encoder.rnn]"));
}

/* Lines of up to 42 tokens, START and END included, are filled up to 30; noise shortens them before. */
static void with_padding(void **state)
{
    (void)state;
    put_lines("train.tsv", 75, 1), put_lines("valid.tsv", 20, 1);
    same_losses("padded", CONFIG("type: autoencoder, encoder: {mask: false}", ", noise: {mask: 0.2}", "")
                          "text: {source: {pad_to: 30}}\n");
    same_losses("padded_vector", CONFIG("type: autoencoder, bottleneck: 12, encoder: {mask: false}",
                                        ", noise: {drop: 0.3}", "") "text: {source: {pad_to: 30}}\n");
}

/* Noise stays on the words: END stands where they end, padding follows up to pad_to, and nothing else has id 0. */
static void noise_leaves_padding_alone(void **state)
{
    (void)state;
    enum { ROWS = 200, WORDS = 6, PAD_TO = 12 };
    static const char *const sets[] = {"model.encoder.mask=false", "text.source.pad_to=12", "data.noise.drop=0.4",
                                       "data.noise.mask=0.3", "data.noise.swap=0.3"};
    static int32_t ids[PAD_TO] = {CPL_ID_START, 10, 11, 12, 13, 14, 15, CPL_ID_END}, room[ROWS * PAD_TO];
    static const int32_t *from[ROWS], *row[ROWS];
    static int64_t length[ROWS], after[ROWS], pair[ROWS];
    cpl_config *c;
    const int32_t *const *rows;
    const int64_t *lengths;
    int words = 0, masked = 0;
    assert_int_equal(cpl_config_default(&c, NULL), CPL_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(cpl_config_set_pair(c, sets[i], NULL), CPL_OK);
    for (int i = 0; i < ROWS; i++)
        from[i] = ids, length[i] = PAD_TO, pair[i] = i;
    cpl_trainer t = {.config = c, .training = &c->training, .noise_ids = room, .noise_row = row, .noise_length = after};
    cpl_batch b = {.pairs = ROWS, .source = from, .source_length = length, .pair = pair};
    cpl_trainer_add_noise(&t, &b, CPL_TRAIN, 0, ROWS, &rows, &lengths);
    for (int i = 0; i < ROWS; i++) {
        int64_t n = cpl_source_real(rows[i], lengths[i]);
        assert_int_equal(lengths[i], PAD_TO);
        assert_true(n >= 2 && n <= WORDS + 2);
        assert_int_equal(rows[i][0], CPL_ID_START);
        assert_int_equal(rows[i][n - 1], CPL_ID_END);
        for (int64_t k = 1; k + 1 < n; k++) {
            assert_true(rows[i][k] == CPL_ID_UNKNOWN || (rows[i][k] >= 10 && rows[i][k] <= 15));
            masked += rows[i][k] == CPL_ID_UNKNOWN;
        }
        words += (int)n - 2;
    }
    assert_true(abs(words - ROWS * WORDS * 6 / 10) < 80 && abs(masked - ROWS * WORDS * 3 / 10) < 80);
    cpl_config_free(c);
}

/* Training and plan warn of a model without masking that no padding reaches, once each. */
static void without_padding_there_is_a_warning(void **state)
{
    (void)state;
    char path[700], *text;
    put_lines("train.tsv", 12, 2), put_lines("valid.tsv", 4, 2);
    put_file("config.yaml", CONFIG("encoder: {mask: false}", "", ", max_steps: 1"));
    run r = {.folder = "warned", .set = {NULL}}, p = {.folder = NULL}, silent = {.folder = "silent"};
    assert_int_equal(train(&r), CPL_OK);
    assert_non_null(strstr(r.warned, "trained without masking ('model.encoder.mask' is false)"));
    assert_null(strstr(strstr(r.warned, "without masking") + 1, "without masking"));
    snprintf(path, sizeof path, "%s/config.yaml", top);
    cpl_train_options o = {.config_path = path, .message = on_message, .user = &p};
    assert_int_equal(cpl_plan(&o, 0, &text, NULL), CPL_OK);
    cpl_free(text);
    assert_non_null(strstr(p.warned, "set text.source.pad_to"));
    silent.set[0] = "text.source.pad_to=50";
    assert_int_equal(train(&silent), CPL_OK);
    assert_null(strstr(silent.warned, "without masking"));
    silent.set[0] = "text.source.pad_to=20", silent.overwrite = 1;
    assert_int_equal(train(&silent), CPL_OK);
    assert_non_null(strstr(silent.warned, "texts of the source are longer than text.source.pad_to (20, START and END "
                                          "included)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_a_frozen_part), cmocka_unit_test(with_noise),
                                       cmocka_unit_test(with_padding),
                                       cmocka_unit_test(noise_leaves_padding_alone),
                                       cmocka_unit_test(without_padding_there_is_a_warning)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
