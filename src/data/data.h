/* data.h: from files of pairs to batches of ids.
 *
 *   files --cpl_pairs_read--> pairs of text --cpl_dataset_new--> rows of ids --cpl_batcher_next--> batches
 *   a stream of single lines (generate) --cpl_lines_read--> as many as are there now
 *
 * Everything wrong with the data is found here, before the first step, and named by file and line. What is skipped
 * is counted, and the counts add up. Lengths are explicit everywhere: a NUL is a byte like any other (E15). */
#ifndef CPL_DATA_DATA_H
#define CPL_DATA_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/str.h"
#include "config/config.h"
#include "couplet.h"
#include "text/text.h"

/* ---- reader.c, scan.c: pairs of text ---- */

typedef struct cpl_slice {
    const char *text;
    size_t length;
} cpl_slice;

/* file counts in cpl_pairs.files, line from 1. The text lives as long as the cpl_pairs. */
typedef struct cpl_pair {
    cpl_slice source, target;
    uint32_t file, line;
} cpl_pair;

/* lines == pairs + blank + empty_source + empty_target + empty_both, unless keep_empty put those among the pairs. */
typedef struct cpl_line_counts {
    int64_t lines, pairs;
    int64_t blank;                                  /* nothing on the line (in both files) */
    int64_t empty_source, empty_target, empty_both; /* a side that is missing or only white space */
    int64_t marks;                                  /* byte-order marks removed anywhere but at a file's start */
} cpl_line_counts;

typedef struct cpl_pairs {
    cpl_pair *items;
    size_t count;
    char **files; /* how messages name them: "de-en.tsv" or "a.de + a.en", as the user wrote them */
    size_t file_count;
    cpl_line_counts counts;
    size_t capacity; /* from here on private */
    char **buffers;
    size_t buffer_count;
} cpl_pairs;

typedef struct cpl_pairs_options {
    int swap;           /* source and target change places; "source" then means the second column everywhere */
    int mirror;         /* 1: one column is enough, and is both sides; of two, the source's counts (autoencoder) */
    int keep_empty;     /* 1: lines with an empty side stay pairs (a score for every line), blank ones too */
    const cpl_log *log; /* of warnings; NULL: silent */
} cpl_pairs_options;

/* Reads all files of the list (TSV or two aligned files, .gz, "-"). Errors (CPL_USAGE) name file and lines: text that
 * is not UTF-8 (E03), a number of fields other than two (E04), aligned files of different length (E06). Only LF ends
 * a line (E05), a CR before it goes (E01), byte-order marks go wherever they are (E02). */
cpl_status cpl_pairs_read(cpl_pairs **pairs, const cpl_config_files *files, const cpl_pairs_options *options,
                          cpl_error *err);
void cpl_pairs_free(cpl_pairs *pairs); /* NULL is fine */

/* ---- source.c: the row of ids that an encoder reads of a line ---- */

/* With text.source.pad_to N a row is filled up to N ids with padding, which the model reads as ordinary tokens: it has
 * been trained so (model.encoder.mask false). 0 is no padding. A longer row stays as it is. */
size_t cpl_source_length(size_t words, int64_t pad_to);
/* The words' ids stand from row + 1 on; puts START before them, END and padding behind. Returns the length. */
size_t cpl_source_close(int32_t *row, size_t words, int64_t pad_to);
/* Padding behind `length` ids that are there. Returns the length then. */
size_t cpl_source_pad(int32_t *row, size_t length, int64_t pad_to);
/* The length of a row without its padding. */
int64_t cpl_source_real(const int32_t *row, int64_t length);

/* ---- dataset.c: pairs as ids ---- */

/* A pair's ids lie one after the other: source [START] words [END] and padding (source.c), then target [START] words
 * [END]. A target that was cut has no END. With n = target − 1: the decoder's input is the target row's first n ids,
 * its labels are the last n (C13).
 * Of a data set for a model that copies, the same number of extended ids follows: of the source row (its words' ids in
 * the target vocabulary, or that vocabulary's size + k for the k-th distinct word of the row that it lacks), then of
 * the target row (the same numbers; [UNK] only for what neither has). The decoder's input keeps its plain ids. */
