/* test_tensor_file.c: what is written comes back; what is damaged is told; no bytes can do harm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/io.h"

static char folder[512], path[600];

static int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cpl_io_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/t.safetensors", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static const float floats[] = {1.5f, -2, 3e30f, 0, 5, 6};
static const double doubles[] = {1e300, -1};
static const int32_t ints[] = {-7};
static const int64_t longs[] = {INT64_MIN, INT64_MAX};
static const uint8_t bytes3[] = {0, 128, 255};
static const uint8_t bools[] = {1, 0, 1, 1, 0};
static const uint16_t halves[] = {0x3F80, 0xC000, 0x7F80};

/* An odd order on purpose: single bytes first. */
static const cpl_tensor_entry tensors[] = {
    {"mask", CPL_DTYPE_BOOL, 1, {5}, bools},        {"a/kernel", CPL_DTYPE_F32, 2, {2, 3}, floats},
    {"bytes", CPL_DTYPE_U8, 3, {1, 3, 1}, bytes3},  {"double", CPL_DTYPE_F64, 1, {2}, doubles},
    {"scalar", CPL_DTYPE_I32, 0, {0}, ints},        {"brain", CPL_DTYPE_BF16, 1, {3}, halves},
    {"nothing", CPL_DTYPE_F32, 2, {0, 1000}, NULL}, {"long", CPL_DTYPE_I64, 8, {1, 1, 1, 2, 1, 1, 1, 1}, longs},
    {"void \"ü\"", CPL_DTYPE_U8, 1, {0}, NULL},
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static const cpl_metadata_entry metadata[] = {
    {"options", "{\"a\": 1}\n", 9}, {"größe", "€ 😀", 8}, {"blank", "", 0}, {"nul", "a\0b", 3}, {"checksum", "x", 1}};
static const cpl_tensor_set whole = {tensors, TENSORS, metadata, 5};

static void write_whole(char **data, size_t *length)
{
    cpl_error err = CPL_ERROR_INIT;
    if (cpl_tensor_file_write(path, &whole, &err) != CPL_OK)
        fail_msg("%s", err.line[0]);
    assert_int_equal(cpl_file_read(path, data, length, NULL), CPL_OK);
}

static void comes_back(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    char *data;
    size_t length;
    write_whole(&data, &length);
    cpl_release(data);
    cpl_tensor_file *f;
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_verified(f), 1);
    assert_int_equal(cpl_tensor_file_count(f), TENSORS);
    for (size_t i = 0; i < TENSORS; i++) {
        const cpl_tensor_entry *want = &tensors[i], *t = cpl_tensor_file_at(f, i);
        assert_string_equal(t->name, want->name);
        assert_ptr_equal(cpl_tensor_file_find(f, want->name), t);
        assert_int_equal(t->dtype, want->dtype);
        assert_int_equal(t->rank, want->rank);
        assert_memory_equal(t->shape, want->shape, sizeof(int64_t) * (size_t)want->rank);
        size_t size = (size_t)cpl_tensor_elements(t) * cpl_dtype_bytes(t->dtype);
        assert_int_equal((uintptr_t)t->data % cpl_dtype_bytes(t->dtype), 0);
        if (size)
            assert_memory_equal(t->data, want->data, size);
    }
    assert_null(cpl_tensor_file_at(f, TENSORS));
    assert_null(cpl_tensor_file_find(f, "a/kerne"));
    assert_int_equal(cpl_tensor_file_metadata_count(f), 5);
    for (size_t i = 0; i < 4; i++) {
        size_t size;
        const char *value = cpl_tensor_file_metadata(f, metadata[i].key, &size);
        assert_non_null(value);
        assert_int_equal(size, metadata[i].length);
        assert_memory_equal(value, metadata[i].value, size + 1);
        cpl_metadata_entry entry = cpl_tensor_file_metadata_at(f, i + 1);
        assert_string_equal(entry.key, metadata[i].key);
        assert_ptr_equal(entry.value, value);
    }
    assert_null(cpl_tensor_file_metadata(f, "absent", NULL));
    cpl_tensor_file_close(f);
}

