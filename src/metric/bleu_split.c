/* bleu_split.c: how BLEU splits lines, rule for rule as sacreBLEU does.
 *
 * The rules are stated there as regular expressions over characters. All characters that they name are ASCII,
 * and a "not a digit" that swallows the first or last byte of a longer character puts it back unchanged, so
 * working on bytes gives the same text; intl alone asks for the categories of characters. White space is Unicode's, as
 * Python's str.split knows it. */
#include "metric/metric.h"

#include <string.h>

#include "base/error.h"
#include "text/unicode.h"

static const char *const split_names[] = {"13a", "none", "char", "intl"};

cpl_status cpl_bleu_split_named(cpl_bleu_split *split, const char *name, cpl_error *err)
{
    size_t n = sizeof split_names / sizeof *split_names;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(name, split_names[i]) != 0)
            continue;
        if (i == CPL_BLEU_INTL && !cpl_unicode_available())
            CPL_FAIL(err, CPL_FAILED, "cannot split by 'intl': this build has no Unicode tables (utf8proc was missing "
                     "when it was built)");
        *split = (cpl_bleu_split)i;
        return CPL_OK;
    }
    char shown[80];
    CPL_FAIL(err, CPL_USAGE, "unknown BLEU tokenizer '%s', expected 13a, none, char or intl",
             cpl_escape(shown, sizeof shown, name, strlen(name)));
}

const char *cpl_bleu_split_name(cpl_bleu_split split)
{
    return split_names[split];
}

static size_t white_space(const unsigned char *s, size_t left)
{
    if ((s[0] >= 9 && s[0] <= 13) || (s[0] >= 28 && s[0] <= 32))
        return 1;
    if (left >= 2 && s[0] == 0xC2)
        return s[1] == 0x85 || s[1] == 0xA0 ? 2 : 0; /* next line, no-break space */
    if (left < 3)
        return 0;
    unsigned tail = (unsigned)s[1] << 8 | s[2];
    if (s[0] == 0xE1)
        return tail == 0x9A80 ? 3 : 0; /* ogham space mark */
    if (s[0] == 0xE3)
        return tail == 0x8080 ? 3 : 0; /* ideographic space */
    if (s[0] != 0xE2)
        return 0;
    int is_space =
        (tail >= 0x8080 && tail <= 0x808A) || tail == 0x80A8 || tail == 0x80A9 || tail == 0x80AF || tail == 0x819F;
    return is_space ? 3 : 0;
}

size_t cpl_bleu_space(const char *text, size_t left)
{
    return white_space((const unsigned char *)text, left);
}

/* Bytes of the UTF-8 character at s, as its first byte says; a byte that cannot begin one stands alone. */
static size_t character(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0xC0 ? 1 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < n; i++)
        if (i >= left || (s[i] & 0xC0) != 0x80)
            return 1;
    return n;
}

/* Appends text with one space for each run of white space and none at the ends; with each_character, one
 * between any two characters. */
static void add_pieces(const char *text, size_t length, int each_character, cpl_str *out)
{
    const unsigned char *s = (const unsigned char *)text;
    int gap = 0, any = 0;
    for (size_t i = 0; i < length;) {
        size_t blank = white_space(s + i, length - i);
        if (blank) {
            gap = 1;
            i += blank;
            continue;
        }
        if (any && (gap || each_character))
            cpl_str_add_char(out, ' ');
        size_t n = character(s + i, length - i);
        cpl_str_add_bytes(out, text + i, n);
        gap = 0;
        any = 1;
        i += n;
    }
}

static int digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Replaces every `from` by `to`, which is no longer, within text. Returns the new length. */
static size_t replace(char *text, size_t length, const char *from, const char *to)
{
    size_t from_length = strlen(from), to_length = strlen(to), kept = 0;
    for (size_t i = 0; i < length;) {
        if (length - i >= from_length && memcmp(text + i, from, from_length) == 0) {
            memcpy(text + kept, to, to_length);
            kept += to_length;
            i += from_length;
        } else {
            text[kept++] = text[i++];
        }
    }
    return kept;
}

