/* test_resume.c: a run that was interrupted, killed or whose checkpoint was damaged ends like one that was not. */
#include "train/train_test.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* Case G07's run: 20 pairs, batches of 3, Adam, warm-up, dropout, 4 epochs of 7 steps. */
static const char config[] = "model: {units: 8, dropout: {embedding: 0.1, layer: 0.1, recurrent: 0.2,\n"
                             "                            attention: 0.1, word: 0.1}}\n"
                             "data: {train: train.tsv, valid: valid.tsv}\n"
                             "training: {batch_size: 3, epochs: 4, log_every: 1, checkpoint_every: 1, threads: 2,\n"
                             "           scheduled_sampling: 0.3,\n"
                             "           optimizer: {learning_rate: 0.01},\n"
                             "           schedule: {name: inverse_sqrt, warmup_steps: 5}}\n";
enum { STEPS = 28 };

static int make_runs(void **state)
{
    if (make_top(state) != 0)
        return -1;
    put_pairs("train.tsv", 20);
    put_pairs("valid.tsv", 5);
    put_file("config.yaml", config);
    run whole = {.folder = "whole"};
    return train(&whole) == CPL_OK ? 0 : -1;
}

static void assert_steps_once(const char *folder)
{
    cpl_json *a[STEPS + 1], *b[STEPS + 1];
    assert_int_equal(read_events("whole", "step", a, STEPS + 1), STEPS);
    assert_int_equal(read_events(folder, "step", b, STEPS + 1), STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_true(number(a[i], "step") == i + 1 && number(b[i], "step") == i + 1);
        assert_true(number(a[i], "loss") == number(b[i], "loss"));
        assert_true(number(a[i], "learning_rate") == number(b[i], "learning_rate"));
        cpl_json_free(a[i]);
        cpl_json_free(b[i]);
    }
}

static void assert_like_whole(const char *folder)
{
    assert_same_file("whole", folder, "model.safetensors"); /* every byte, metadata included */
    assert_same_tensors("whole", folder, "checkpoint.safetensors");
    assert_steps_once(folder);
    cpl_json *a[5], *b[5];
    assert_int_equal(read_events("whole", "epoch", a, 5), 4);
    assert_int_equal(read_events(folder, "epoch", b, 5), 4);
    for (int i = 0; i < 4; i++) {
        assert_true(number(a[i], "loss") == number(b[i], "loss"));
        assert_true(number(a[i], "val_loss") == number(b[i], "val_loss"));
        cpl_json_free(a[i]);
        cpl_json_free(b[i]);
    }
}

static void case_G07_interrupted_twice(void **state)
{
    (void)state;
    run r = {.folder = "g07", .stop_at = 14}; /* the end of epoch 2, before its validation */
    assert_int_equal(train(&r), CPL_STOPPED);
    r.resume = 1, r.stop_at = 18;             /* step 4 of epoch 3 */
    assert_int_equal(train(&r), CPL_STOPPED);
    cpl_json *end;
    assert_int_equal(read_events("g07", "end", &end, 1), 1);
    assert_string_equal(cpl_json_text(cpl_json_get(end, "reason"), NULL), "signal");
    cpl_json_free(end);
    r.stop_at = 0;
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(count_events("g07", "resume"), 2);
    assert_int_equal(count_events("g07", "start"), 1);
    assert_like_whole("g07");
}

/* A finished run of 2 epochs that is continued to 4. */
static void case_G07_more_epochs(void **state)
{
    (void)state;
    run r = {.folder = "more", .set = {"training.epochs=2"}};
    assert_int_equal(train(&r), CPL_OK);
    r.resume = 1, r.set[0] = NULL;
    assert_int_equal(train(&r), CPL_OK);
    assert_same_tensors("whole", "more", "model.safetensors");
    assert_same_tensors("whole", "more", "checkpoint.safetensors");
    assert_steps_once("more");
    assert_int_equal(train(&r), CPL_OK); /* nothing is left to do */
    assert_same_tensors("whole", "more", "model.safetensors");
}

