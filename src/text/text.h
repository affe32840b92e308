/* text.h: from a line of text to ids and back. Knows no tensor.
 *
 *   line --standardize--> text --split--> tokens --vocabulary--> ids        (cpl_codec_encode)
 *   ids --vocabulary--> tokens --join--> line                               (cpl_codec_decode)
 *
 * START and END are never produced by text (case E12): they are added by the data room. Ids 0–3 are padding '',
 * [UNK], [START], [END]; words follow by frequency, ties in reverse byte order. The rules (kind of tokens,
 * standardisation) travel with the vocabulary in the model file. */
#ifndef CPL_TEXT_TEXT_H
#define CPL_TEXT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "base/json.h"
#include "base/str.h"
#include "couplet.h"

enum { CPL_ID_PADDING = 0, CPL_ID_UNKNOWN = 1, CPL_ID_START = 2, CPL_ID_END = 3, CPL_ID_WORDS = 4 };

typedef enum cpl_tokens {
    CPL_TOKENS_SPACE,
    CPL_TOKENS_WORD,
    CPL_TOKENS_CHAR,
    CPL_TOKENS_BYTE,
    CPL_TOKENS_BPE, /* subwords: cut by a SentencePiece model, which the vocabulary holds */
    CPL_TOKENS_UNIGRAM
} cpl_tokens;
typedef enum cpl_standardize {
    CPL_STANDARDIZE_NONE,
    CPL_STANDARDIZE_NFC,
    CPL_STANDARDIZE_NFKC,
    CPL_STANDARDIZE_NFKC_LOWER,
    CPL_STANDARDIZE_TUTORIAL
} cpl_standardize;

typedef struct cpl_text_rules {
    cpl_tokens tokens;
    cpl_standardize standardize;
} cpl_text_rules;

/* The names that the configuration and the model file use ("word", "nfkc_lower"). */
const char *cpl_tokens_name(cpl_tokens kind);
const char *cpl_standardize_name(cpl_standardize rule);
/* The reverse; an unknown name is an error that gives the nearest known one. */
cpl_status cpl_text_rules_parse(cpl_text_rules *rules, const char *tokens, const char *standardize, cpl_error *err);

/* ---- utf8.c (bytes), standardize.c (the rules), unicode.c (the only file that knows utf8proc) ---- */

/* The number of bytes of the well-formed UTF-8 prefix of text (surrogates, overlong forms and > U+10FFFF are not):
 * == length when all is valid; otherwise the offset of the first bad byte. Needs no library. */
size_t cpl_utf8_valid(const char *text, size_t length);
/* Appends the standardised form. *deleted (may be NULL) grows by the characters that the rule removed and *kept (may be
 * NULL) by those it left; see standardize.c for what counts. Text that is not UTF-8 is an error with the offset. */
cpl_status cpl_standardize_text(cpl_standardize rule, const char *text, size_t length, cpl_str *out, uint64_t *deleted,
                                uint64_t *kept, cpl_error *err);

/* Appends the lower case (and NFC) of well-formed text; of ASCII letters alone in a build without Unicode tables. */
cpl_status cpl_lower_text(const char *text, size_t length, cpl_str *out, cpl_error *err);

/* ---- split.c / join.c ---- */

/* A token: a piece of the standardised text. */
typedef struct cpl_token {
    const char *text;
    size_t length;
} cpl_token;

typedef struct cpl_token_list {
    cpl_token *items;
    size_t count;
    size_t capacity;
    cpl_str bytes; /* where a token that is not a slice of the text lives */
} cpl_token_list;

/* Splits already standardised text (subwords: see cpl_vocabulary_split); the tokens point into text or into
 * list->bytes and live as long as both. list is reused from call to call (zero-initialise once; cpl_token_list_free at
 * the end). */
cpl_status cpl_split(cpl_tokens kind, const char *text, size_t length, cpl_token_list *list, cpl_error *err);
void cpl_token_list_free(cpl_token_list *list);
/* Appends the tokens joined as the rule can undo the split (word: punctuation back in its place; char and byte:
 * together; space: one space). char and byte give the text back byte for byte; word and space with runs of white space
 * as one space, trimmed. */
void cpl_join(cpl_tokens kind, const cpl_token *tokens, size_t n, cpl_str *out);

