/* word.h: the joiner that split.c writes and join.c reads. */
#ifndef CPL_TEXT_WORD_H
#define CPL_TEXT_WORD_H

#include <stddef.h>
#include "base/str.h"

#define CPL_JOINER "\xEF\xBF\xAD" /* U+FFED */
#define CPL_ESCAPE "\xEF\xBF\xAE" /* U+FFEE: before 'j' it stands for U+FFED, before 'e' for itself */
enum { CPL_JOINER_BYTES = 3 };

/* Appends text with U+FFED and U+FFEE escaped, and the reverse. */
void cpl_joiner_escape(const char *text, size_t length, cpl_str *out);
void cpl_joiner_unescape(const char *text, size_t length, cpl_str *out);

#endif
