/* base64.h: bytes as text (RFC 4648, with padding), for bytes inside JSON. */
#ifndef CPL_BASE_BASE64_H
#define CPL_BASE_BASE64_H

#include <stddef.h>
#include "base/str.h"

void cpl_base64_encode(const char *bytes, size_t length, cpl_str *out); /* appends */
/* Appends the bytes; 0, or -1 for text that is not base64. */
int cpl_base64_decode(const char *text, size_t length, cpl_str *out);

#endif
