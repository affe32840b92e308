/* Files: reading, gzip, mapping, atomic writing, folders and paths. */
#include "support/run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"

/* "hola\thello\n" three times, made by another program. */
static const unsigned char gz[] = {
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0xc8, 0xcf, 0x49, 0xe4,
    0xcc, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 0xca, 0xc0, 0xca, 0x04, 0x00, 0xf2, 0xfa, 0x69, 0x28,
    0x21, 0x00, 0x00, 0x00};
static const char text[] = "hola\thello\nhola\thello\nhola\thello\n";

static char folder[256];

/* A path inside the test's own folder; four may be in use at a time. */
static const char *in(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/couplet-files-XXXXXX", root ? root : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static int empty_folder(void **state)
{
    (void)state;
    char path[800];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove(path);
    }
    if (d)
        closedir(d);
    return 0;
}

static int remove_folder(void **state)
{
    empty_folder(state);
    return rmdir(folder);
}

static void put(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void check(const char *path, const void *bytes, size_t n)
{
    char *data;
    size_t length;
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_file_read(path, &data, &length, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    assert_int_equal(length, n);
    assert_memory_equal(data, bytes, n);
    assert_int_equal(data[n], 0);
    cpl_release(data);
}

static void refuse(const char *path, cpl_status status, const char *ending)
{
    char *data;
    size_t length;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_file_read(path, &data, &length, &err), status);
    assert_null(data);
    size_t n = strlen(err.line[0]), e = strlen(ending);
    if (n < e || strcmp(err.line[0] + n - e, ending) != 0)
        fail_msg("'%s' does not end in '%s'", err.line[0], ending);
}

static void reads_whole_files(void **state)
{
    (void)state;
    size_t n = 300001;
    char *bytes = cpl_alloc(n, 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 >> 3);
    put(in("plain"), bytes, n);
    check(in("plain"), bytes, n);
    put(in("empty"), "", 0);
    check(in("empty"), "", 0);
    cpl_release(bytes);
    refuse(in("missing"), CPL_USAGE, "/missing': no such file or folder");
    refuse(folder, CPL_USAGE, "': it is a folder");
    refuse(in("plain/x"), CPL_USAGE, ": a part of the path is not a folder");
}

static void reads_standard_input(void **state)
{
    (void)state;
    int pipes[2], before = dup(0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], "a\0b", 3), 3);
    close(pipes[1]);
    dup2(pipes[0], 0);
    check("-", "a\0b", 3);
    dup2(before, 0);
    close(before);
    close(pipes[0]);
}

static void reads_gzip(void **state)
{
    (void)state;
    char *data;
    size_t length;
    cpl_error err = CPL_ERROR_INIT;
    put(in("a.gz"), gz, sizeof gz);
    if (cpl_file_read(in("a.gz"), &data, &length, &err) != CPL_OK &&
        strstr(err.line[0], "this build has no gzip reader"))
        skip();
    cpl_release(data);
    check(in("a.gz"), text, sizeof text - 1);
    unsigned char two[2 * sizeof gz];
    memcpy(two, gz, sizeof gz);
    memcpy(two + sizeof gz, gz, sizeof gz);
    put(in("two.gz"), two, sizeof two); /* members one after another are one text */
    char twice[2 * sizeof text];
    snprintf(twice, sizeof twice, "%s%s", text, text);
    check(in("two.gz"), twice, 2 * (sizeof text - 1));
    put(in("cut.gz"), gz, sizeof gz - 6);
    refuse(in("cut.gz"), CPL_USAGE, ": the file ends too early");
    two[sizeof gz - 7] ^= 1; /* the checksum */
    put(in("bad.gz"), two, sizeof gz);
    refuse(in("bad.gz"), CPL_USAGE, ": incorrect data check");
    put(in("plain.gz"), text, sizeof text - 1);
    refuse(in("plain.gz"), CPL_USAGE, "/plain.gz' is not a gzip file");
}

