/* test_rundir.c: a run's folder survives kills and damage, and its log can be cut back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/io.h"

static char top[512];

static int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/cpl_run_XXXXXX", temporary ? temporary : "/tmp");
    return mkdtemp(top) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(top);
}

/* A new, existing run folder "m". */
static cpl_rundir *new_run(void)
{
    char folder[600];
    cpl_rundir *d;
    snprintf(folder, sizeof folder, "%s/m", top);
    assert_int_equal(cpl_rundir_new(&d, folder, NULL), CPL_OK);
    assert_int_equal(cpl_rundir_make(d, NULL), CPL_OK);
    return d;
}

static void end_run(cpl_rundir *d)
{
    assert_int_equal(cpl_rundir_clear(d, NULL), CPL_OK);
    assert_int_equal(rmdir(d->folder), 0); /* nothing else was left there */
    cpl_rundir_free(d);
}

static cpl_status save(cpl_rundir *d, int64_t step)
{
    float weights[1000];
    for (int i = 0; i < 1000; i++)
        weights[i] = (float)(step + i);
    cpl_tensor_entry t = {"weights", CPL_DTYPE_F32, 1, {1000}, weights};
    cpl_metadata_entry m = {"kind", "test", 4};
    return cpl_rundir_save(d, &(cpl_tensor_set){&t, 1, &m, 1}, (cpl_run_position){step / 10, step, 7 * step}, NULL);
}

/* The step of the checkpoint that load gives, its content checked; -1 for none, -2 for an error. */
static int64_t loaded_step(cpl_rundir *d, const cpl_log *log, cpl_error *err)
{
    cpl_tensor_file *f;
    cpl_run_position at = {-1, -1, -1};
    if (cpl_rundir_load(d, &f, &at, log, err) != CPL_OK)
        return -2;
    if (!f)
        return -1;
    assert_int_equal(at.epoch, at.step / 10);
    assert_int_equal(at.log_bytes, 7 * at.step);
    assert_string_equal(cpl_tensor_file_metadata(f, "kind", NULL), "test");
    const float *weights = cpl_tensor_file_find(f, "weights")->data;
    for (int i = 0; i < 1000; i++)
        assert_true(weights[i] == (float)(at.step + i));
    cpl_tensor_file_close(f);
    return at.step;
}

static void collect(void *user, cpl_log_level level, const char *message)
{
    assert_int_equal(level, CPL_LOG_WARNING);
    snprintf(user, 1024, "%s", message);
}

static void tells_whether_it_holds_a_run(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    cpl_rundir *d = new_run();
    cpl_error err = CPL_ERROR_INIT;
    char expected[800];
    assert_int_equal(cpl_rundir_holds_run(d), 0);
    assert_int_equal(cpl_rundir_require_empty(d, &err), CPL_OK);
    assert_int_equal(loaded_step(d, NULL, NULL), -1);
    assert_int_equal(cpl_file_write(d->log, "{}\n", 3, NULL), CPL_OK);
    assert_int_equal(cpl_rundir_require_empty(d, &err), CPL_USAGE);
    snprintf(expected, sizeof expected, "'%s' already holds a run (no checkpoint yet)", d->folder);
    assert_string_equal(err.line[0], expected);
    assert_int_equal(save(d, 72), CPL_OK);
    assert_int_equal(cpl_rundir_require_empty(d, &err), CPL_USAGE);
    snprintf(expected, sizeof expected, "'%s' already holds a run (epoch 7, step 72)", d->folder);
    assert_string_equal(err.line[0], expected);
    assert_int_equal(cpl_file_write(d->checkpoint, "", 0, NULL), CPL_OK);
    assert_int_equal(cpl_rundir_require_empty(d, &err), CPL_USAGE);
    snprintf(expected, sizeof expected, "'%s' already holds a run (its checkpoint cannot be read)", d->folder);
    assert_string_equal(err.line[0], expected);
    assert_int_equal(cpl_rundir_clear(d, NULL), CPL_OK);
    assert_int_equal(cpl_rundir_holds_run(d), 0);
    end_run(d);
}

