/* bytes.c: text as bytes. A vocabulary of 256 + 4 entries covers every text, so nothing is unknown.
 *
 * A byte alone is seldom UTF-8, but tokens are shown, stored as JSON and listed in files. So a token is a name: a
 * visible ASCII character is itself, every other byte is "<0x20>", as SentencePiece writes bytes. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "text/text.h"
#include "text/unicode.h"

enum { NAME_BYTES = 6 };

#define ROW(high)                                                                                                      \
    "<0x" high "0><0x" high "1><0x" high "2><0x" high "3><0x" high "4><0x" high "5><0x" high "6><0x" high "7>"         \
    "<0x" high "8><0x" high "9><0x" high "A><0x" high "B><0x" high "C><0x" high "D><0x" high "E><0x" high "F>"
static const char names[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6") ROW("7") ROW("8") ROW("9")
    ROW("A") ROW("B") ROW("C") ROW("D") ROW("E") ROW("F");
static const char visible[] = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrst"
    "uvwxyz{|}~";

cpl_token cpl_byte_token(unsigned char byte)
{
    if (byte > ' ' && byte < 0x7F)
        return (cpl_token){visible + (byte - '!'), 1};
    return (cpl_token){names + (size_t)byte * NAME_BYTES, NAME_BYTES};
}

/* The byte that a token names; −1: none. */
static int byte_of(const char *token, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    if (length == 1)
        return (unsigned char)*token;
    if (length != NAME_BYTES || memcmp(token, "<0x", 3) != 0 || token[5] != '>')
        return -1;
    const char *high = memchr(digits, token[3], 16), *low = memchr(digits, token[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

int cpl_split_bytes(const char *text, size_t length, cpl_token_list *list)
{
    if (length > list->capacity && cpl_grow(&list->items, &list->capacity, length, sizeof *list->items))
        return -1;
    for (size_t i = 0; i < length; i++)
        list->items[i] = cpl_byte_token((unsigned char)text[i]);
    list->count = length;
    return 0;
}

/* A model may write any row of bytes: what is no character becomes U+FFFD, and so does a line feed, since an output is
 * one line. */
void cpl_join_bytes(const cpl_token *tokens, size_t n, cpl_str *out)
{
    cpl_str bytes = {0};
    for (size_t i = 0; i < n; i++) {
        int byte = byte_of(tokens[i].text, tokens[i].length);
        if (byte >= 0)
            cpl_str_add_char(&bytes, (char)byte);
        else
            cpl_str_add_bytes(&bytes, tokens[i].text, tokens[i].length);
    }
    cpl_utf8_repair(bytes.data, bytes.length, out);
    if (bytes.failed)
        out->failed = 1;
    cpl_str_free(&bytes);
}