/* A piece at a time, plain or compressed; what is given is never more than was asked for. */
static void streams_give_pieces(void **state)
{
    (void)state;
    for (int compressed = 0; compressed < 2; compressed++) {
        cpl_stream *s;
        cpl_error err = CPL_ERROR_INIT;
        char all[sizeof text + 8];
        size_t n = 0, got = 1;
        put(in(compressed ? "s.gz" : "s"), compressed ? gz : (const unsigned char *)text,
            compressed ? sizeof gz : sizeof text - 1);
        cpl_status status = cpl_stream_open(&s, in(compressed ? "s.gz" : "s"), &err);
        if (compressed && status != CPL_OK && strstr(err.line[0], "this build has no gzip reader"))
            skip();
        assert_int_equal(status, CPL_OK);
        while (got > 0) {
            assert_int_equal(cpl_stream_read(s, all + n, 3, &got, &err), CPL_OK);
            assert_true(got <= 3);
            n += got;
        }
        cpl_stream_close(s);
        assert_int_equal(n, sizeof text - 1);
        assert_memory_equal(all, text, n);
        assert_int_equal(cpl_stream_open(&s, in("none"), &err), CPL_USAGE);
        assert_null(s);
    }
}

static void maps_files(void **state)
{
    (void)state;
    const uint8_t *data;
    size_t length;
    cpl_error err = CPL_ERROR_INIT;
    put(in("m"), text, sizeof text - 1);
    assert_int_equal(cpl_file_map(in("m"), &data, &length, &err), CPL_OK);
    assert_int_equal(length, sizeof text - 1);
    assert_memory_equal(data, text, length);
    cpl_file_unmap(data, length);
    put(in("e"), "", 0);
    assert_int_equal(cpl_file_map(in("e"), &data, &length, &err), CPL_OK);
    assert_non_null(data);
    assert_int_equal(length, 0);
    cpl_file_unmap(data, length);
    assert_int_equal(cpl_file_map(in("missing"), &data, &length, &err), CPL_USAGE);
    assert_int_equal(cpl_file_map(folder, &data, &length, &err), CPL_USAGE);
    assert_int_equal(cpl_file_map("/dev/null", &data, &length, &err), CPL_USAGE);
}

static void abandoned_writing_keeps_the_old_file(void **state)
{
    (void)state;
    cpl_writer *w;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_file_write(in("model"), "old", 3, &err), CPL_OK);
    check(in("model"), "old", 3);
    assert_int_equal(cpl_writer_open(&w, in("model"), &err), CPL_OK);
    char *big = cpl_alloc(200000, 1);
    assert_int_equal(cpl_writer_write(w, "x", 1, &err), CPL_OK);
    assert_int_equal(cpl_writer_write(w, big, 200000, &err), CPL_OK);
    check(in("model"), "old", 3);
    assert_int_equal(entries(), 2);
    cpl_writer_abandon(w);
    cpl_writer_abandon(NULL);
    assert_int_equal(entries(), 1);
    check(in("model"), "old", 3);
    cpl_release(big);
}

