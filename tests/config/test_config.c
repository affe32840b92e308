/* test_config.c: the configuration against the interface that users see: defaults, errors, files, JSON, comparing. */
#include <stdlib.h>
#include <unistd.h>

#include "config/config_test.h"

static void assert_value(const cpl_config *c, const char *key, const char *text)
{
    cpl_str s = {0};
    int number = cpl_config_find(key);
    if (number < 0)
        fail_msg("no key '%s'", key);
    cpl_str_add(&s, "");
    cpl_config_text_of(c, number, &s);
    if (strcmp(s.data == NULL ? "" : s.data, text) != 0)
        fail_msg("'%s' is '%s', expected '%s'", key, s.data, text);
    cpl_str_free(&s);
}

/* ---- defaults ---- */

/* The interface's block of defaults, key by key. */
static void defaults_are_the_interfaces(void **state)
{
    static const char *const expected[][2] = {
        {"model.type", "translator"}, {"model.units", "256"}, {"model.embedding", "0"},
        {"model.dropout.embedding", "0"}, {"model.dropout.layer", "0"}, {"model.dropout.recurrent", "0"},
        {"model.dropout.attention", "0"}, {"model.dropout.word", "0"},
        {"model.tie", "none"}, {"model.copy", "false"}, {"model.coverage", "0"}, {"model.bottleneck", "0"},
        {"model.recurrent_initializer", "glorot_uniform"}, {"model.encoder.cell", "gru"},
        {"model.encoder.layers", "1"}, {"model.encoder.direction", "both"}, {"model.encoder.merge", "sum"},
        {"model.encoder.residual", "false"}, {"model.encoder.mask", "true"},
        {"model.decoder.cell", "gru"}, {"model.decoder.layers", "1"},
        {"model.decoder.residual", "false"}, {"model.decoder.initial_state", "zero"},
        {"model.decoder.input_feed", "false"},
        {"model.decoder.attention.score", "multihead"}, {"model.decoder.attention.heads", "1"},
        {"model.decoder.attention.position", "after"}, {"model.decoder.attention.combine", "add_norm"},
        {"text.shared", "false"}, {"text.source.tokens", "word"}, {"text.source.standardize", "nfkc"},
        {"text.source.vocabulary_size", "32000"}, {"text.source.min_count", "1"}, {"text.source.max_length", "0"},
        {"text.source.vocabulary", ""}, {"text.source.vectors", ""}, {"text.source.too_long", "drop"},
        {"text.target.vocabulary", ""}, {"text.target.vectors", ""}, {"text.source.pad_to", "0"},
        {"text.target.tokens", "word"}, {"text.target.standardize", "none"},
        {"text.target.vocabulary_size", "32000"}, {"text.target.min_count", "1"}, {"text.target.max_length", "0"},
        {"text.target.too_long", "drop"}, {"data.train", ""}, {"data.valid", "5%"}, {"data.swap", "false"},
        {"data.noise.drop", "0"}, {"data.noise.mask", "0"}, {"data.noise.swap", "0"},
        {"training.batch_size", "64"}, {"training.optimizer.name", "adam"},
        {"training.optimizer.learning_rate", "0.001"}, {"training.optimizer.beta_1", "0.9"},
        {"training.optimizer.beta_2", "0.999"}, {"training.optimizer.epsilon", "1e-07"},
        {"training.optimizer.weight_decay", "0"}, {"training.optimizer.momentum", "0"},
        {"training.optimizer.sparse_embeddings", "false"},
        {"training.schedule.name", "constant"}, {"training.schedule.warmup_steps", "0"},
        {"training.schedule.total_steps", "0"}, {"training.schedule.every", "0"}, {"training.schedule.factor", "0.5"},
        {"training.schedule.patience", "2"},
        {"training.batch_tokens", "0"}, {"training.accumulate", "1"}, {"training.ema", "0"},
        {"training.clip_norm", "0"}, {"training.clip_tensor_norm", "0"},
        {"training.clip_value", "0"}, {"training.label_smoothing", "0"},
        {"training.scheduled_sampling", "0"},
        {"training.epochs", "100"}, {"training.steps_per_epoch", "0"},
        {"training.max_steps", "0"}, {"training.max_minutes", "0"}, {"training.validate_every", "epoch"},
        {"training.validation_steps", "0"}, {"training.metrics", "[]"}, {"training.early_stopping", "true"},
        {"training.early_stopping.monitor", "val_loss"}, {"training.early_stopping.mode", "auto"},
        {"training.early_stopping.min_delta", "0"}, {"training.early_stopping.patience", "5"},
        {"training.early_stopping.restore_best", "true"}, {"training.checkpoint_every", "60s"},
        {"training.keep", "0"}, {"training.log_every", "50"}, {"training.show_examples", "3"},
        {"training.threads", "0"}, {"training.memory", "0"}, {"training.freeze", "[]"}, {"training.init", "{}"},
        {"training.precision", "float32"}, {"training.seed", "1"}};
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    (void)state;
    assert_int_equal(cpl_config_default(&c, &err), CPL_OK);
    assert_int_equal(sizeof expected / sizeof expected[0], CPL_CONFIG_KEYS); /* no key is left out */
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_value(c, expected[i][0], expected[i][1]);
    assert_int_equal(cpl_config_embedding(c), 256);
    for (int k = 0; k < CPL_CONFIG_KEYS; k++)
        assert_false(cpl_config_is_set(c, k));
    cpl_config_free(c);
}

