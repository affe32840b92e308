/* split.c: standardised text to tokens.
 *
 * White space, for every kind: Unicode's White_Space (U+0009–000D, U+0020, U+0085, U+00A0, U+1680, U+2000–200A,
 * U+2028, U+2029, U+202F, U+205F, U+3000) and U+200B, the zero-width space. None of them ends a line: only LF does.
 *
 * space  cuts at runs of white space, nothing else. Joined with one space.
 * bpe, unigram: cut by the vocabulary's SentencePiece model (subwords.c), for which runs of white space are one space.
 * char   every code point is a token, white space included, exactly as it is; a letter written with combining marks is
 *        several (standardize: nfc first). Joined without anything between: the text comes back byte for byte.
 * byte   every byte of the UTF-8 text is a token, white space included; see bytes.c. Joined without anything between.
 * word   a word is a run of letters, numbers, connectors (_), marks and format characters. Inside it may stand, between
 *        a word character and a letter, an apostrophe (' or U+2019) or a middle dot (don't, l'eau), and between digits
 *        a point or comma (3.14). Hyphens part words (e - mail): compounds then share the words of their parts. Scripts
 *        without spaces are not cut: use char. Every other character is a token of its own, with the marks that follow
 *        it; what a zero-width joiner links (emoji families) is one token.
 *
 * To undo `word`, a token that is not a word carries the joiner U+FFED where it touched its neighbour: `"no!"` is
 * `"￭` `no` `￭!` `￭"`. Of two such tokens that touch, the second carries it; two words never touch. In text, U+FFED
 * is written as U+FFEE 'j' and U+FFEE as U+FFEE 'e'. */
#include <string.h>
#include "base/error.h"
#include "base/memory.h"
#include "text/list.h"
#include "text/text.h"
#include "text/unicode.h"
#include "text/word.h"

int cpl_token_push(cpl_token_list *list, const char *text, size_t length)
{
    if (list->count == list->capacity && cpl_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items))
        return -1;
    list->items[list->count++] = (cpl_token){text, length};
    return 0;
}

void cpl_token_settle(cpl_token_list *list)
{
    const char *at = list->bytes.data;
    for (size_t i = 0; i < list->count; i++) {
        if (!list->items[i].text) {
            list->items[i].text = at;
            at += list->items[i].length;
        }
    }
}

static int split_space(const char *p, const char *end, cpl_token_list *list)
{
    while (p < end) {
        size_t n = cpl_space_at(p, end);
        if (n) {
            p += n;
            continue;
        }
        const char *start = p;
        while (p < end && !cpl_space_at(p, end))
            p++; /* a tail byte is never the start of white space */
        if (cpl_token_push(list, start, (size_t)(p - start)))
            return -1;
    }
    return 0;
}

static int split_char(const char *p, const char *end, cpl_token_list *list)
{
    while (p < end) {
        uint32_t code;
        size_t n = cpl_utf8_next(p, end, &code);
        if (cpl_token_push(list, p, n))
            return -1;
        p += n;
    }
    return 0;
}

/* Whether the character `code` after a word character of kind `before` belongs inside the word, seeing what follows. */
static int stands_inside(cpl_char_kind before, uint32_t code, const char *next, const char *end)
{
    int apostrophe = code == '\'' || code == 0x2019 || code == 0xB7;
    int separator = (code == '.' || code == ',') && before == CPL_CHAR_DIGIT;
    if (next == end || (!apostrophe && !separator))
        return 0;
    uint32_t unused;
    size_t n;
    return cpl_char_at(next, end, &unused, &n) == (apostrophe ? CPL_CHAR_LETTER : CPL_CHAR_DIGIT);
}

/* The end of the word that goes on at p; before is the kind of its last character so far. */
static const char *word_end(const char *p, const char *end, cpl_char_kind before)
{
    while (p < end) {
        uint32_t code;
        size_t n;
        cpl_char_kind kind = cpl_char_at(p, end, &code, &n);
        if (kind == CPL_CHAR_SPACE || (kind == CPL_CHAR_OTHER && !stands_inside(before, code, p + n, end)))
            break;
        if (kind == CPL_CHAR_LETTER || kind == CPL_CHAR_DIGIT)
            before = kind;
        p += n;
    }
    return p;
}

