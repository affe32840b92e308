/* HDF5 files: what is written comes back, and what is none is refused. */
#include "api/api_test.h"

#include "io/hdf5.h"
#include "support/golden.h"

static void numbers_come_back(void **state)
{
    (void)state;
    place p;
    char path[300];
    cpl_hdf5 *f;
    const float x[6] = {1, -2, 3.5f, 0, 1e-30f, 7}, one = 9;
    const cpl_tensor_entry two[] = {{.name = "b/vars/0", .rank = 2, .shape = {2, 3}, .data = x},
                                    {.name = "a/c/vars/1", .rank = 0, .data = &one}};
    place_make(&p);
    MUST(cpl_hdf5_write(place_file(&p, "x.h5", path), two, 2, err));
    MUST(cpl_hdf5_open(&f, path, err));
    assert_int_equal(cpl_hdf5_count(f), 2);
    assert_string_equal(cpl_hdf5_at(f, 0)->name, "a/c/vars/1");
    assert_int_equal(cpl_hdf5_at(f, 0)->rank, 0);
    assert_int_equal(cpl_hdf5_at(f, 1)->shape[1], 3);
    assert_memory_equal(cpl_hdf5_at(f, 1)->data, x, sizeof x);
    cpl_hdf5_close(f);
    place_remove(&p);
}

static void what_is_no_hdf5_file_is_refused(void **state)
{
    (void)state;
    place p;
    char path[300];
    cpl_hdf5 *f;
    cpl_error error = CPL_ERROR_INIT;
    place_make(&p);
    assert_int_equal(cpl_hdf5_open(&f, place_file(&p, "x.h5", path), &error), CPL_USAGE); /* there is none */
    place_write(&p, "x.h5", "not weights");
    assert_int_equal(cpl_hdf5_open(&f, path, &error), CPL_FAILED);
    assert_non_null(strstr(error.line[0], "is not an HDF5 file"));
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_come_back),
                                       cmocka_unit_test(what_is_no_hdf5_file_is_refused)};
    char *version = cpl_version_text();
    int is_missing = !version || strstr(version, "hdf5      missing") != NULL;
    cpl_free(version);
    if (is_missing)
        return 77; /* skipped */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
