/* sentencepiece.h: between subwords.c and sentencepiece.cc, the only file in C++. Plain types only; no exception comes
 * out. A function that fails returns -1 or NULL and writes why into `why`. */
#ifndef CPL_TEXT_SENTENCEPIECE_H
#define CPL_TEXT_SENTENCEPIECE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CPL_SPM_WHY = 240 };

/* A trained model. Immutable: any number of threads may use it at once. */
typedef struct cpl_spm cpl_spm;

/* The ids of the special pieces, -1: the model has none. */
typedef struct cpl_spm_specials {
    int padding, unknown, start, end;
} cpl_spm_specials;

/* Takes bytes that a function gives, 0: taken, -1: no memory. */
typedef int (*cpl_spm_take)(void *user, const char *bytes, size_t length);
/* Gives the next line to learn from: 1, or 0 at the end. The bytes stay until the next call. */
typedef int (*cpl_spm_next)(void *user, const char **line, size_t *length);

cpl_spm *cpl_spm_load(const char *model, size_t length, char why[CPL_SPM_WHY]);
void cpl_spm_free(cpl_spm *s); /* NULL is fine */
int cpl_spm_size(const cpl_spm *s);
const char *cpl_spm_piece(const cpl_spm *s, int id, size_t *length);
cpl_spm_specials cpl_spm_special_ids(const cpl_spm *s);

/* Calls take for each piece of the text. */
int cpl_spm_encode(const cpl_spm *s, const char *text, size_t length, cpl_spm_take take, void *user,
                   char why[CPL_SPM_WHY]);
/* Calls take once with the text of count pieces. */
int cpl_spm_decode(const cpl_spm *s, const char *const *pieces, const size_t *lengths, size_t count,
                   cpl_spm_take take, void *user, char why[CPL_SPM_WHY]);

/* Learns at most `size` pieces, the four special ones included, and calls take once with the model. kind: "bpe" or
 * "unigram". */
int cpl_spm_train(const char *kind, int size, cpl_spm_next next, void *lines, cpl_spm_take take, void *user,
                  char why[CPL_SPM_WHY]);

#ifdef __cplusplus
}
#endif

#endif
