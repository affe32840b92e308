/* encode.h: pairs of text to rows of provisional ids; between encode.c, share.c, ids.c and dataset.c.
 *
 * A vocabulary can be built only when training and validation are apart, and they part by what the text rules make of
 * a source. So each text is standardised and split once, every new token gets the next provisional id of its side
 * (CPL_ID_WORDS + its number in `types`), and ids.c translates all ids in place when the vocabulary is there.
 *
 * Subwords are cut by a model that training pairs alone may teach. So a side of them is cut at white space first,
 * which is enough to tell equal sources, and all pairs that were kept are encoded again when the model is there
 * (subwords.c). Lengths are judged then, for both sides: a limit counts the tokens that the model sees. */
#ifndef CPL_DATA_ENCODE_H
#define CPL_DATA_ENCODE_H

#include "base/map.h"
#include "data/data.h"

/* What a row came from: hashes of the source as it was read, of the source's ids, of the pair's ids. */
typedef struct cpl_row_key {
    uint64_t text, source, pair;
    size_t item; /* index in cpl_pairs */
} cpl_row_key;

typedef struct cpl_row_list {
    cpl_row *items;
    cpl_row_key *keys;
    size_t count, capacity, key_capacity;
} cpl_row_list;

typedef struct cpl_encode_side {
    cpl_text_rules rules;
    cpl_tokens kind;                  /* how this pass cuts: as the rules say, or at spaces until there are subwords */
    const cpl_vocabulary *vocabulary; /* whose model cuts subwords */
    int64_t limit; /* most tokens; 0: none */
    int cut;       /* 1: cut at the limit, 0: drop the pair */
    int64_t pad_to; /* of a source: what padding fills rows up to; 0: none */
    cpl_map *types;
    cpl_str text; /* the standardised line; the tokens point into it */
    cpl_token_list tokens;
    cpl_side_report *report;
} cpl_encode_side;

typedef struct cpl_encoder {
    cpl_encode_side source, target;
    int keep_emptied; /* 1: pairs of which the rule left nothing stay */
    int no_limits;    /* 1: lengths are judged in a later pass */
    int copy;         /* 1: behind each pair's ids is room for as many extended ids */
    cpl_data_report *report;
    int32_t *ids;
    size_t count, capacity;
} cpl_encoder;

/* What exists only while a data set is made. */
typedef struct cpl_maker {
    cpl_dataset *d;
    const cpl_dataset_options *options;
    cpl_encoder encoder;
    cpl_pairs *train_text, *valid_text; /* the same when validation is a share */
    cpl_row_list train, valid;
    const double *weights; /* of the files; NULL: all 1 */
} cpl_maker;

/* Appends the pairs' rows to the list. file: what is added to a pair's file number. */
cpl_status cpl_encode_pairs(cpl_encoder *e, const cpl_pairs *pairs, uint32_t file, cpl_row_list *list, cpl_error *err);
/* One of them, file number included; item: its index in cpl_pairs. */
cpl_status cpl_encode_pair(cpl_encoder *e, const cpl_pair *pair, size_t item, cpl_row_list *list, cpl_error *err);
void cpl_encoder_free(cpl_encoder *e);
void cpl_row_list_free(cpl_row_list *list);

/* Marks (valid[i] = 1) about share · count rows so that no source of a marked row is in an unmarked one: at least one
 * row and never all. Which ones depends on the seed and the texts, not on their order. */
cpl_status cpl_share_choose(const cpl_row_list *list, double share, uint64_t seed, uint8_t *valid, cpl_error *err);
/* Counts the validation rows that are training rows too, or share a training row's source. */
cpl_status cpl_share_overlap(const cpl_row_list *train, const cpl_row_list *valid, cpl_data_report *report,
                             cpl_error *err);

/* Where a side has subwords: learns the models that are not given, and encodes all rows again. */
cpl_status cpl_maker_subwords(cpl_maker *m, cpl_error *err);
/* Builds the vocabularies that are not given, and counts what the training pairs hold. */
cpl_status cpl_maker_vocabularies(cpl_maker *m, cpl_error *err);
/* Writes the extended ids, where the encoder left room for them (copy.c); before the translation. */
cpl_status cpl_maker_copy(cpl_maker *m, cpl_error *err);
/* Turns all provisional ids into the vocabularies' and counts what is unknown. */
cpl_status cpl_maker_translate(cpl_maker *m, cpl_error *err);

#endif