/* Defaults of the summarizer, whatever comes first; what the user set wins; another type brings its own back. */
static void defaults_follow_the_type(void **state)
{
    static const char *const expected[][2] = {
        {"model.encoder.cell", "lstm"}, {"model.encoder.direction", "forward"},
        {"model.decoder.initial_state", "encoder"},
        {"model.decoder.attention.score", "additive"}, {"model.decoder.attention.position", "before"},
        {"model.recurrent_initializer", "orthogonal"}, {"model.units", "256"}};
    static const char *const texts[] = {
        "model: {type: summarizer, decoder: {cell: gru, attention: {combine: tanh}}}\n",
        "model: {decoder: {cell: gru, attention: {combine: tanh}}, type: summarizer}\n"};
    cpl_error err = CPL_ERROR_INIT;
    (void)state;
    for (int t = 0; t < 2; t++) {
        cpl_config *c = good(texts[t]), *stored = NULL;
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
            assert_value(c, expected[i][0], expected[i][1]);
        assert_value(c, "model.decoder.cell", "gru");
        assert_value(c, "model.decoder.attention.combine", "tanh");
        assert_false(cpl_config_is_set(c, cpl_config_find("model.encoder.cell")));
        cpl_json *json = cpl_config_to_json(c);
        assert_int_equal(cpl_config_from_json(&stored, json, &err), CPL_OK);
        assert_int_equal(cpl_config_check_resume(c, stored, &err), CPL_OK);
        cpl_json_free(json);
        cpl_config_free(stored);
        assert_int_equal(cpl_config_set_pair(c, "model.type=translator", &err), CPL_OK);
        assert_value(c, "model.encoder.cell", "gru");
        assert_value(c, "model.decoder.attention.score", "multihead");
        assert_value(c, "model.decoder.attention.combine", "tanh");
        assert_value(c, "model.recurrent_initializer", "glorot_uniform");
        cpl_config_free(c);
    }
}

/* ---- reading ---- */