/* bytes.c: each byte of the text as a token, and back: bytes that are not UTF-8, and line feeds, become U+FFFD. */
int cpl_split_bytes(const char *text, size_t length, cpl_token_list *list);
void cpl_join_bytes(const cpl_token *tokens, size_t n, cpl_str *out);
/* The token of a byte: itself for a visible ASCII character, otherwise such as "<0x20>". */
cpl_token cpl_byte_token(unsigned char byte);

/* ---- vocabulary.c ---- */

typedef struct cpl_vocabulary cpl_vocabulary; /* immutable once built; safe to share between threads */
typedef struct cpl_vocabulary_counter cpl_vocabulary_counter;

cpl_vocabulary_counter *cpl_counter_new(void);
void cpl_counter_free(cpl_vocabulary_counter *c);
cpl_status cpl_counter_add(cpl_vocabulary_counter *c, const cpl_token *tokens, size_t n, cpl_error *err);
/* What has been counted: enough to see text without spaces (about one token a line, most of them singletons: E14). */
typedef struct cpl_token_statistics {
    uint64_t tokens;     /* all occurrences, those that spell a special included */
    uint64_t characters; /* code points in them */
    uint64_t specials;   /* occurrences that spell a special: text, hence unknown (E12) */
    uint64_t types;      /* different tokens */
    uint64_t singletons; /* types seen once */
} cpl_token_statistics;
cpl_token_statistics cpl_counter_statistics(const cpl_vocabulary_counter *c);
/* The occurrences that the vocabulary knows: the rest of statistics.tokens is unknown. *types (may be NULL): how many
 * different tokens they are. */
uint64_t cpl_counter_known(const cpl_vocabulary_counter *c, const cpl_vocabulary *v, uint64_t *types);
/* 1: the bytes spell one of the four special entries. */
int cpl_token_is_special(const char *token, size_t length);
/* The vocabulary of the kind byte, always the same: id 4 + b is byte b. */
cpl_status cpl_vocabulary_of_bytes(cpl_vocabulary **v, cpl_error *err);
/* size counts everything, the four special entries included (at least 5, or 4 for an empty corpus); 0: no limit.
 * min_count: rarer tokens are left out. A token that spells a special ('', [UNK], [START], [END]) never enters. */
cpl_status cpl_vocabulary_build(cpl_vocabulary **v, const cpl_vocabulary_counter *c, int64_t size, int64_t min_count,
                                cpl_error *err);
void cpl_vocabulary_free(cpl_vocabulary *v);
int64_t cpl_vocabulary_size(const cpl_vocabulary *v);
/* The id, CPL_ID_UNKNOWN for what is not there and for text that spells a special. */
int32_t cpl_vocabulary_id(const cpl_vocabulary *v, const char *token, size_t length);
/* The token's bytes (ids 0–3: "", "[UNK]", "[START]", "[END]"); NULL when id is out of range. */
const char *cpl_vocabulary_token(const cpl_vocabulary *v, int64_t id, size_t *length);
/* The first id whose tokens differ; the smaller size where one list only goes on behind the other, or where both are
 * equal. */
int64_t cpl_vocabulary_first_difference(const cpl_vocabulary *a, const cpl_vocabulary *b);
uint64_t cpl_vocabulary_checksum(const cpl_vocabulary *v); /* of its content and order */
size_t cpl_vocabulary_bytes(const cpl_vocabulary *v);      /* memory held */
/* An array of strings, specials included; of subwords an object that holds the SentencePiece model. */
cpl_json *cpl_vocabulary_to_json(const cpl_vocabulary *v);
cpl_status cpl_vocabulary_from_json(cpl_vocabulary **v, const cpl_json *array, cpl_error *err);

/* ---- subwords.c: vocabularies whose entries are the pieces of a SentencePiece model ---- */

/* 1: kind is bpe or unigram, and text can only be cut with the vocabulary. */
int cpl_tokens_are_subwords(cpl_tokens kind);
/* 0: this build has no SentencePiece, and all that needs a model is an error (CPL_USAGE). */
int cpl_subwords_available(void);
/* The lines to learn from, standardised, one a call: 1, or 0 at the end; asked for more than once, from the start
 * after each end. A line stays until the next call. */