typedef struct cpl_row {
    int64_t offset;         /* of the source row in ids; the target row follows it */
    int32_t source, target; /* lengths of the two rows, START, END and padding included */
    uint32_t file, line;
} cpl_row;

typedef struct cpl_rows {
    cpl_row *items;
    int64_t count;
    const int32_t *ids;
    int copy; /* 1: with extended ids */
    const double *weights; /* by file: how often a row stands in a pass, on average; NULL: once */
} cpl_rows;

/* Rows in a pass of training: with weights, of each file the same number in every pass. weights.c */
int64_t cpl_rows_in_pass(const cpl_rows *rows);

static inline const int32_t *cpl_row_source(const cpl_rows *rows, int64_t i)
{
    return rows->ids + rows->items[i].offset;
}

static inline const int32_t *cpl_row_target(const cpl_rows *rows, int64_t i)
{
    return rows->ids + rows->items[i].offset + rows->items[i].source;
}

/* The extended ids of both rows, one after the other. Only where rows->copy. */
static inline const int32_t *cpl_row_copy(const cpl_rows *rows, int64_t i)
{
    return cpl_row_target(rows, i) + rows->items[i].target;
}

/* What a file of word vectors gave a side's embedding (vectors.h). */
typedef struct cpl_vector_report {
    const char *from;     /* the file as the user wrote it; NULL: none was read */
    int64_t vectors;      /* in the file */
    int64_t exact, lower; /* entries found as they are, and only in lower case */
    int64_t repeated;     /* lines with a token of the vocabulary that an earlier line has */
    uint64_t tokens;      /* of the training pairs whose entry was found */
} cpl_vector_report;

/* Of one side. Tokens are counted as stored: without START and END, after cutting. */
typedef struct cpl_side_report {
    int64_t vocabulary;                /* entries, the four special ones included */
    const char *vocabulary_from;       /* the file or model that it is from; NULL: built from the training pairs */
    cpl_vector_report vectors;
    int64_t types, singletons;         /* different tokens in the training pairs, and those seen once */
    uint64_t letters;                  /* characters in the tokens of the training pairs */
    uint64_t tokens, unknown;          /* of the training pairs */
    uint64_t valid_tokens, valid_unknown;
    uint64_t characters, deleted;      /* read, and removed by the text rule (both splits) */
    uint64_t specials;                 /* tokens of both splits that spell a special entry: they are text (E12) */
    int64_t too_long, cut;             /* pairs dropped for this side's length (the source's first), texts cut */
    int64_t longest, valid_longest;    /* tokens */
    int64_t pad_to, over_pad_to;       /* what rows are filled up to (0: nothing), and rows that are longer than that */
    uint32_t longest_file, longest_line;
} cpl_side_report;

typedef struct cpl_data_report {
    cpl_line_counts lines, valid_lines; /* of the training files; of the validation files, if there are any */
    int64_t train, valid;               /* pairs that are used */
    int64_t emptied;                    /* pairs dropped because the text rule left nothing of a side */
    int64_t too_long;                   /* pairs dropped for their length */
    int64_t duplicates;                 /* validation pairs that are training pairs too */
    int64_t shared_sources;             /* validation pairs whose source is in the training pairs */
    cpl_side_report source, target;
    int64_t in_pass;                    /* training pairs in a pass, by the weights of their files */
    uint64_t bytes;                     /* that the data set holds: cpl_dataset_bytes */
} cpl_data_report;

typedef struct cpl_dataset {
    cpl_rows train, valid;
    const cpl_vocabulary *source, *target;
    cpl_text_rules source_rules, target_rules;
    cpl_pair *texts; /* the first text_count pairs of valid as they were read; row i of valid is texts[i] */
    int64_t text_count;
    cpl_data_report report;
    uint64_t checksum; /* of all ids, their order and the vocabularies: what a resumed run compares */
    char **files;      /* names for cpl_row.file */
    size_t file_count;
    int32_t *ids;      /* from here on private */
    size_t ids_count;
    cpl_vocabulary *own_source, *own_target;
    cpl_arena *arena;  /* texts and names */
} cpl_dataset;

