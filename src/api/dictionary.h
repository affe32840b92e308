/* dictionary.h: what words of the source become: a file of lines "source<tab>target", or with a probability behind a
 * second tab. Both sides pass the text rules that they are given; a blank line counts nothing.
 *
 *   cpl_dictionary *d = NULL;
 *   CPL_TRY(cpl_dictionary_use(&d, path, &config->text, err), err, "cannot read the dictionary");
 *   const cpl_translation *t = cpl_dictionary_find(d, word, length);       NULL: it is not there
 *   cpl_dictionary_free(d); */
#ifndef CPL_API_DICTIONARY_H
#define CPL_API_DICTIONARY_H

#include "config/config.h"
#include "text/text.h"

typedef struct cpl_dictionary cpl_dictionary;

/* A list for each source word, the most probable first; of equals, and without probabilities, the first in the file. */
typedef struct cpl_translation {
    const char *text;
    size_t length;
    double probability; /* 1 where the line has none */
    struct cpl_translation *next;
} cpl_translation;

/* Leaves the file's in *d, which may hold it from a call before: then it is not read again. NULL without a path, and on
 * failure. A line without a tab, with an empty side or a probability that is none is CPL_USAGE with its number. */
cpl_status cpl_dictionary_use(cpl_dictionary **d, const char *path, const cpl_config_text *rules, cpl_error *err);
void cpl_dictionary_free(cpl_dictionary *d); /* NULL is fine */
const cpl_translation *cpl_dictionary_find(const cpl_dictionary *d, const char *word, size_t length);

#endif
