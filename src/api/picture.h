/* picture.h: a matrix of attention as an SVG picture. Knows neither models nor files.
 *
 *   cpl_picture p = {.title = …, .source = {labels, n, CPL_TOKENS_WORD}, .target = …, .weights = w};
 *   cpl_picture_write(&p, &svg);                               out of memory: svg.failed
 *
 * The same input gives the same bytes, in every locale. */
#ifndef CPL_API_PICTURE_H
#define CPL_API_PICTURE_H

#include "base/str.h"
#include "text/text.h"

typedef enum cpl_label_kind {
    CPL_LABEL_WORD,
    CPL_LABEL_MARK,   /* [START], [END]: not of the text, drawn in grey */
    CPL_LABEL_UNKNOWN /* a word that the vocabulary has not, drawn slanted */
} cpl_label_kind;

typedef struct cpl_label {
    const char *text; /* UTF-8 */
    size_t length;
    cpl_label_kind kind;
} cpl_label;

typedef struct cpl_axis {
    const cpl_label *labels;
    size_t count;
    cpl_tokens tokens; /* word: joiners are not shown; char: white space gets a sign */
} cpl_axis;

typedef struct cpl_picture {
    const char *title;
    cpl_axis source;      /* columns, from left to right */
    cpl_axis target;      /* lines, from top to bottom */
    const float *weights; /* [target source], 0 … 1 */
} cpl_picture;

/* Appends the picture: one line of text for each element. */
void cpl_picture_write(const cpl_picture *p, cpl_str *out);

#endif