static void yaml_reaches_every_kind(void **state)
{
    cpl_config *c = good("# comment\n"
                         "model: {units: 512, encoder: {cell: lstm, direction: forward}, dropout: .25}\n"
                         "text:\n"
                         "  source: {tokens: char, standardize: tutorial}\n"
                         "data:\n"
                         "  train: [a.tsv, {source: b.de, target: /abs/b.en}, {pairs: c.tsv.gz}]\n"
                         "  valid: 2.5%\n"
                         "  swap: true\n"
                         "training:\n"
                         "  optimizer: {name: sgd, momentum: 0.9}\n"
                         "  validate_every: 500\n"
                         "  checkpoint_every: 200\n"
                         "  early_stopping: {patience: 2}\n"
                         "  schedule:\n");
    (void)state;
    assert_int_equal(c->model.units, 512);
    assert_int_equal(c->model.encoder.cell, CPL_CELL_LSTM);
    assert_int_equal(c->model.encoder.direction, CPL_DIRECTION_FORWARD);
    assert_true(c->model.dropout.embedding == 0.25 && c->model.dropout.layer == 0.25);
    assert_true(c->model.dropout.recurrent == 0 && c->model.dropout.attention == 0 && c->model.dropout.word == 0);
    assert_int_equal(c->text.source.tokens, 2);
    assert_int_equal(c->text.source.standardize, 4);
    assert_int_equal(c->data.train.count, 3);
    assert_string_equal(c->data.train.items[0].pairs, "conf/a.tsv");
    assert_string_equal(c->data.train.items[0].written_pairs, "a.tsv");
    assert_null(c->data.train.items[1].pairs);
    assert_string_equal(c->data.train.items[1].source, "conf/b.de");
    assert_string_equal(c->data.train.items[1].target, "/abs/b.en");
    assert_string_equal(c->data.train.items[2].pairs, "conf/c.tsv.gz");
    assert_int_equal(c->data.valid.count, 0);
    assert_true(c->data.valid.share == 0.025);
    assert_int_equal(c->data.swap, 1);
    assert_int_equal(c->training.optimizer.name, CPL_OPTIMIZER_SGD);
    assert_int_equal(c->training.validate_every, 500);
    assert_int_equal(c->training.checkpoint_every.steps, 200);
    assert_true(c->training.checkpoint_every.seconds == 0);
    assert_int_equal(c->training.stopping.patience, 2);
    assert_true(cpl_config_is_set(c, cpl_config_find("model.units")));
    assert_false(cpl_config_is_set(c, cpl_config_find("model.embedding")));
    cpl_config_free(c);
}

static void empty_files_are_all_defaults(void **state)
{
    (void)state;
    cpl_config_free(good(""));
    cpl_config_free(good("# nothing\n"));
    cpl_config_free(good("training:\nmodel:\n  encoder:\n"));
}

static void unknown_keys_name_line_and_nearest(void **state)
{
    (void)state;
    expect_error("model:\n  unit: 3\n", "conf/m.yaml:2: unknown key 'model.unit'", "did you mean 'model.units'?");
    expect_error("modle: {units: 3}\n", L1 "unknown key 'modle'", "did you mean 'model'?");
    expect_error("training:\n  batch_size: 2\n\n  optimizer:\n    learning_rat: 1\n",
                 "conf/m.yaml:5: unknown key 'training.optimizer.learning_rat'",
                 "did you mean 'training.optimizer.learning_rate'?");
    expect_error("epochs: 3\n", L1 "unknown key 'epochs'", "did you mean 'training.epochs'?");
    expect_error("text:\n  targets: {tokens: word}\n", "conf/m.yaml:2: unknown key 'text.targets'",
                 "did you mean 'text.target'?");
    expect_error("xyzzyplugh: 3\n", L1 "unknown key 'xyzzyplugh'", NULL);
    expect_error("training.epochs: 3\n", L1 "key 'training.epochs' has a dot, but keys in a file are nested",
                 "write the last part under its group, on a line of its own with more indentation");
}