static void nothing_at_all_is_a_file(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    cpl_tensor_set none = {0};
    cpl_tensor_file *f;
    assert_int_equal(cpl_tensor_file_write(path, &none, NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_count(f), 0);
    assert_int_equal(cpl_tensor_file_verified(f), 1);
    cpl_tensor_file_close(f);
}

static void reads_a_file_from_python(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    cpl_tensor_file *f;
    assert_int_equal(cpl_tensor_file_open(&f, CPL_TEST_DATA "/io/from_python.safetensors", NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_count(f), 8);
    assert_int_equal(cpl_tensor_file_verified(f), 0);
    assert_string_equal(cpl_tensor_file_metadata(f, "note", NULL), "größe 😀\n\"x\"");
    assert_string_equal(cpl_tensor_file_metadata(f, "blank", NULL), "");
    const cpl_tensor_entry *kernel = cpl_tensor_file_find(f, "weights/kernel");
    static const float want[] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f};
    static const int32_t ids[] = {1, -2, 3, INT32_MAX};
    assert_int_equal(kernel->shape[0], 2);
    assert_int_equal(kernel->shape[1], 3);
    assert_memory_equal(kernel->data, want, sizeof want);
    assert_memory_equal(cpl_tensor_file_find(f, "ids")->data, ids, sizeof ids);
    assert_int_equal(((const int64_t *)cpl_tensor_file_find(f, "long")->data)[0], INT64_C(1) << 62);
    assert_true(((const double *)cpl_tensor_file_find(f, "double")->data)[0] == 1e300);
    assert_memory_equal(cpl_tensor_file_find(f, "mask")->data, "\1\0\1", 3);
    assert_memory_equal(cpl_tensor_file_find(f, "bytes")->data, "\0\377\7", 3);
    assert_int_equal(cpl_tensor_file_find(f, "scalar")->rank, 0);
    assert_true(*(const float *)cpl_tensor_file_find(f, "scalar")->data == 2.5f);
    assert_int_equal(cpl_tensor_elements(cpl_tensor_file_find(f, "empty")), 0);
    cpl_tensor_file_close(f);
}

/* A header (padded to 8 here) and the number of data bytes, and a part of what must be said. */
static const struct {
    const char *header;
    size_t data;
    const char *says;
} refused[] = {
    {"", 0, "does not begin with '{'"},
    {"[1]", 0, "does not begin with '{'"},
    {"{\"a\":", 0, NULL},
    {"{} x", 0, NULL},
    {"{}", 8, "the file has 24 bytes, its header accounts for 16"},
    {"{\"__metadata__\":[]}", 0, "not an object of strings"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "metadata 'k' is not a string"},
    {"{\"a\":3}", 0, "it has no dtype"},
    {"{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2, "its dtype is 'F16'"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "it has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "size 1 of its shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "size 1 of its shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "it has 9 dimensions"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4611686018427387904],\"data_offsets\":[0,0]}}", 0,
     "over 64 bits"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, "over 64 bits"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "its shape needs 8 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "two rising whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two rising whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "two rising whole numbers"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775803,9223372036854775807]}}", 4,
     "cut short"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "cut short"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
     7, "but the one before it ends only"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     4, "but the one before it ends only"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[5,8]}}",
     8, "leaving a gap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
     8, NULL},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
     5, "not a multiple of its element's 4 bytes"},
    {"{\"__metadata__\":{\"checksum\":\"0123456789abcdef\"}}", 0, "its checksum should be 0123456789abcdef"},
};

static int says(const cpl_error *err, const char *what)
{
    for (int i = 0; i < err->lines; i++)
        if (strstr(err->line[i], what))
            return 1;
    return 0;
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        size_t n = strlen(refused[i].header), padded = (n + 7) / 8 * 8;
        uint8_t *bytes = cpl_alloc(8 + padded + refused[i].data, 1);
        memset(bytes + 8, ' ', padded);
        memcpy(bytes + 8, refused[i].header, n);
        bytes[0] = (uint8_t)padded;
        bytes[1] = (uint8_t)(padded >> 8);
        cpl_tensor_file *f;
        cpl_error err = CPL_ERROR_INIT;
        if (cpl_tensor_file_parse(&f, "x", bytes, 8 + padded + refused[i].data, &err) != CPL_FAILED)
            fail_msg("%s", refused[i].header);
        assert_null(f);
        if (refused[i].says && !says(&err, refused[i].says))
            fail_msg("%s\nsays: %s", refused[i].header, err.line[0]);
        assert_true(says(&err, "'x' is damaged or not a tensor file"));
        cpl_release(bytes);
    }
}

/* Parses a copy that ends where the memory ends, and touches all that it offers. Returns 1 when it is whole. */
static int survives(const char *data, size_t length, cpl_error *err)
{
    uint8_t *copy = cpl_alloc(length, 1);
    if (length)
        memcpy(copy, data, length);
    cpl_tensor_file *f;
    uint64_t sum = 0;
    int good = 0;
    if (cpl_tensor_file_parse(&f, "x", copy, length, err) == CPL_OK) {
        good = cpl_tensor_file_verified(f);
        for (size_t i = 0; i < cpl_tensor_file_count(f); i++) {
            const cpl_tensor_entry *t = cpl_tensor_file_at(f, i);
            sum = cpl_hash64(sum, t->data, (size_t)cpl_tensor_elements(t) * cpl_dtype_bytes(t->dtype));
        }
        cpl_tensor_file_close(f);
    }
    cpl_release(copy);
    return good;
}

static void case_G09_every_cut_is_noticed(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    char *data;
    size_t length;
    write_whole(&data, &length);
    assert_int_equal(survives(data, length, NULL), 1);
    for (size_t cut = 0; cut < length; cut++) {
        cpl_error err = CPL_ERROR_INIT;
        char expected[64];
        assert_int_equal(survives(data, cut, &err), 0);
        snprintf(expected, sizeof expected, "the file has %zu bytes", cut);
        if (!says(&err, expected))
            fail_msg("cut to %zu bytes: %s", cut, err.line[0]);
    }
    cpl_release(data);
}