static void case_G08_rate_after_resume(void **state)
{
    (void)state;
    const char *const set[] = {"training.schedule.warmup_steps=4", "training.optimizer.learning_rate=1e-3"};
    run r = {.folder = "g08", .stop_at = 5, .set = {set[0], set[1]}};
    assert_int_equal(train(&r), CPL_STOPPED);
    r.resume = 1, r.stop_at = 6;
    assert_int_equal(train(&r), CPL_STOPPED);
    cpl_json *steps[8], *root = read_case("G08_schedule.json");
    assert_int_equal(read_events("g08", "step", steps, 8), 6);
    assert_true(fabs(number(steps[5], "learning_rate") - 1e-3 * number(root, "lr_next")) < 1e-9);
    for (int i = 0; i < 6; i++)
        cpl_json_free(steps[i]);
    cpl_json_free(root);
}

static void resume_of_nothing_starts(void **state)
{
    (void)state;
    run r = {.folder = "queue", .resume = 1};
    assert_int_equal(train(&r), CPL_OK);
    assert_int_equal(count_events("queue", "start"), 1);
    assert_like_whole("queue");
}

/* ---- kill -9 ---- */

/* Trains in a child until it is killed after so many microseconds; returns 1 when it ended by itself. */
static int train_and_kill(const char *folder, long microseconds)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run r = {.folder = folder, .resume = 1};
        _exit(train(&r) == CPL_OK ? 0 : 1);
    }
    struct timespec wait = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&wait, NULL);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status))
        assert_int_equal(WEXITSTATUS(status), 0);
    return WIFEXITED(status);
}

static void case_G09_killed_at_any_moment(void **state)
{
    (void)state;
    unsigned random = 12345;
    int kills = 0, ended = 0;
    for (int i = 0; i < 40 && kills < 12; i++) {
        random = random * 1103515245u + 12345u;
        if (train_and_kill("killed", 3000 + (long)(random >> 16) % 60000)) {
            ended++; /* it got through: another run from the start */
            assert_like_whole("killed");
            char command[700];
            snprintf(command, sizeof command, "rm -rf '%s/killed'", top);
            assert_int_equal(system(command), 0);
        } else {
            kills++;
        }
    }
    assert_true(kills + ended >= 12);
    run r = {.folder = "killed", .resume = 1};
    assert_int_equal(train(&r), CPL_OK);
    assert_like_whole("killed");
}

/* ---- damage ---- */

typedef enum damage { EMPTY, HALF, BYTE } damage;

static void hurt(const char *folder, damage how)
{
    char path[700];
    size_t length;
    char *data = read_file(folder, "checkpoint.safetensors", &length);
    snprintf(path, sizeof path, "%s/%s/checkpoint.safetensors", top, folder);
    if (how == BYTE)
        data[length - 100] ^= 1;
    FILE *f = fopen(path, "wb"); /* in place: the previous checkpoint is another file */
    assert_non_null(f);
    size_t keep = how == EMPTY ? 0 : how == HALF ? length / 2 : length;
    assert_int_equal(fwrite(data, 1, keep, f), keep);
    assert_int_equal(fclose(f), 0);
    cpl_release(data);
}

static void case_G09_damaged_checkpoint(void **state)
{
    (void)state;
    const char *const folders[] = {"empty", "half", "byte"};
    for (int how = EMPTY; how <= BYTE; how++) {
        run r = {.folder = folders[how], .stop_at = 16};
        assert_int_equal(train(&r), CPL_STOPPED);
        hurt(r.folder, (damage)how);
        r.resume = 1, r.stop_at = 0;
        assert_int_equal(train(&r), CPL_OK);
        assert_non_null(strstr(r.warned, "checkpoint.safetensors"));
        assert_non_null(strstr(r.warned, "checkpoint.previous.safetensors"));
        assert_like_whole(r.folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_G07_interrupted_twice),   cmocka_unit_test(case_G07_more_epochs),
        cmocka_unit_test(case_G08_rate_after_resume),   cmocka_unit_test(resume_of_nothing_starts),
        cmocka_unit_test(case_G09_killed_at_any_moment), cmocka_unit_test(case_G09_damaged_checkpoint)};
    return cmocka_run_group_tests(tests, make_runs, remove_top);
}