static void committed_writing_replaces_it(void **state)
{
    (void)state;
    cpl_writer *w;
    cpl_error err = CPL_ERROR_INIT;
    char *all = cpl_alloc(400000, 1);
    for (size_t i = 0; i < 400000; i++)
        all[i] = (char)(i % 251);
    put(in("model"), "old", 3);
    assert_int_equal(chmod(in("model"), 0640), 0);
    assert_int_equal(cpl_writer_open(&w, in("model"), &err), CPL_OK);
    size_t at = 0;
    for (size_t n = 1; at < 400000; n = n * 3 + 1) { /* pieces below and above the buffer */
        size_t piece = n < 400000 - at ? n : 400000 - at;
        assert_int_equal(cpl_writer_write(w, all + at, piece, &err), CPL_OK);
        at += piece;
    }
    check(in("model"), "old", 3);
    assert_int_equal(cpl_writer_commit(w, &err), CPL_OK);
    check(in("model"), all, 400000);
    assert_int_equal(entries(), 1);
    struct stat about;
    assert_int_equal(stat(in("model"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    cpl_release(all);
}

static void links_and_devices_stay_what_they_are(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    struct stat about;
    put(in("real"), "old", 3);
    assert_int_equal(symlink("real", in("link")), 0);
    assert_int_equal(cpl_file_write(in("link"), "new", 3, &err), CPL_OK);
    assert_int_equal(lstat(in("link"), &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    check(in("real"), "new", 3);
    assert_int_equal(cpl_file_write("/dev/null", "x", 1, &err), CPL_OK);
    assert_int_equal(stat("/dev/null", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
}

static void failures_of_writing_are_told(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_file_write(folder, "x", 1, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "it is a folder"));
    assert_int_equal(cpl_file_write(in("no/such"), "x", 1, &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "/no/such': no such file or folder"));
    if (cpl_file_exists("/dev/full")) {
        assert_int_equal(cpl_file_write("/dev/full", "x", 1, &err), CPL_FAILED);
        assert_string_equal(err.line[0], "cannot write '/dev/full': no space left on the device");
    }
    uint64_t live = cpl_memory_live_bytes();
    for (uint64_t fault = 1; fault < 8; fault++) { /* each allocation fails once */
        cpl_memory_fail_at(fault);
        cpl_status status = cpl_file_write(in("short"), "x", 1, &err);
        cpl_memory_fail_at(0);
        assert_true(status == CPL_OK || status == CPL_FAILED);
        assert_int_equal(cpl_memory_live_bytes(), live);
    }
    assert_int_equal(entries(), 1);
}

static void makes_folders(void **state)
{
    (void)state;
    cpl_error err = CPL_ERROR_INIT;
    assert_int_equal(cpl_folder_make(in("a/b//c/"), &err), CPL_OK);
    assert_int_equal(cpl_folder_make(in("a/b/c"), &err), CPL_OK);
    assert_true(cpl_file_exists(in("a/b/c")));
    put(in("f"), "", 0);
    assert_int_equal(cpl_folder_make(in("f"), &err), CPL_FAILED);
    assert_non_null(strstr(err.line[0], "it exists and is not a folder"));
    assert_int_equal(cpl_folder_make(in("f/g"), &err), CPL_FAILED);
    assert_int_equal(cpl_folder_make("", &err), CPL_FAILED);
    assert_false(cpl_file_exists(in("g")));
    rmdir(in("a/b/c"));
    rmdir(in("a/b"));
}

static void joined(const char *a, const char *b, const char *expected)
{
    char *path = cpl_path_join(a, b);
    assert_string_equal(path, expected);
    cpl_release(path);
}

static void folder_of(const char *path, const char *expected)
{
    char *got = cpl_path_folder(path);
    assert_string_equal(got, expected);
    cpl_release(got);
}

static void paths(void **state)
{
    (void)state;
    joined("a", "b", "a/b");
    joined("a/", "b", "a/b");
    joined("/", "b", "/b");
    joined("a", "/b", "/b");
    joined("a", "-", "-");
    joined(".", "b", "b");
    joined("", "b", "b");
    joined(NULL, "b", "b");
    folder_of("a/b.yaml", "a");
    folder_of("b.yaml", ".");
    folder_of("/b", "/");
    folder_of("a//b", "a");
    folder_of("a/b/c", "a/b");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, NULL, empty_folder)

static const struct CMUnitTest tests[] = {
    IN_FOLDER(reads_whole_files),
    IN_FOLDER(reads_standard_input),
    IN_FOLDER(reads_gzip),
        IN_FOLDER(streams_give_pieces),
    IN_FOLDER(maps_files),
    IN_FOLDER(abandoned_writing_keeps_the_old_file),
    IN_FOLDER(committed_writing_replaces_it),
    IN_FOLDER(links_and_devices_stay_what_they_are),
    IN_FOLDER(failures_of_writing_are_told),
    IN_FOLDER(makes_folders),
    IN_FOLDER(paths),
};

int main(int argc, char **argv)
{
    if (argc > 1 && !cpl_test_choose(tests, sizeof tests / sizeof *tests, argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
