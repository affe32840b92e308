/* test_plateau.c: schedule plateau in whole runs: what the log shows; that a resumed run knows how long it waited. */
#include "train/train_test.h"

#include <math.h>

#include "train/trainer.h"

/* The validation pairs say the opposite of the training pairs, so that the validation soon gets worse. */
static void put_contrary(void)
{
    put_pairs("train.tsv", 16);
    put_file("valid.tsv", "uno dos\tsun water\ncasa perro\tone one one\ngato sol\ttwo house\n");
    put_file("config.yaml", "model: {units: 8, dropout: 0.1}\ndata: {train: train.tsv, valid: valid.tsv}\n"
             "training: {threads: 1, log_every: 1, show_examples: 0, epochs: 12, batch_size: 8,\n"
             "           early_stopping: false, optimizer: {learning_rate: 0.05},\n"
             "           schedule: {name: plateau, patience: 2, factor: 0.5}}\n");
}

/* The rate of each step follows from the validation losses of the log. */
static void the_rate_follows_the_validations(void **state)
{
    (void)state;
    cpl_json *epochs[16], *steps[32];
    put_contrary();
    run r = {.folder = "plateau"};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(read_events("plateau", "epoch", epochs, 16), 12);
    assert_int_equal(read_events("plateau", "step", steps, 32), 24);
    double best = INFINITY, rate = 0.05;
    int wait = 0, cuts = 0;
    for (int i = 0; i < 24; i++) {
        assert_true(fabs(number(steps[i], "learning_rate") - rate) < 1e-9);
        if (i % 2 == 0)
            continue;
        double loss = number(epochs[i / 2], "val_loss");
        wait = loss < best ? 0 : wait + 1;
        best = loss < best ? loss : best;
        if (wait == 2)
            wait = 0, cuts++, rate /= 2;
    }
    assert_true(cuts >= 2);
    assert_non_null(strstr(r.told, "the learning rate is multiplied by 0.5"));
    for (int i = 0; i < 24; i++)
        cpl_json_free(steps[i]);
    for (int i = 0; i < 12; i++)
        cpl_json_free(epochs[i]);
}

/* Interrupted anywhere, waiting included: every byte of the model and every tensor of the state. */
static void resume_goes_on_waiting(void **state)
{
    (void)state;
    static const int stops[] = {7, 12, 15};
    put_contrary();
    run whole = {.folder = "uninterrupted"};
    assert_int_equal(train(&whole), CPL_OK);
    run r = {.folder = "interrupted"};
    for (int i = 0; i < 3; i++) {
        r.stop_at = stops[i];
        assert_int_equal(train(&r), CPL_STOPPED);
        r.resume = 1;
    }
    r.stop_at = 0;
    assert_int_equal(train(&r), CPL_OK);
    assert_same_file("uninterrupted", "interrupted", "model.safetensors");
    assert_same_tensors("uninterrupted", "interrupted", "checkpoint.safetensors");
}

/* Without validations nothing could ever be cut. */
static void without_validation_it_is_refused(void **state)
{
    (void)state;
    char path[700];
    cpl_config *config;
    cpl_dataset *data;
    cpl_trainer *t;
    cpl_error err = CPL_ERROR_INIT;
    put_contrary();
    snprintf(path, sizeof path, "%s/config.yaml", top);
    assert_int_equal(cpl_config_load(&config, path, NULL), CPL_OK);
    assert_int_equal(cpl_dataset_new(&data, &(cpl_dataset_options){.config = config}, NULL), CPL_OK);
    data->valid.count = 0;
    assert_int_equal(cpl_trainer_new(&t, &(cpl_trainer_options){.config = config, .data = data}, &err), CPL_USAGE);
    assert_string_equal(err.line[0], "schedule plateau needs validation pairs, but there are none");
    cpl_dataset_free(data);
    cpl_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_rate_follows_the_validations),
                                       cmocka_unit_test(resume_goes_on_waiting),
                                       cmocka_unit_test(without_validation_it_is_refused)};
    return cmocka_run_group_tests(tests, make_top, remove_top);
}