static void case_G09_every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    char *data;
    size_t length;
    write_whole(&data, &length);
    for (size_t i = 0; i < 8 * length; i++) {
        data[i / 8] ^= (char)(1 << i % 8);
        if (survives(data, length, NULL))
            fail_msg("bit %zu of byte %zu", i % 8, i / 8);
        data[i / 8] ^= (char)(1 << i % 8);
    }
    cpl_error err = CPL_ERROR_INIT;
    data[length - 1] ^= 1;
    survives(data, length, &err);
    assert_true(says(&err, "its checksum should be "));
    cpl_release(data);
}

/* Bytes changed, inserted, removed, repeated and numbers overwritten, in a file with and one without checksum. */
static void any_bytes_give_an_error_or_a_file(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    char *files[2];
    size_t lengths[2];
    write_whole(&files[0], &lengths[0]);
    assert_int_equal(cpl_file_read(CPL_TEST_DATA "/io/from_python.safetensors", &files[1], &lengths[1], NULL), CPL_OK);
    char work[8192];
    for (uint64_t round = 0; round < 20000; round++) {
        uint64_t key = cpl_random_key(5, round, 0), at = 0;
        size_t which = round % 2, length = lengths[which];
        assert_in_range(length, 100, sizeof work - 64);
        memcpy(work, files[which], length);
        for (uint64_t edits = 1 + cpl_random_below(key, at++, 4); edits > 0; edits--) {
            uint64_t reach = cpl_random_below(key, at++, 2) ? length : 400;
            size_t place = (size_t)cpl_random_below(key, at++, reach);
            size_t size = 1 + (size_t)cpl_random_below(key, at++, 8);
            uint64_t bits = cpl_random_bits(key, at++);
            if (place + size >= length)
                continue;
            switch (cpl_random_below(key, at++, 4)) {
            case 0:
                work[place] = (char)bits;
                break;
            case 1:
                memmove(work + place, work + place + size, length - place - size);
                length -= size;
                break;
            case 2:
                memmove(work + place + size, work + place, length - place);
                length += size;
                break;
            default:
                work[place] = "0123456789[]{}\",:-"[bits % 18];
                break;
            }
        }
        if (survives(work, length, NULL)) { /* only when the changes cancelled out */
            assert_int_equal(length, lengths[which]);
            assert_memory_equal(work, files[which], length);
        }
    }
    cpl_release(files[0]);
    cpl_release(files[1]);
}

static void the_writer_refuses(void **state)
{
    (void)state;
    static const struct {
        cpl_tensor_entry t;
        const char *says;
    } bad[] = {
        {{"__metadata__", CPL_DTYPE_U8, 1, {3}, bytes3}, "cannot be named"},
        {{"mask", CPL_DTYPE_U8, 1, {3}, bytes3}, "two tensors are named 'mask'"},
        {{"x", CPL_DTYPE_U8, 1, {-3}, bytes3}, "negative"},
        {{"x", CPL_DTYPE_U8, 9, {3}, bytes3}, "has 9 dimensions"},
        {{"x", CPL_DTYPE_F64, 1, {2}, NULL}, "of 16 bytes has no data"},
    };
    unlink(path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cpl_tensor_entry two[] = {tensors[0], bad[i].t};
        cpl_error err = CPL_ERROR_INIT;
        assert_int_equal(cpl_tensor_file_write(path, &(cpl_tensor_set){two, 2, NULL, 0}, &err), CPL_FAILED);
        if (!says(&err, bad[i].says))
            fail_msg("%s", err.line[0]);
        assert_false(cpl_file_exists(path));
    }
}

static void whole_numbers_in_metadata(void **state)
{
    (void)state;
    if (!cpl_json_available())
        skip();
    static const cpl_metadata_entry numbers[] = {{"a", "-12", 3}, {"b", "12 ", 3}, {"c", "99999999999999999999", 20}};
    cpl_tensor_file *f;
    int64_t value;
    assert_int_equal(cpl_tensor_file_write(path, &(cpl_tensor_set){NULL, 0, numbers, 3}, NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_open(&f, path, NULL), CPL_OK);
    assert_int_equal(cpl_tensor_file_metadata_int(f, "a", &value, NULL), CPL_OK);
    assert_int_equal(value, -12);
    assert_int_equal(cpl_tensor_file_metadata_int(f, "b", &value, NULL), CPL_FAILED);
    assert_int_equal(cpl_tensor_file_metadata_int(f, "c", &value, NULL), CPL_FAILED);
    assert_int_equal(cpl_tensor_file_metadata_int(f, "d", &value, NULL), CPL_FAILED);
    cpl_tensor_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(nothing_at_all_is_a_file),
        cmocka_unit_test(reads_a_file_from_python),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(case_G09_every_cut_is_noticed),
        cmocka_unit_test(case_G09_every_flipped_bit_is_noticed),
        cmocka_unit_test(any_bytes_give_an_error_or_a_file),
        cmocka_unit_test(the_writer_refuses),
        cmocka_unit_test(whole_numbers_in_metadata),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
