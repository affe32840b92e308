/* squeeze.h: between subwords.c and learn.c. */
#ifndef CPL_TEXT_SQUEEZE_H
#define CPL_TEXT_SQUEEZE_H

#include <stddef.h>
#include "base/str.h"

#define CPL_PIECE_SPACE "\xE2\x96\x81" /* U+2581, a space inside pieces */
enum { CPL_PIECE_SPACE_BYTES = 3 };

#define CPL_NO_SUBWORDS "this build has no subwords (SentencePiece was missing when it was built)"

/* Appends the text as a model sees it: runs of white space and of U+2581 as one space, trimmed. out must be empty. */
void cpl_subwords_squeeze(const char *text, size_t length, cpl_str *out);
/* What an error of SentencePiece says, without the place in its source. */
const char *cpl_spm_reason(const char *why);

#endif
