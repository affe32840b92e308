/* entries.h: what a vocabulary is made of, between vocabulary.c and subwords.c. */
#ifndef CPL_TEXT_ENTRIES_H
#define CPL_TEXT_ENTRIES_H

#include "base/map.h"
#include "text/text.h"

/* A SentencePiece model with the bytes it was read from. */
typedef struct cpl_subwords cpl_subwords;

struct cpl_vocabulary {
    cpl_map *ids;
    cpl_subwords *subwords; /* NULL: a list of tokens alone */
};

/* A vocabulary of the special entries alone. */
cpl_status cpl_vocabulary_bare(cpl_vocabulary **v, cpl_error *err);
/* Gives the token the next id; one that is there already is an error. */
cpl_status cpl_vocabulary_append(cpl_vocabulary *v, const char *token, size_t length, cpl_error *err);

/* ---- subwords.c ---- */
void cpl_subwords_free(cpl_subwords *s); /* NULL is fine */
const char *cpl_subwords_model(const cpl_subwords *s, size_t *length);
cpl_json *cpl_subwords_to_json(const cpl_subwords *s);
cpl_status cpl_subwords_from_json(cpl_vocabulary **v, const cpl_json *object, cpl_error *err);

#endif