typedef struct cpl_dataset_options {
    const cpl_config *config; /* text rules and limits, swap, seed, data.train, data.valid */
    /* A given vocabulary is used and borrowed (resume, evaluate); NULL: built from the training pairs. */
    const cpl_vocabulary *source, *target;
    const char *source_from, *target_from; /* for the report, where they are from: outlive the data set; or NULL */
    /* NULL: train and valid as the configuration says. Otherwise these pairs alone become `valid`, in order, without
     * limits of length (evaluate); both vocabularies must be given. */
    const cpl_config_files *pairs;
    int64_t texts; /* validation pairs whose text is kept; −1: all */
    int copy;      /* 1: with extended ids, for a model that copies */
    int keep_empty; /* 1: a row for every line, also where a side is empty; with `pairs` only */
    const cpl_log *log;
} cpl_dataset_options;

/* Reads, splits, builds vocabularies and encodes. The raw text is gone afterwards, but for `texts` pairs. */
cpl_status cpl_dataset_new(cpl_dataset **d, const cpl_dataset_options *options, cpl_error *err);
void cpl_dataset_free(cpl_dataset *d); /* NULL is fine */
/* Memory held, own vocabularies included. */
uint64_t cpl_dataset_bytes(const cpl_dataset *d);
/* "'de-en.tsv' line 60" into buffer; returns buffer. */
const char *cpl_dataset_place(const cpl_dataset *d, uint32_t file, uint32_t line, char *buffer, size_t size);

/* Checks every id of both splits against the sizes of the embeddings (A03); before step 1. */
cpl_status cpl_dataset_check_ids(const cpl_dataset *d, int64_t source_size, int64_t target_size, cpl_error *err);
/* The same for any rows: 0 ≤ id < size. layer names what looks the ids up; rows and columns count from 0. */
cpl_status cpl_check_ids(const char *layer, const int32_t *const *rows, const int64_t *lengths, int64_t count,
                         int64_t size, cpl_error *err);

/* ---- copy.c: what can be copied from single lines ---- */

/* Extended ids of source lines, [START] words [END], one line after the other, and the words that the target vocabulary
 * lacks, line after line: of a line that was added when there were `first` words, the vocabulary's size + k is
 * words[first + k]. Zero-initialise. */
typedef struct cpl_copy_lines {
    int32_t *ids;
    size_t count;
    cpl_token *words;
    size_t word_count;
    size_t capacity, word_capacity; /* from here on private */
    cpl_arena *arena;               /* the words' bytes */
} cpl_copy_lines;

/* Adds a line's tokens, as the source's text rules leave them. */
cpl_status cpl_copy_add(cpl_copy_lines *c, const cpl_vocabulary *target, const cpl_token *tokens, size_t n,
                        cpl_error *err);
void cpl_copy_clear(cpl_copy_lines *c); /* keeps the memory of the ids */
void cpl_copy_free(cpl_copy_lines *c);

/* ---- noise.c ---- */

/* Writes a source row with noise into `to`, which has room for length ids, and returns how many they are. A pure
 * function of seed, pass and pair; START and END stay. */
int64_t cpl_noise_row(const cpl_config_noise *n, uint64_t seed, int64_t pass, int64_t pair, const int32_t *row,
                      int64_t length, int32_t *to);

/* ---- report.c ---- */

/* Appends the data report as lines of text, three pairs as the model sees them at the end. */
void cpl_dataset_describe(const cpl_dataset *d, cpl_str *to);
/* The same figures as an object (the start event of log.jsonl, plan --json). NULL without memory. */
cpl_json *cpl_dataset_report_json(const cpl_dataset *d);
/* Warnings that the figures call for: unknown and deleted share, special strings (E12), no spaces (E14) … */
void cpl_dataset_warn(const cpl_dataset *d, const cpl_log *log);

/* ---- batcher.c, order.c: batches ---- */

/* Rows and lengths in the form that cpl_feed_ids takes. Valid until the batcher's next call. */
typedef struct cpl_batch {
    int64_t pairs;
    const int32_t *const *source, *const *target_in, *const *target_out;
    const int32_t *const *copy; /* extended ids of the source, NULL without; target_out then has extended labels */
    const int64_t *source_length, *target_length; /* target_length: of target_in and target_out alike */
    int64_t source_tokens, target_tokens;         /* sums of the lengths: all that is computed */
    const int64_t *pair;                          /* index in cpl_rows */
    int64_t pass, index;                          /* which pass over the data, which batch of it */
} cpl_batch;

