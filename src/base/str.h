/* str.h: a growing byte string (may hold NUL bytes), and small text helpers. */
#ifndef CPL_BASE_STR_H
#define CPL_BASE_STR_H

#include <stdarg.h>
#include <stddef.h>

/* Zero-initialise: cpl_str s = {0}. data is NUL-terminated once anything was added. When memory is
 * short, `failed` sticks and later calls do nothing: check once at the end. */
typedef struct cpl_str {
    char *data;
    size_t length;
    size_t capacity;
    int failed;
} cpl_str;

void cpl_str_add(cpl_str *s, const char *text);
void cpl_str_add_bytes(cpl_str *s, const char *bytes, size_t n);
void cpl_str_add_char(cpl_str *s, char c);
void cpl_str_printf(cpl_str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cpl_str_clear(cpl_str *s);                 /* length 0, keeps the memory */
void cpl_str_free(cpl_str *s);
char *cpl_str_take(cpl_str *s);                 /* hands data over (never NULL unless failed) and resets s */

/* Edit distance (insert, delete, substitute, swap of neighbours), for "did you mean". */
size_t cpl_edit_distance(const char *a, const char *b);
/* The nearest of n names, or NULL when none is near enough to be worth suggesting. */
const char *cpl_nearest(const char *name, const char *const *names, size_t n);

/* Shows text for an error: control characters, invalid UTF-8 and quotes escaped (\xHH, \t, \n), cut
 * to the buffer with "…". Returns buffer. */
char *cpl_escape(char *buffer, size_t size, const char *text, size_t length);

/* "1.50 GiB", "4.0 MiB", "512 bytes" into buffer; returns buffer. */
char *cpl_bytes_text(char *buffer, size_t size, unsigned long long bytes);
/* "2GiB", "512MiB", "1.5G", "4096" → bytes. Returns 0, or -1 when it is not a size. */
int cpl_bytes_parse(const char *text, unsigned long long *bytes);

#endif