typedef struct cpl_subword_lines {
    int (*next)(void *user, const char **line, size_t *length);
    void *user;
} cpl_subword_lines;
/* Learns at most `size` entries, the special ones included. A character that occurs less than min_count times is left
 * out, so unknown. The same lines give the same model. */
cpl_status cpl_vocabulary_learn(cpl_vocabulary **v, cpl_tokens kind, const cpl_subword_lines *lines, int64_t size,
                                int64_t min_count, cpl_error *err);
/* From the bytes of a SentencePiece model, whatever its special ids: they become Couplet's 0–3, and the other pieces
 * follow in their order. name is for errors. */
cpl_status cpl_vocabulary_from_model(cpl_vocabulary **v, const char *model, size_t length, const char *name,
                                     cpl_error *err);
/* The bytes of its model; NULL: it has none. */
const char *cpl_vocabulary_model(const cpl_vocabulary *v, size_t *length);
/* 1: bytes that begin as those of a SentencePiece model do. */
int cpl_is_subword_model(const char *bytes, size_t length);
/* Whether text of this kind can be cut with the vocabulary: CPL_USAGE where one has a model and the other needs none,
 * or the model is of the other kind. */
cpl_status cpl_vocabulary_check_kind(const cpl_vocabulary *v, cpl_tokens kind, cpl_error *err);
/* As cpl_split and cpl_join, for every kind. v may be NULL for kinds that are no subwords. */
cpl_status cpl_vocabulary_split(const cpl_vocabulary *v, cpl_tokens kind, const char *text, size_t length,
                                cpl_token_list *list, cpl_error *err);
void cpl_vocabulary_join(const cpl_vocabulary *v, cpl_tokens kind, const cpl_token *tokens, size_t n, cpl_str *out);

/* vocabulary_file.c: one token a line, or token TAB count; the line's number less one is the id, and nothing is
 * stripped. Lines 1 to 4: the padding entry (empty, as Keras's get_vocabulary() has it, or [PAD]), [UNK], [START],
 * [END]. All that is wrong is told at once (CPL_USAGE), with line and content. kind: what a token may look like
 * (a space is one of the kind `char` alone). Of subwords the file is a SentencePiece model. */
cpl_status cpl_vocabulary_read(cpl_vocabulary **v, const char *path, cpl_tokens kind, cpl_error *err);
cpl_status cpl_vocabulary_write(const cpl_vocabulary *v, const char *path, cpl_error *err); /* atomic */

/* ---- codec.c: rules + vocabulary, with scratch of its own: one codec for one thread ---- */

typedef struct cpl_codec cpl_codec;
/* v must outlive the codec, and fit the kind of tokens (cpl_vocabulary_check_kind). */
cpl_status cpl_codec_new(cpl_codec **codec, cpl_text_rules rules, const cpl_vocabulary *v, cpl_error *err);
void cpl_codec_free(cpl_codec *c);
/* *ids (cpl_grow'n array of *capacity) receives *count ids, without START and END; *unknown (may be NULL) is set to
 * how many are [UNK]. Free *ids with cpl_release. */
cpl_status cpl_codec_encode(cpl_codec *c, const char *line, size_t length, int32_t **ids, size_t *capacity,
                            size_t *count, size_t *unknown, cpl_error *err);
/* The tokens that the last cpl_codec_encode saw (for showing what the model reads, and for scoring). */
const cpl_token *cpl_codec_tokens(const cpl_codec *c, size_t *count);
/* Appends tokens joined as the codec's rules undo the split. */
void cpl_codec_join(const cpl_codec *c, const cpl_token *tokens, size_t n, cpl_str *out);
/* Appends the line for ids; stops at END; padding and START are skipped; tokens != 0: tokens joined by one space
 * instead (word: with their joiners). An unknown or foreign id shows as [UNK]. */
void cpl_codec_decode(const cpl_codec *c, const int32_t *ids, size_t n, int tokens, cpl_str *out);
/* The same with words behind the vocabulary: its size + k is items[k]. */
typedef struct cpl_more_words {
    const cpl_token *items;
    size_t count;
} cpl_more_words;
void cpl_codec_decode_more(const cpl_codec *c, const int32_t *ids, size_t n, cpl_more_words more, int tokens,
                           cpl_str *out);
/* One id of either kind; [UNK] for one that neither has. */
cpl_token cpl_word_of(const cpl_vocabulary *v, cpl_more_words more, int64_t id);

#endif
