/* shortlist.h: which target entries a batch of lines may choose: the most frequent ones, and what a lexicon gives for
 * the lines' own words. */
#ifndef CPL_API_SHORTLIST_H
#define CPL_API_SHORTLIST_H

#include "api/model.h"

/* Gets the model ready for the options: a decoder with short lists, and the lexicon when it is another one. */
cpl_status cpl_shortlist_open(cpl_model *m, const cpl_generate_options *o, cpl_error *err);
/* Begins a batch; then what the line that was encoded last may choose, for each row in turn. */
void cpl_shortlist_clear(cpl_model *m);
cpl_status cpl_shortlist_add(cpl_model *m, cpl_error *err);
/* The batch's list, after its rules are known. Valid until the next batch. */
cpl_status cpl_shortlist_finish(cpl_model *m, const cpl_generate_options *o, cpl_decode_batch *b, cpl_error *err);
/* What decodes such a batch. */
cpl_decoder *cpl_shortlist_decoder(const cpl_model *m);
void cpl_shortlist_close(struct cpl_shortlist *s); /* NULL is fine */

#endif