static void wrong_kinds_say_got_and_expected(void **state)
{
    (void)state;
    expect_error("model: {units: [1, 2]}\n",
                 L1 "'model.units' got a list, expected a whole number from 1 to 65536", NULL);
    expect_error("model:\n  units: 2.5\n",
                 "conf/m.yaml:2: 'model.units' got '2.5', expected a whole number from 1 to 65536", NULL);
    expect_error("model: {units: 0}\n", L1 "'model.units' got '0', expected a whole number from 1 to 65536",
                 NULL);
    expect_error("model: {units: 99999999999999999999}\n",
                 L1 "'model.units' got '99999999999999999999', expected a whole number from 1 to 65536",
                 NULL);
    expect_error("training: {batch_size: }\n",
                 L1 "'training.batch_size' got nothing, expected a whole number from 1 to 1000000", NULL);
    expect_error("training: {epochs: 0x10}\n",
                 L1 "'training.epochs' got '0x10', expected a whole number of at least 1", NULL);
    expect_error("model: {dropout: .nan}\n", L1 "'model.dropout' got '.nan', expected a number from 0 to 0.95",
                 NULL);
    expect_error("model: {dropout: 1}\n", L1 "'model.dropout' got '1', expected a number from 0 to 0.95",
                 NULL);
    expect_error("data: {swap: maybe}\n", L1 "'data.swap' got 'maybe', expected true or false", NULL);
    expect_error("model: {encoder: {cell: gruu}}\n",
                 L1 "'model.encoder.cell' got 'gruu', expected gru, gru_reset_before or lstm",
                 "did you mean 'gru'?");
    expect_error("model: {type: summariser}\n",
                 L1 "'model.type' got 'summariser', expected translator, summarizer or autoencoder",
                 "did you mean 'summarizer'?");
    expect_error("model: 5\n", L1 "'model' got '5', expected a group of keys", NULL);
    expect_error("- a\n- b\n", L1 "a configuration is a group of keys, got a list", NULL);
    expect_error("training: {validate_every: 0}\n",
                 L1 "'training.validate_every' got '0', expected epoch, or a number of steps", NULL);
    expect_error("training: {memory: 5 apples}\n",
                 L1 "'training.memory' got '5 apples', expected a size such as 512MiB or 2GiB", NULL);
    expect_error("training: {checkpoint_every: 5m}\n",
                 L1 "'training.checkpoint_every' got '5m', expected seconds such as 60s, or a number of steps",
                 NULL);
}

static void wrong_data_files(void **state)
{
    (void)state;
    expect_error("data: {train: {source: a}}\n", L1 "'data.train' needs either pairs, or both source and target",
                 NULL);
    expect_error("data: {train: {pairs: a, source: b, target: c}}\n",
                 L1 "'data.train' needs either pairs, or both source and target", NULL);
    expect_error("data: {train: {pair: a}}\n",
                 L1 "unknown key 'data.train.pair', expected pairs, or source and target",
                 "did you mean 'pairs'?");
    expect_error("data: {train: []}\n", L1 "'data.train' got an empty list, expected at least one file", NULL);
    expect_error("data: {valid: 100%}\n",
                 L1 "'data.valid' got '100%', expected a share above 0% and below 100%", NULL);
    expect_error("data:\n  train: [[a]]\n",
                 "conf/m.yaml:2: 'data.train' got a list, expected a file, {pairs: FILE}, {source: FILE, target: FILE}"
                 " or a list of these", NULL);
}