/* The end of the symbol whose first character ended at p: its marks, and what a zero-width joiner links. */
static const char *symbol_end(const char *p, const char *end)
{
    uint32_t last = 0;
    while (p < end) {
        uint32_t code;
        size_t n;
        cpl_char_kind kind = cpl_char_at(p, end, &code, &n);
        if (kind != CPL_CHAR_EXTEND && !(kind == CPL_CHAR_OTHER && last == 0x200D))
            break;
        last = code;
        p += n;
    }
    return p;
}

/* Writes a symbol with its joiners; a bare one stays a slice of the text. */
static int push_symbol(cpl_token_list *list, const char *text, size_t length, int glued_before, int glued_after)
{
    int escape = length >= CPL_JOINER_BYTES && memchr(text, '\xEF', length) != NULL;
    if (!glued_before && !glued_after && !escape)
        return cpl_token_push(list, text, length);
    size_t start = list->bytes.length;
    if (glued_before)
        cpl_str_add_bytes(&list->bytes, CPL_JOINER, CPL_JOINER_BYTES);
    if (escape)
        cpl_joiner_escape(text, length, &list->bytes);
    else
        cpl_str_add_bytes(&list->bytes, text, length);
    if (glued_after)
        cpl_str_add_bytes(&list->bytes, CPL_JOINER, CPL_JOINER_BYTES);
    return list->bytes.failed ? -1 : cpl_token_push(list, NULL, list->bytes.length - start);
}

static int split_word(const char *p, const char *end, cpl_token_list *list)
{
    int touches = 0; /* a token ends right before p */
    while (p < end) {
        uint32_t code;
        size_t n;
        const char *start = p;
        cpl_char_kind kind = cpl_char_at(p, end, &code, &n);
        p += n;
        if (kind == CPL_CHAR_SPACE) {
            touches = 0;
            continue;
        }
        int failed;
        if (kind == CPL_CHAR_OTHER) {
            p = symbol_end(p, end);
            cpl_char_kind next = p < end ? cpl_char_at(p, end, &code, &n) : CPL_CHAR_SPACE;
            int before_word = next == CPL_CHAR_LETTER || next == CPL_CHAR_DIGIT;
            failed = push_symbol(list, start, (size_t)(p - start), touches, before_word);
        } else {
            p = word_end(p, end, kind == CPL_CHAR_DIGIT ? kind : CPL_CHAR_LETTER);
            failed = cpl_token_push(list, start, (size_t)(p - start));
        }
        if (failed)
            return -1;
        touches = 1;
    }
    cpl_token_settle(list);
    return 0;
}

cpl_status cpl_split(cpl_tokens kind, const char *text, size_t length, cpl_token_list *list, cpl_error *err)
{
    list->count = 0;
    cpl_str_clear(&list->bytes);
    if (length == 0)
        return CPL_OK;
    if (kind == CPL_TOKENS_BPE || kind == CPL_TOKENS_UNIGRAM)
        CPL_FAIL(err, CPL_FAILED, "no SentencePiece model to cut text into '%s' tokens", cpl_tokens_name(kind));
    if (kind == CPL_TOKENS_WORD && !cpl_unicode_available() && !cpl_is_ascii(text, length))
        CPL_FAIL(err, CPL_USAGE,
                 "cannot split text beyond ASCII into words: this build has no Unicode tables (utf8proc was missing "
                 "when it was built)" CPL_HINT "use tokens: space or char, or build with utf8proc");
    int failed = kind == CPL_TOKENS_SPACE  ? split_space(text, text + length, list)
                 : kind == CPL_TOKENS_CHAR ? split_char(text, text + length, list)
                 : kind == CPL_TOKENS_BYTE ? cpl_split_bytes(text, length, list)
                                           : split_word(text, text + length, list);
    if (failed) {
        list->count = 0; /* what is there points nowhere yet */
        CPL_FAIL(err, CPL_FAILED, "no memory for the tokens of %zu bytes of text", length);
    }
    return CPL_OK;
}

void cpl_token_list_free(cpl_token_list *list)
{
    cpl_release(list->items);
    cpl_str_free(&list->bytes);
    *list = (cpl_token_list){0};
}
