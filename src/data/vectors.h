/* vectors.h: word vectors from a text file, as word2vec, GloVe and fastText write it, into the rows of an embedding.
 *
 *   2000000 300                     (a header, or none)
 *   der 0.0123 -0.456 … 0.789       (a token and its numbers, parted by spaces or tabs; LF or CRLF)
 *
 * The file is read once, a piece at a time: memory holds a line of it, whatever its size. */
#ifndef CPL_DATA_VECTORS_H
#define CPL_DATA_VECTORS_H

#include "data/data.h"
#include "kernel/kernel.h"

typedef struct cpl_vectors_options {
    const char *path, *name;  /* to open (.gz is decompressed); as the user wrote it: must outlive the data set */
    int target;               /* of which side's vocabulary the rows are */
    real *rows;               /* [entries width]: rows of words that the file has are overwritten, others stay */
    int64_t width;
    const char *layer;        /* for errors: "encoder.embedding" */
    const char *width_key;    /* the key that gave width: "model.units" */
    const cpl_log *log;       /* of warnings; NULL: silent */
} cpl_vectors_options;

/* Fills the rows, and the side's report.vectors. A word is looked up as it is, then in lower case. CPL_USAGE names file
 * and line: numbers that are too many, too few, not numbers or not finite; vectors of another width. On failure some
 * rows may have been filled. */
cpl_status cpl_dataset_read_vectors(cpl_dataset *d, const cpl_vectors_options *options, cpl_error *err);

/* ---- vector_text.c: between it and vectors.c ---- */

typedef struct cpl_vector_text cpl_vector_text;

/* A line's token and the text of its numbers: `width` of them, well formed, each followed by what no number has. */
typedef struct cpl_vector_line {
    const char *token, *values;
    size_t length; /* of the token */
    int64_t number; /* of the line, from 1 */
} cpl_vector_line;

cpl_status cpl_vector_text_open(cpl_vector_text **t, const cpl_vectors_options *options, cpl_error *err);
void cpl_vector_text_close(cpl_vector_text *t); /* NULL is fine */
/* line->token NULL: the end. Valid until the next call. */
cpl_status cpl_vector_text_next(cpl_vector_text *t, cpl_vector_line *line, cpl_error *err);
int64_t cpl_vector_text_promised(const cpl_vector_text *t); /* vectors by the header; −1 without */
/* Reads the numbers of a line. One that no 32-bit number can hold is CPL_USAGE. */
cpl_status cpl_vector_text_values(const cpl_vector_text *t, const cpl_vector_line *line, real *to, cpl_error *err);

#endif