typedef struct cpl_batcher_options {
    int64_t batch_size;
    int64_t batch_tokens; /* not 0: a batch has pairs of like length, of at most so many target tokens, END included;
                           * a pair of more is a batch of its own. Then batch_size is not read */
    int shuffle;          /* 1: training; 0: validation, the same batches in every pass */
    uint64_t seed;        /* of the shuffle: the order is a pure function of (seed, pass) */
    int64_t most_batches; /* not 0: a pass has only the rows of the first most_batches batches (validation_steps) */
    int no_thread;        /* 1: the next pass is prepared when it begins instead of ahead (same batches) */
} cpl_batcher_options;

typedef struct cpl_batcher cpl_batcher;

/* rows must outlive the batcher and must not be empty. */
cpl_status cpl_batcher_new(cpl_batcher **b, const cpl_rows *rows, const cpl_batcher_options *options, cpl_error *err);
void cpl_batcher_free(cpl_batcher *b); /* NULL is fine */
/* The next batch. There is no end: after the last batch of a pass the next pass begins (G04), every row once in each.
 * Never allocates, never fails. All batches of batch_size are full but the last of a pass, which has what is left
 * (G11). */
const cpl_batch *cpl_batcher_next(cpl_batcher *b);
int64_t cpl_batcher_batches(const cpl_batcher *b); /* in a pass */
/* Position of the batch that cpl_batcher_next gives next; a resumed run goes on from there. index may be the number
 * of batches: the next pass begins. Out of range is CPL_FAILED. Validation: seek(b, 0, 0) starts over. */
void cpl_batcher_position(const cpl_batcher *b, int64_t *pass, int64_t *index);
cpl_status cpl_batcher_seek(cpl_batcher *b, int64_t pass, int64_t index, cpl_error *err);
uint64_t cpl_batcher_bytes(const cpl_batcher *b); /* memory held */
/* For measuring: the batcher's own thread tells of each pass that it has prepared, from … to in cpl_clock_ns. NULL: no
 * longer; once that returns, it tells no more. */
typedef void (*cpl_batcher_watcher)(void *user, int64_t pass, int64_t from, int64_t to);
void cpl_batcher_watch(cpl_batcher *b, cpl_batcher_watcher watcher, void *user);

/* Upper bounds for every batch of every pass; the memory plan is made for them. */
typedef struct cpl_batch_capacity {
    int64_t pairs;
    int64_t source_tokens, longest_source;
    int64_t target_tokens, longest_target; /* of target_in */
    int64_t products;                      /* Σ source length · target length: cells of attention */
    int64_t largest;                       /* row with the largest product: what an error about memory names */
} cpl_batch_capacity;

/* most_batches as in cpl_batcher_options. No rows: all 0. */
cpl_status cpl_rows_capacity(const cpl_rows *rows, int64_t batch_size, int64_t most_batches, cpl_batch_capacity *c,
                             cpl_error *err);
/* The same for batches of batch_tokens: exact, since what batches hold is the same in every pass. */
const cpl_batch_capacity *cpl_batcher_capacity(const cpl_batcher *b);

/* ---- lines.c: lines of a stream ---- */

typedef struct cpl_line {
    const char *text;
    size_t length;
    int64_t number; /* from 1 */
} cpl_line;

typedef struct cpl_lines cpl_lines;

/* path "-": standard input; .gz is decompressed. */
cpl_status cpl_lines_open(cpl_lines **l, const char *path, cpl_error *err);
cpl_status cpl_lines_open_fd(cpl_lines **l, int fd, cpl_error *err); /* fd stays the caller's */
void cpl_lines_close(cpl_lines *l); /* NULL is fine */
/* Waits until there is a line, then gives what is there without waiting, at most `most` lines: answer them all before
 * the next call and no answer is ever owed while waiting. *count 0: the end. Blank lines count; the last line needs no
 * LF. Valid until the next call. A stream goes on whatever comes: bytes that are not UTF-8 become U+FFFD. */
cpl_status cpl_lines_read(cpl_lines *l, size_t most, const cpl_line **lines, size_t *count, cpl_error *err);
/* How many U+FFFD were put in, and the first line that got one (0: none): for a warning. */
int64_t cpl_lines_replaced(const cpl_lines *l, int64_t *first_line);

#endif