static void broken_yaml_names_the_line(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    (void)state;
    expect_error("model: {units: 3}\ntraining: {epochs: 1}\nmodel: {units: 4}\n",
                 "conf/m.yaml:3: key 'model' appears twice in its group, first with a value on line 1", NULL);
    expect_error("a: &x {b: *x}\n", L1 "the configuration is nested more than 16 deep or has more than 10000 values",
                 NULL);
    expect_error("model: {units: 3}\n---\nmodel: {units: 3}\n",
                 "conf/m.yaml:3: a second YAML document begins, expected one", NULL);
    assert_int_equal(parse(&c, "model:\n  units: 3\n units: 4\n", &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "conf/m.yaml:3: not valid YAML: "));
    assert_int_equal(parse(&c, "model:\n\tunits: 3\n", &err), CPL_USAGE);
    assert_non_null(strstr(err.line[0], "conf/m.yaml:2: not valid YAML: "));
    assert_string_equal(err.hint, "YAML is indented with spaces; the file has tabs");
    assert_int_equal(parse(&c, "model: \xff\n", &err), CPL_USAGE);
    assert_null(c);
    assert_int_equal(cpl_config_load(&c, "/nonexistent/m.yaml", &err), CPL_USAGE);
    assert_null(c);
}

/* ---- combinations ---- */

static void combinations_are_checked(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    (void)state;
    expect_error("model: {dropout: {attention: 0.96}}\n",
                 L1 "'model.dropout.attention' got '0.96', expected a number from 0 to 0.95", NULL);
    expect_error("model: {dropout: {recurrent: -0.1}}\n",
                 L1 "'model.dropout.recurrent' got '-0.1', expected a number from 0 to 0.95", NULL);
    expect_error("model: {decoder: {initial_state: encoder, attention: {score: none}}, dropout: {attention: 0.1}}\n",
                 L1 "'model.dropout.attention' is 0.1, but without attention there are no weights to drop",
                 "set model.decoder.attention.score, or leave it out");
    expect_error("model: {units: 10, decoder: {attention: {heads: 4}}}\n",
                 L1 "'model.units' is 10, which 4 heads ('model.decoder.attention.heads') do not divide", NULL);
    expect_error("training:\n  optimizer:\n    weight_decay: 0.01\n",
                 "conf/m.yaml:3: 'training.optimizer.weight_decay' is 0.01, but only adamw decays weights",
                 "set training.optimizer.name to adamw, or leave weight_decay out");
    expect_error("training: {optimizer: {momentum: 0.9}}\n",
                 L1 "'training.optimizer.momentum' is 0.9, but only sgd has a momentum",
                 "set training.optimizer.name to sgd, or leave momentum out (beta_1 is the momentum of adam)");
    expect_error("training: {schedule: {name: cosine}}\n",
                 L1 "schedule cosine needs 'training.schedule.total_steps' above warmup_steps, got 0 with "
                 "warmup_steps 0", NULL);
    expect_error("training: {schedule: {name: step}}\n",
                 L1 "schedule step needs 'training.schedule.every', the steps between two cuts", NULL);
    expect_error("text: {source: {vocabulary_size: 4}}\n",
                 L1 "'text.source.vocabulary_size' got 4, expected 5 or more (4 entries are special), or 0 "
                 "for no limit", NULL);
    cpl_config *c = good("training: {early_stopping: false}\n");
    assert_int_equal(c->training.early_stopping, 0);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 1, &err), CPL_USAGE); /* nothing to train on */
    assert_non_null(strstr(err.line[0], "'data.train' is missing"));
    assert_int_equal(cpl_config_set_pair(c, "training.early_stopping.patience=3", &err), CPL_OK);
    assert_int_equal(cpl_config_check(c, 0, &err), CPL_USAGE);
    assert_string_equal(err.line[0],
                        "'training.early_stopping.patience' is set, but 'training.early_stopping' is false");
    cpl_config_free(c);
}

/* ---- setting ---- */