/* Damages the checkpoint: 0 bytes, half, or one flipped byte. */
static void damage(const cpl_rundir *d, int kind)
{
    char *data;
    size_t length;
    assert_int_equal(cpl_file_read(d->checkpoint, &data, &length, NULL), CPL_OK);
    data[length - 100] ^= 4;
    length = kind == 0 ? 0 : kind == 1 ? length / 2 : length;
    assert_int_equal(cpl_file_write(d->checkpoint, data, length, NULL), CPL_OK);
    cpl_release(data);
}

static void case_G09_damaged_newest_checkpoint(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    static const char *const why[] = {"the file has 0 bytes", "cut short: the file has ", "its checksum should be "};
    for (int kind = 0; kind < 3; kind++) {
        cpl_rundir *d = new_run();
        char message[1024] = "";
        cpl_log log = {collect, message};
        assert_int_equal(save(d, 10), CPL_OK);
        assert_int_equal(save(d, 20), CPL_OK);
        assert_int_equal(save(d, 30), CPL_OK);
        assert_int_equal(loaded_step(d, &log, NULL), 30);
        assert_string_equal(message, "");
        damage(d, kind);
        assert_int_equal(loaded_step(d, &log, NULL), 20);
        assert_non_null(strstr(message, d->checkpoint));
        assert_non_null(strstr(message, d->previous));
        assert_non_null(strstr(message, why[kind]));
        assert_non_null(strstr(message, "(epoch 2, step 20)"));
        /* The next save replaces the damaged file and leaves the good one alone. */
        assert_int_equal(save(d, 40), CPL_OK);
        assert_int_equal(loaded_step(d, NULL, NULL), 40);
        damage(d, kind);
        assert_int_equal(loaded_step(d, NULL, NULL), 20);
        assert_int_equal(unlink(d->checkpoint), 0);
        assert_int_equal(loaded_step(d, NULL, NULL), 20);
        end_run(d);
    }
}

static int says(const cpl_error *err, const char *what)
{
    for (int i = 0; i < err->lines; i++)
        if (strstr(err->line[i], what))
            return 1;
    return 0;
}

static void case_G09_no_good_checkpoint_is_an_error(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    cpl_rundir *d = new_run();
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(save(d, 10), CPL_OK);
    damage(d, 1);
    assert_int_equal(loaded_step(d, NULL, &err), -2);
    assert_true(says(&err, "cut short: the file has "));
    assert_true(says(&err, d->checkpoint));
    assert_int_equal(cpl_file_write(d->previous, "{}", 2, NULL), CPL_OK);
    assert_int_equal(loaded_step(d, NULL, &err), -2);
    assert_non_null(strstr(err.line[err.lines - 1], "has no checkpoint that can be read"));
    /* A whole tensor file that is not a checkpoint, and one without a checksum. */
    assert_int_equal(unlink(d->previous), 0);
    assert_int_equal(cpl_tensor_file_write(d->checkpoint, &(cpl_tensor_set){0}, NULL), CPL_OK);
    assert_int_equal(loaded_step(d, NULL, &err), -2);
    assert_string_equal(err.line[0], "the metadata has no 'epoch'");
    char *data;
    size_t length;
    assert_int_equal(cpl_file_read(CPL_TEST_DATA "/io/from_python.safetensors", &data, &length, NULL), CPL_OK);
    assert_int_equal(cpl_file_write(d->checkpoint, data, length, NULL), CPL_OK);
    cpl_release(data);
    assert_int_equal(loaded_step(d, NULL, &err), -2);
    assert_string_equal(err.line[0], "the metadata has no valid 'checksum'");
    end_run(d);
}