/* ASCII punctuation that always stands alone: all but ' , - . */
static int stands_alone(char c)
{
    return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

static int stop_or_comma(char c)
{
    return c == '.' || c == ',';
}

/* Rules 2 to 4 look at two neighbours a b, and continue after b where they applied. Rule 2: a stop or comma
 * not after a digit; 3: not before a digit; 4: a dash after a digit. */
static int rule_applies(int rule, char a, char b)
{
    if (rule == 2)
        return !digit(a) && stop_or_comma(b);
    if (rule == 3)
        return stop_or_comma(a) && !digit(b);
    return digit(a) && b == '-';
}

static void apply_rule(int rule, const cpl_str *in, cpl_str *out)
{
    cpl_str_clear(out);
    for (size_t i = 0; i < in->length; i++) {
        char a = in->data[i];
        if (i + 1 == in->length || !rule_applies(rule, a, in->data[i + 1])) {
            cpl_str_add_char(out, a);
            continue;
        }
        char b = in->data[++i];
        char before[] = {a, ' ', b, ' '}, after[] = {' ', a, ' ', b};
        cpl_str_add_bytes(out, rule == 3 ? after : before, 4);
    }
}

/* mteval-v13a: entities, then punctuation. The rules run one after another over the whole line. */
static void split_13a(const char *line, size_t length, cpl_str *out)
{
    static const char *const swaps[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                           {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    cpl_str a = {0}, b = {0};
    cpl_str_add_bytes(&b, line, length);
    if (b.failed || b.length == 0) {
        out->failed |= b.failed;
        cpl_str_free(&b);
        return;
    }
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++)
        b.length = replace(b.data, b.length, swaps[i][0], swaps[i][1]);
    cpl_str_add_char(&a, ' ');
    for (size_t i = 0; i < b.length; i++) {
        char c = b.data[i], apart[] = {' ', c, ' '};
        cpl_str_add_bytes(&a, stands_alone(c) ? apart : &c, stands_alone(c) ? 3 : 1);
    }
    cpl_str_add_char(&a, ' ');
    apply_rule(2, &a, &b);
    apply_rule(3, &b, &a);
    apply_rule(4, &a, &b);
    if (b.data)
        add_pieces(b.data, b.length, 0, out);
    out->failed |= a.failed | b.failed;
    cpl_str_free(&a);
    cpl_str_free(&b);
}

/* Rule 0 of intl parts punctuation that does not follow a number, rule 1 punctuation before what is no number. */
static int parts_neighbours(int rule, char a, char b)
{
    return rule == 0 ? a != 'N' && b == 'P' : a == 'P' && b != 'N';
}

/* As apply_rule, over characters and their categories' first letters. */
static void apply_intl(int rule, const cpl_str *in, cpl_str *out)
{
    const char *p = in->data, *end = p + in->length;
    cpl_str_clear(out);
    while (p < end) {
        uint32_t code;
        size_t n = cpl_utf8_next(p, end, &code), m = 0;
        char a = cpl_char_class(code), b = 0;
        if (p + n < end) {
            m = cpl_utf8_next(p + n, end, &code);
            b = cpl_char_class(code);
        }
        if (m == 0 || !parts_neighbours(rule, a, b))
            m = 0;
        if (m && rule == 1)
            cpl_str_add_char(out, ' ');
        cpl_str_add_bytes(out, p, n);
        if (m) {
            cpl_str_add_char(out, ' ');
            cpl_str_add_bytes(out, p + n, m);
        }
        if (m && rule == 0)
            cpl_str_add_char(out, ' ');
        p += n + m;
    }
}

/* mteval-v14's international rules: a full stop after a number at the line's end stays with it, as there. */
static void split_intl(const char *line, size_t length, cpl_str *out)
{
    cpl_str a = {0}, b = {0};
    cpl_str_add(&a, "");
    cpl_str_add(&b, "");
    cpl_str_add_bytes(&a, line, length);
    if (!a.failed)
        apply_intl(0, &a, &b);
    if (!b.failed)
        apply_intl(1, &b, &a);
    cpl_str_clear(&b);
    for (size_t i = 0, n; !a.failed && i < a.length; i += n) {
        uint32_t code;
        n = cpl_utf8_next(a.data + i, a.data + a.length, &code);
        int symbol = cpl_char_class(code) == 'S';
        cpl_str_add(&b, symbol ? " " : "");
        cpl_str_add_bytes(&b, a.data + i, n);
        cpl_str_add(&b, symbol ? " " : "");
    }
    if (!a.failed && !b.failed)
        add_pieces(b.data, b.length, 0, out);
    out->failed |= a.failed | b.failed;
    cpl_str_free(&a);
    cpl_str_free(&b);
}

/* Length without white space at the end. Characters are found from the front, so that no byte within a
 * character is taken for one. */
static size_t stripped(const char *line, size_t length)
{
    const unsigned char *s = (const unsigned char *)line;
    size_t end = 0;
    for (size_t i = 0; i < length;) {
        size_t blank = white_space(s + i, length - i);
        size_t n = blank ? blank : character(s + i, length - i);
        i += n;
        if (!blank)
            end = i;
    }
    return end;
}

void cpl_bleu_split_line(cpl_bleu_split split, const char *line, size_t length, cpl_str *out)
{
    length = stripped(line, length);
    if (split == CPL_BLEU_13A)
        split_13a(line, length, out);
    else if (split == CPL_BLEU_INTL)
        split_intl(line, length, out);
    else
        add_pieces(line, length, split == CPL_BLEU_CHAR, out);
}