static void set_changes_one_key(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = good("training: {epochs: 5}\n");
    (void)state;
    assert_int_equal(cpl_config_set_pair(c, "training.epochs=3", &err), CPL_OK);
    assert_int_equal(c->training.epochs, 3);
    assert_int_equal(cpl_config_set(c, "data.train", "[a.tsv, b.tsv]", &err), CPL_OK);
    assert_int_equal(c->data.train.count, 2);
    assert_string_equal(c->data.train.items[1].pairs, "conf/b.tsv");
    assert_int_equal(cpl_config_set(c, "model.encoder", "{cell: lstm, merge: concat}", &err), CPL_OK);
    assert_int_equal(c->model.encoder.merge, CPL_MERGE_CONCAT);
    assert_int_equal(cpl_config_set_pair(c, "training.epochs=0", &err), CPL_USAGE);
    assert_string_equal(err.line[0], "'training.epochs' got '0', expected a whole number of at least 1");
    assert_int_equal(c->training.epochs, 3); /* the old value stays */
    assert_int_equal(cpl_config_set_pair(c, "training.epoch=1", &err), CPL_USAGE);
    assert_string_equal(err.line[0], "unknown key 'training.epoch'");
    assert_string_equal(err.hint, "did you mean 'training.epochs'?");
    assert_int_equal(cpl_config_set_pair(c, "training.epochs", &err), CPL_USAGE);
    assert_string_equal(err.line[0], "got 'training.epochs', expected KEY=VALUE, such as training.epochs=3");
    assert_int_equal(cpl_config_set_pair(c, "=3", &err), CPL_USAGE);
    assert_int_equal(cpl_config_set_pair(c, "model.encoder=3", &err), CPL_USAGE);
    assert_string_equal(err.line[0], "'model.encoder' got '3', expected a group of keys");
    cpl_config_free(c);
}

/* ---- JSON ---- */

static void json_round_trip_keeps_every_value(void **state)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *a = good("model: {units: 48, dropout: 0.1, decoder: {attention: {heads: 3}}}\n"
                         "data: {train: [a.tsv, {source: b, target: c}], valid: 7%}\n"
                         "training: {optimizer: {learning_rate: 3.3e-4}, seed: 9007199254740993,\n"
                         "           checkpoint_every: 1.5s, early_stopping: false, memory: 1.5GiB}\n"), *b = NULL;
    cpl_json *json = cpl_config_to_json(a), *parsed = NULL;
    cpl_str text = {0};
    cpl_config_differences list;
    (void)state;
    assert_int_equal(cpl_json_write(json, &text, &err), CPL_OK);
    assert_non_null(strstr(text.data, "\"attention\": {\"score\": \"multihead\", \"heads\": 3, "));
    assert_non_null(strstr(text.data, "\"early_stopping\": false"));
    assert_non_null(strstr(text.data, "\"dropout\": {\"embedding\": 0.1, \"layer\": 0.1, \"recurrent\": 0.0, "));
    assert_non_null(strstr(text.data, "\"memory\": \"1536MiB\""));
    assert_non_null(strstr(text.data, "\"text\": {\"shared\": false, \"source\": {"));
    assert_int_equal(cpl_json_parse(&parsed, text.data, text.length, &err), CPL_OK);
    assert_int_equal(cpl_config_from_json(&b, parsed, &err), CPL_OK);
    assert_int_equal(cpl_config_compare(a, b, &list, &err), CPL_OK);
    assert_int_equal(list.count, 0);
    assert_true(b->training.optimizer.learning_rate == 3.3e-4);
    assert_int_equal(b->training.seed, 9007199254740993);
    assert_int_equal(cpl_config_check(b, 1, &err), CPL_OK);
    cpl_config_differences_free(&list);
    cpl_json_free(json);
    cpl_json_free(parsed);
    cpl_str_free(&text);
    cpl_config_free(a);
    cpl_config_free(b);
}