/* A process that saves without end is killed at 40 different moments. */
static void case_G09_killed_while_saving(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    cpl_rundir *d = new_run();
    assert_int_equal(save(d, 1), CPL_OK);
    int64_t last = 1;
    for (int round = 0; round < 40; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int64_t step = last + 1;; step++)
                if (save(d, step) != CPL_OK)
                    _exit(1);
        }
        struct timespec moment = {0, 1000000 + 137000 * (long)round};
        nanosleep(&moment, NULL);
        int status;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        int64_t step = loaded_step(d, NULL, NULL);
        assert_true(step >= last);
        assert_int_equal(d->newest_is_bad, 0);
        last = step;
    }
    /* A temporary file that the writer could not remove may be left by a kill. */
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", d->folder);
    assert_int_equal(system(command), 0);
    cpl_rundir_free(d);
}

static void log_is(const char *path, const char *expected)
{
    char *data;
    size_t length;
    assert_int_equal(cpl_file_read(path, &data, &length, NULL), CPL_OK);
    assert_string_equal(data, expected);
    cpl_release(data);
}

static void log_line(cpl_run_log *l, const char *json)
{
    assert_int_equal(cpl_run_log_line(l, json, strlen(json), NULL), CPL_OK);
}

static void the_log_grows_and_is_cut_back(void **state)
{
    (void)state;
    cpl_rundir *d = new_run();
    cpl_run_log *l;
    assert_int_equal(cpl_run_log_open(&l, d->log, NULL), CPL_OK);
    assert_int_equal(cpl_run_log_bytes(l), 0);
    log_line(l, "{\"step\": 1}");
    log_is(d->log, "{\"step\": 1}\n"); /* there at once, without closing */
    int64_t mark = cpl_run_log_bytes(l);
    assert_int_equal(mark, 12);
    log_line(l, "{\"step\": 2}");
    assert_int_equal(cpl_run_log_line(l, "a\nb", 3, NULL), CPL_FAILED);
    cpl_run_log_close(l);

    assert_int_equal(cpl_run_log_open(&l, d->log, NULL), CPL_OK);
    assert_int_equal(cpl_run_log_bytes(l), 24);
    assert_int_equal(cpl_run_log_cut(l, mark, NULL), CPL_OK);
    log_is(d->log, "{\"step\": 1}\n");
    log_line(l, "{\"step\": 3}");
    assert_int_equal(cpl_run_log_cut(l, 1000, NULL), CPL_OK);
    log_is(d->log, "{\"step\": 1}\n{\"step\": 3}\n");
    assert_int_equal(cpl_run_log_cut(l, 20, NULL), CPL_OK); /* within a line: back to the whole ones */
    log_is(d->log, "{\"step\": 1}\n");
    assert_int_equal(cpl_run_log_cut(l, 0, NULL), CPL_OK);
    log_is(d->log, "");
    cpl_run_log_close(l);
    end_run(d);
}

static void an_unfinished_last_line_is_cut(void **state)
{
    (void)state;
    cpl_rundir *d = new_run();
    cpl_run_log *l;
    char *text = cpl_alloc(10001, 1);
    memset(text, 'x', 10000);
    memcpy(text, "{}\n", 3);
    assert_int_equal(cpl_file_write(d->log, text, 10000, NULL), CPL_OK);
    assert_int_equal(cpl_run_log_open(&l, d->log, NULL), CPL_OK);
    log_is(d->log, "{}\n");
    cpl_run_log_close(l);
    cpl_release(text);
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_run_log_open(&l, d->folder, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], d->folder));
    end_run(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_whether_it_holds_a_run),
        cmocka_unit_test(case_G09_damaged_newest_checkpoint),
        cmocka_unit_test(case_G09_no_good_checkpoint_is_an_error),
        cmocka_unit_test(case_G09_killed_while_saving),
        cmocka_unit_test(the_log_grows_and_is_cut_back),
        cmocka_unit_test(an_unfinished_last_line_is_cut),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
