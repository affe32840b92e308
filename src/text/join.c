/* join.c: tokens back to text. Any row of tokens has a text, also one that a model made up: an odd joiner only decides
 * about spaces. */
#include <string.h>
#include "text/text.h"
#include "text/word.h"

static int starts_with(const char *text, size_t length, const char *mark)
{
    return length >= CPL_JOINER_BYTES && memcmp(text, mark, CPL_JOINER_BYTES) == 0;
}

void cpl_joiner_escape(const char *text, size_t length, cpl_str *out)
{
    for (size_t i = 0; i < length;) {
        int joiner = starts_with(text + i, length - i, CPL_JOINER);
        if (joiner || starts_with(text + i, length - i, CPL_ESCAPE)) {
            cpl_str_add_bytes(out, CPL_ESCAPE, CPL_JOINER_BYTES);
            cpl_str_add_char(out, joiner ? 'j' : 'e');
            i += CPL_JOINER_BYTES;
        } else {
            cpl_str_add_char(out, text[i++]);
        }
    }
}

void cpl_joiner_unescape(const char *text, size_t length, cpl_str *out)
{
    for (size_t i = 0; i < length;) {
        char next = length - i > CPL_JOINER_BYTES ? text[i + CPL_JOINER_BYTES] : 0;
        if ((next == 'j' || next == 'e') && starts_with(text + i, length - i, CPL_ESCAPE)) {
            cpl_str_add_bytes(out, next == 'j' ? CPL_JOINER : CPL_ESCAPE, CPL_JOINER_BYTES);
            i += CPL_JOINER_BYTES + 1;
        } else {
            cpl_str_add_char(out, text[i++]);
        }
    }
}

/* A joiner at the front holds the token to the last one, a joiner at the end holds the next one to it. */
static void join_words(const cpl_token *tokens, size_t n, cpl_str *out)
{
    int glued = 1; /* nothing before the first */
    for (size_t i = 0; i < n; i++) {
        const char *text = tokens[i].text;
        size_t length = tokens[i].length;
        if (starts_with(text, length, CPL_JOINER)) {
            glued = 1;
            text += CPL_JOINER_BYTES;
            length -= CPL_JOINER_BYTES;
        }
        if (!glued)
            cpl_str_add_char(out, ' ');
        glued =
            length >= CPL_JOINER_BYTES && starts_with(text + length - CPL_JOINER_BYTES, CPL_JOINER_BYTES, CPL_JOINER);
        if (glued)
            length -= CPL_JOINER_BYTES;
        if (length && memchr(text, '\xEF', length))
            cpl_joiner_unescape(text, length, out);
        else if (length)
            cpl_str_add_bytes(out, text, length);
    }
}

void cpl_join(cpl_tokens kind, const cpl_token *tokens, size_t n, cpl_str *out)
{
    if (kind == CPL_TOKENS_WORD || kind == CPL_TOKENS_BYTE) {
        (kind == CPL_TOKENS_WORD ? join_words : cpl_join_bytes)(tokens, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (i && kind == CPL_TOKENS_SPACE)
            cpl_str_add_char(out, ' ');
        if (tokens[i].length)
            cpl_str_add_bytes(out, tokens[i].text, tokens[i].length);
    }
}
