/* picture.c: attention as SVG: a dark square where a token looked, with the number as its tooltip.
 *
 * No font is at hand to measure text with, so labels are counted in columns, as a terminal would: a letter is one, a
 * Chinese character two, a combining mark none. All numbers are written as integers: a decimal comma of the user's
 * locale would spoil the file. */
#include "api/picture.h"

#include <stdint.h>
#include <string.h>

enum {
    CELL = 28,      /* pixels of a square's side */
    FONT = 14,      /* … of the text's height */
    COLUMN = 9,     /* … that one column of text may take */
    GAP = 8,        /* … between labels and squares, and around the picture */
    COLUMNS = 20,   /* a longer label is cut */
    FAINT = 1       /* thousandths: a weight below is not seen, and not drawn */
};

/* ---- characters ---- */

typedef struct range {
    uint32_t first, last;
} range;

static int within(const range *table, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= table[i].first && code <= table[i].last)
            return 1;
    return 0;
}

/* The blocks of East Asian wide and full-width characters, and of emoji. */
static int is_wide(uint32_t code)
{
    static const range table[] = {{0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xA960, 0xA97F},
                                  {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE30, 0xFE6F}, {0xFF01, 0xFF60},
                                  {0xFFE0, 0xFFE6}, {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F300, 0x1F64F},
                                  {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};
    return within(table, sizeof table / sizeof *table, code);
}

/* The marks that stand on the letter before them: the common blocks, which is enough to keep a word whole. */
static int is_mark(uint32_t code)
{
    static const range table[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x05BF, 0x05C7},
                                  {0x0610, 0x061A}, {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DC},
                                  {0x06DF, 0x06E4}, {0x06E7, 0x06E8}, {0x06EA, 0x06ED}, {0x093C, 0x093C},
                                  {0x0941, 0x0948}, {0x094D, 0x094D}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},
                                  {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
                                  {0x202A, 0x202E}, {0x2060, 0x206F}, {0x20D0, 0x20FF}, {0x302A, 0x302D},
                                  {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
    return within(table, sizeof table / sizeof *table, code);
}

/* Letters of the scripts that run from right to left: Hebrew, Arabic, Syriac, Thaana, N'Ko and their kin. */
static int is_right_to_left(uint32_t code)
{
    static const range table[] = {{0x05BE, 0x05BE}, {0x05D0, 0x060B}, {0x061B, 0x064A}, {0x066D, 0x066F},
                                  {0x0671, 0x06D5}, {0x06FA, 0x08FF}, {0xFB1D, 0xFDFF}, {0xFE70, 0xFEFC},
                                  {0x10800, 0x10FFF}, {0x1E800, 0x1EFFF}};
    return within(table, sizeof table / sizeof *table, code);
}

/* A letter of any other script; digits, punctuation and symbols have no direction of their own. */
static int is_left_to_right(uint32_t code)
{
    static const range none[] = {{0, '@'}, {'[', '`'}, {'{', 0xBF}, {0x2000, 0x2BFF}, {0x3000, 0x303F}};
    return !within(none, sizeof none / sizeof *none, code) && !is_mark(code) && !is_right_to_left(code);
}

/* What XML cannot hold, however it is written. */
static int is_forbidden(uint32_t code)
{
    return code < 0x20 || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
}

/* The character at p of well-formed text; returns its bytes. A byte that starts none is taken as U+FFFF. */
static size_t decode(const char *p, size_t length, uint32_t *code)
{
    unsigned char first = (unsigned char)*p;
    size_t bytes = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    if (bytes == 0 || bytes > length) {
        *code = 0xFFFF;
        return 1;
    }
    *code = bytes == 1 ? first : first & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        *code = *code << 6 | ((unsigned char)p[i] & 0x3F);
    return bytes;
}

/* ---- text ---- */

static void add_character(cpl_str *out, const char *p, size_t bytes, uint32_t code)
{
    if (is_forbidden(code))
        cpl_str_add(out, "\xEF\xBF\xBD");
    else if (code == '&')
        cpl_str_add(out, "&amp;");
    else if (code == '<')
        cpl_str_add(out, "&lt;");
    else if (code == '>')
        cpl_str_add(out, "&gt;");
    else if (code == '"')
        cpl_str_add(out, "&quot;");
    else
        cpl_str_add_bytes(out, p, bytes);
}

static void add_text(cpl_str *out, const char *text, size_t length)
{
    uint32_t code;
    for (size_t i = 0, bytes; i < length; i += bytes) {
        bytes = decode(text + i, length - i, &code);
        add_character(out, text + i, bytes, code);
    }
}

typedef struct measure {
    int columns;        /* of what is shown */
    size_t shown;       /* bytes of it: less than the length when the label is cut */
    int right_to_left;  /* the first letter with a direction decides */
} measure;

static int columns_of(uint32_t code)
{
    return is_mark(code) ? 0 : is_wide(code) ? 2 : 1;
}

static measure measure_text(const char *text, size_t length)
{
    measure m = {.shown = length};
    int columns = 0, cut = 0, directed = 0;
    uint32_t code;
    for (size_t i = 0, bytes; i < length; i += bytes) {
        bytes = decode(text + i, length - i, &code);
        int wide = columns_of(code);
        if (!cut && columns + wide > COLUMNS - 1 && m.shown == length)
            m.shown = i, m.columns = columns + 1; /* where to cut, if more than one column comes */
        columns += wide;
        cut = columns > COLUMNS;
        if (!directed && (is_right_to_left(code) || is_left_to_right(code)))
            directed = 1, m.right_to_left = is_right_to_left(code);
    }
    if (columns <= COLUMNS)
        m.shown = length, m.columns = columns;
    return m;
}

/* The label as it reads: joiners do their work elsewhere, and an empty or white one would be nothing to see. */
static void readable(const cpl_axis *axis, size_t i, cpl_str *text)
{
    const cpl_label *label = &axis->labels[i];
    cpl_token token = {label->text, label->length};
    cpl_str_clear(text);
    if (axis->tokens == CPL_TOKENS_WORD && label->kind != CPL_LABEL_MARK)
        cpl_join(CPL_TOKENS_WORD, &token, 1, text);
    else
        cpl_str_add_bytes(text, label->text ? label->text : "", label->length);
    if (text->length == 1 && (text->data[0] == ' ' || text->data[0] == '\t')) {
        cpl_str_clear(text);
        cpl_str_add(text, "\xE2\x90\xA3");
    }
    if (label->length == 0)
        cpl_str_add(text, "(padding)");
    if (!text->data)
        text->failed = 1;
}

/* ---- the picture ---- */

typedef struct drawing {
    const cpl_picture *picture;
    cpl_str *out;
    cpl_str text;    /* scratch: one label */
    int left, top;   /* of the squares */
} drawing;

static int width_of(drawing *d, const cpl_axis *axis, size_t i)
{
    readable(axis, i, &d->text);
    return d->text.failed ? 0 : measure_text(d->text.data, d->text.length).columns * COLUMN;
}

static int widest(drawing *d, const cpl_axis *axis)
{
    int most = 0;
    for (size_t i = 0; i < axis->count; i++) {
        int width = width_of(d, axis, i);
        most = width > most ? width : most;
    }
    return most;
}

/* A slanted label is as high as it is wide: its length over the root of 2. */
static int slanted(int width)
{
    return (width + FONT) * 10 / 14;
}

/* Where the rightmost column label ends. */
static int overhang(drawing *d)
{
    int most = 0;
    for (size_t i = 0; i < d->picture->source.count; i++) {
        int end = d->left + (int)i * CELL + CELL / 2 + slanted(width_of(d, &d->picture->source, i));
        most = end > most ? end : most;
    }
    return most;
}

/* at: attributes that place the text; reverse: its visual end is at that place, not its visual start. */
static void add_label(drawing *d, const cpl_axis *axis, size_t i, const char *at, int reverse)
{
    static const char *const look[] = {"", " fill=\"#8a8a8a\"", " font-style=\"italic\""};
    readable(axis, i, &d->text);
    if (d->text.failed)
        return;
    const char *text = d->text.data;
    size_t length = d->text.length;
    measure m = measure_text(text, length);
    /* `start` is the right end of a text that runs from right to left. */
    cpl_str_printf(d->out, "<text %s%s%s%s>", at, reverse != m.right_to_left ? " text-anchor=\"end\"" : "",
                   m.right_to_left ? " direction=\"rtl\"" : "", look[axis->labels[i].kind]);
    add_text(d->out, text, m.shown);
    if (m.shown < length)
        cpl_str_add(d->out, "\xE2\x80\xA6");
    if (m.shown < length || axis->labels[i].kind == CPL_LABEL_UNKNOWN) {
        cpl_str_add(d->out, "<title>");
        add_text(d->out, text, length);
        cpl_str_add(d->out, axis->labels[i].kind == CPL_LABEL_UNKNOWN ? " (not in the vocabulary)" : "");
        cpl_str_add(d->out, "</title>");
    }
    cpl_str_add(d->out, "</text>\n");
}

static void add_labels(drawing *d)
{
    const cpl_picture *p = d->picture;
    char at[96];
    for (size_t i = 0; i < p->source.count; i++) {
        snprintf(at, sizeof at, "transform=\"translate(%d %d) rotate(-45)\"",
                 d->left + (int)i * CELL + CELL / 2 + FONT / 3, d->top - GAP);
        add_label(d, &p->source, i, at, 0);
    }
    for (size_t i = 0; i < p->target.count; i++) {
        snprintf(at, sizeof at, "x=\"%d\" y=\"%d\"", d->left - GAP, d->top + (int)i * CELL + CELL / 2 + FONT / 3);
        add_label(d, &p->target, i, at, 1);
    }
}

/* What is not a number between 0 and 1 is drawn as the nearest of them. */
static int thousandths(float weight)
{
    return !(weight > 0) ? 0 : weight >= 1 ? 1000 : (int)(weight * 1000 + 0.5F);
}

static void add_cells(drawing *d)
{
    const cpl_picture *p = d->picture;
    for (size_t t = 0; t < p->target.count; t++)
        for (size_t s = 0; s < p->source.count; s++) {
            int weight = thousandths(p->weights[t * p->source.count + s]);
            if (weight < FAINT)
                continue;
            cpl_str_printf(d->out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#174a8c\" "
                           "fill-opacity=\"%d.%03d\"><title>%d.%03d</title></rect>\n", d->left + (int)s * CELL,
                           d->top + (int)t * CELL, CELL, CELL, weight / 1000, weight % 1000, weight / 1000,
                           weight % 1000);
        }
}

/* Lines between the squares, so that a pale row can be followed to its label. */
static void add_grid(drawing *d, int right, int bottom)
{
    cpl_str_printf(d->out, "<path stroke=\"#d8d8d8\" fill=\"none\" d=\"");
    for (int x = d->left; x <= right; x += CELL)
        cpl_str_printf(d->out, "M%d %dV%d", x, d->top, bottom);
    for (int y = d->top; y <= bottom; y += CELL)
        cpl_str_printf(d->out, "M%d %dH%d", d->left, y, right);
    cpl_str_add(d->out, "\"/>\n");
}

void cpl_picture_write(const cpl_picture *p, cpl_str *out)
{
    drawing d = {.picture = p, .out = out};
    d.left = widest(&d, &p->target) + 2 * GAP;
    d.top = slanted(widest(&d, &p->source)) + 2 * GAP;
    int right = d.left + (int)p->source.count * CELL, bottom = d.top + (int)p->target.count * CELL;
    int end = overhang(&d), width = (end > right ? end : right) + GAP, height = bottom + GAP;
    cpl_str_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    cpl_str_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                   "role=\"img\" font-size=\"%d\" font-family=\"'Noto Sans', 'DejaVu Sans', Arial, sans-serif\">\n",
                   width, height, width, height, FONT);
    cpl_str_add(out, "<title>");
    add_text(out, p->title, strlen(p->title));
    cpl_str_add(out, "</title>\n");
    cpl_str_printf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height);
    add_cells(&d);
    add_grid(&d, right, bottom);
    add_labels(&d);
    cpl_str_add(out, "</svg>\n");
    out->failed |= d.text.failed;
    cpl_str_free(&d.text);
}
