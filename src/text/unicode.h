/* unicode.h: characters, for the files of this room and of metric/. */
#ifndef CPL_TEXT_UNICODE_H
#define CPL_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "couplet.h"

/* ---- utf8.c: needs no library ---- */

enum { CPL_BAD_BYTE = 0x110000 }; /* what an ill-formed byte decodes to: no character has this number */

/* Decodes the character at p < end; returns its number of bytes (1 for an ill-formed byte, *code = CPL_BAD_BYTE). */
size_t cpl_utf8_next(const char *p, const char *end, uint32_t *code);
/* The bytes of the white space character at p, 0 when there is none (the list is in split.c). */
size_t cpl_space_at(const char *p, const char *end);
int cpl_is_ascii(const char *text, size_t length);
size_t cpl_utf8_count(const char *text, size_t length); /* code points of well-formed text */
/* Appends an output as one line of well-formed text: U+FFFD for a line feed and for every ill-formed byte. */
void cpl_utf8_repair(const char *text, size_t length, cpl_str *out);

/* ---- unicode.c: for characters beyond ASCII only with the library ---- */

typedef enum cpl_char_kind {
    CPL_CHAR_SPACE,
    CPL_CHAR_LETTER, /* letters, numbers that are not decimal digits, connectors such as '_' */
    CPL_CHAR_DIGIT,  /* decimal digits */
    CPL_CHAR_EXTEND, /* combining marks and format characters: belong to what stands before them */
    CPL_CHAR_OTHER   /* punctuation, symbols, controls, ill-formed bytes */
} cpl_char_kind;

int cpl_unicode_available(void);
/* The kind of the character at p < end, its number and its bytes. */
cpl_char_kind cpl_char_at(const char *p, const char *end, uint32_t *code, size_t *bytes);
int cpl_is_mark(uint32_t code); /* a combining mark */
/* The general category's first letter: L letter, M mark, N number, P punctuation, S symbol, Z separator, C other. */
char cpl_char_class(uint32_t code);

enum { CPL_DECOMPOSED_MAX = 32 }; /* the longest compatibility decomposition has 18 characters */
/* The full compatibility decomposition (NFKD) of one character; returns how many were written. */
size_t cpl_decompose(uint32_t code, int32_t to[CPL_DECOMPOSED_MAX]);
/* Appends NFC (compatible: NFKC) of well-formed text; lower: of its lower case, for which text must start and end at a
 * word's border (final sigma). Text is taken whole: the caller cuts at spaces to keep pieces small. */
cpl_status cpl_compose(const char *text, size_t length, int compatible, int lower, cpl_str *out, cpl_error *err);

#endif