static void json_with_an_unknown_key_fails(void **state)
{
    static const char text[] = "{\"model\": {\"unitz\": 3}}";
    cpl_error err = CPL_ERROR_INIT;
    cpl_json *json = NULL;
    cpl_config *c = NULL;
    (void)state;
    assert_int_equal(cpl_json_parse(&json, text, sizeof text - 1, &err), CPL_OK);
    assert_int_equal(cpl_config_from_json(&c, json, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "unknown key 'model.unitz'");
    assert_null(c);
    cpl_json_free(json);
}

/* ---- comparing ---- */

static void only_some_keys_may_change_on_resume(void **state)
{
    static const char *const free_keys[] = {
        "training.epochs", "training.max_steps", "training.max_minutes", "training.early_stopping.patience",
        "training.log_every", "training.validate_every", "training.checkpoint_every", "training.show_examples",
        "training.threads", "training.memory", "training.keep"};
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *saved = good(""), *now = good("training: {epochs: 7, early_stopping: {patience: 1}, threads: 2}\n");
    cpl_config_differences list;
    int allowed = 0;
    (void)state;
    for (int k = 0; k < CPL_CONFIG_KEYS; k++)
        allowed += cpl_config_resume_may_change(k);
    assert_int_equal(allowed, sizeof free_keys / sizeof free_keys[0]);
    for (size_t i = 0; i < sizeof free_keys / sizeof free_keys[0]; i++)
        assert_true(cpl_config_resume_may_change(cpl_config_find(free_keys[i])));
    assert_int_equal(cpl_config_compare(saved, now, &list, &err), CPL_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].key, "training.epochs");
    assert_string_equal(list.items[0].before, "100");
    assert_string_equal(list.items[0].after, "7");
    cpl_config_differences_free(&list);
    assert_int_equal(cpl_config_check_resume(saved, now, &err), CPL_OK);
    assert_int_equal(cpl_config_set_pair(now, "model.units=128", &err), CPL_OK);
    assert_int_equal(cpl_config_check_resume(saved, now, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "'model.units' was 256 in the run and is now 128, which cannot change on resume");
    cpl_config_free(saved);
    cpl_config_free(now);
}

/* ---- help ---- */

static void help_lists_every_key_with_its_default(void **state)
{
    cpl_str help = {0};
    char key[CPL_CONFIG_KEY_SIZE];
    (void)state;
    cpl_config_help(&help);
    for (int k = 0; k < CPL_CONFIG_KEYS; k++) {
        char line[CPL_CONFIG_KEY_SIZE + 8];
        snprintf(line, sizeof line, "    %s ", strrchr(cpl_config_key(k, key), '.') + 1);
        if (strstr(help.data, line) == NULL)
            fail_msg("help does not list '%s'", key);
    }
    assert_non_null(strstr(help.data, "learning_rate          1e-3"));
    for (const char *p = help.data; *p != '\0'; p = strchr(p, '\n') + 1)
        assert_true(strcspn(p, "\n") <= 120);
    cpl_str_free(&help);
}

/* A build without libyaml has nothing to test here but the sentence that says so. */
static int built_without_yaml(void)
{
    cpl_error err = CPL_ERROR_INIT;
    cpl_config *c = NULL;
    cpl_status status = parse(&c, "", &err);
    cpl_config_free(c);
    return status == CPL_FAILED && strstr(err.line[0], "no YAML reader") != NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_interfaces), cmocka_unit_test(defaults_follow_the_type),
        cmocka_unit_test(yaml_reaches_every_kind),
        cmocka_unit_test(empty_files_are_all_defaults),
        cmocka_unit_test(unknown_keys_name_line_and_nearest),
        cmocka_unit_test(wrong_kinds_say_got_and_expected),
        cmocka_unit_test(wrong_data_files),
        cmocka_unit_test(broken_yaml_names_the_line),
        cmocka_unit_test(combinations_are_checked),
        cmocka_unit_test(set_changes_one_key),
        cmocka_unit_test(json_round_trip_keeps_every_value),
        cmocka_unit_test(json_with_an_unknown_key_fails),
        cmocka_unit_test(only_some_keys_may_change_on_resume),
        cmocka_unit_test(help_lists_every_key_with_its_default),
    };
    if (built_without_yaml() || !cpl_json_available()) {
        puts("skipped: this build has no YAML or no JSON library");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
