/* metric.h: how good outputs are. Figures that another program also prints agree with it to 1e-9.
 *
 *   cpl_metric *m;
 *   CPL_TRY(cpl_metric_new(&m, CPL_BLEU_13A, err), err, "cannot score");
 *   for each line: CPL_TRY(cpl_metric_add(m, output, references, count, err), err, "line %zu", line);
 *   double bleu = cpl_metric_bleu(m, NULL);
 *   char text[CPL_SIGNATURE_SIZE]; cpl_metric_signature(m, text, sizeof text);
 *   cpl_metric_free(m);
 *
 * Lines are text as a person reads it (detokenised): BLEU splits them with its own rules, exact match compares
 * bytes. Token accuracy and the loss are counted by the engine, not here. One cpl_metric for one thread;
 * parts counted by several are joined with cpl_metric_merge. chrF is in chrf.h, ROUGE in rouge.h, token errors in
 * token_error.h, repetition and copying in repetition.h; scorer.h has them all by name. */
#ifndef CPL_METRIC_METRIC_H
#define CPL_METRIC_METRIC_H

#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "couplet.h"

enum { CPL_BLEU_ORDER = 4, CPL_SIGNATURE_SIZE = 192 };

/* How BLEU splits a line; the names are sacreBLEU's. none: at white space only. intl: punctuation and symbols of every
 * script stand alone (mteval-v14), which needs the Unicode tables. */
typedef enum cpl_bleu_split {
    CPL_BLEU_13A,
    CPL_BLEU_NONE,
    CPL_BLEU_CHAR,
    CPL_BLEU_INTL,
    CPL_BLEU_SPLITS /* how many there are */
} cpl_bleu_split;

/* "13a", "none", "char", "intl" → *split. Anything else is CPL_USAGE with the names that exist; intl in a build without
 * the tables is CPL_FAILED. */
cpl_status cpl_bleu_split_named(cpl_bleu_split *split, const char *name, cpl_error *err);
const char *cpl_bleu_split_name(cpl_bleu_split split);

/* Appends line split by the rule: pieces with one space between them, no space at the ends. */
void cpl_bleu_split_line(cpl_bleu_split split, const char *line, size_t length, cpl_str *out);
/* Bytes of the white space character (Unicode's, as Python's str.split knows it) at text, 0 when there is none. */
size_t cpl_bleu_space(const char *text, size_t left);

/* Everything that the figures follow from, summed over lines. Plain numbers: may be added field by field. */
typedef struct cpl_metric_counts {
    uint64_t lines;
    uint64_t exact;                   /* lines whose output equals one of its references, byte for byte */
    uint64_t matches[CPL_BLEU_ORDER]; /* n-grams of outputs found in references (clipped), n = 1 … 4 */
    uint64_t totals[CPL_BLEU_ORDER];  /* n-grams of outputs */
    uint64_t output_length;           /* pieces */
    uint64_t reference_length;        /* pieces, of the reference whose length is nearest to the output's */
    uint64_t references_least;        /* the least and the most references that one line had */
    uint64_t references_most;
} cpl_metric_counts;

/* BLEU from its counts: exponential smoothing, no effective order. 0 … 100. */
typedef struct cpl_bleu_parts {
    double score;
    double precision[CPL_BLEU_ORDER]; /* 0 … 100, smoothed */
    double brevity_penalty;           /* 0 … 1 */
} cpl_bleu_parts;
cpl_bleu_parts cpl_bleu_from_counts(const cpl_metric_counts *counts);

/* A piece of text; need not end with NUL. */
typedef struct cpl_metric_text {
    const char *text;
    size_t length;
} cpl_metric_text;

/* 1 when the output equals one of its n references, byte for byte. */
int cpl_exact_match(cpl_metric_text output, const cpl_metric_text *references, size_t n);

typedef struct cpl_metric cpl_metric;
cpl_status cpl_metric_new(cpl_metric **m, cpl_bleu_split split, cpl_error *err);
void cpl_metric_free(cpl_metric *m); /* NULL is fine */
void cpl_metric_clear(cpl_metric *m);
/* One output against its n references (n ≥ 1; an empty reference is a reference). */
cpl_status cpl_metric_add(cpl_metric *m, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                          cpl_error *err);
void cpl_metric_merge(cpl_metric *m, const cpl_metric *other); /* both must split alike */
const cpl_metric_counts *cpl_metric_so_far(const cpl_metric *m);
double cpl_metric_bleu(const cpl_metric *m, cpl_bleu_parts *parts); /* 0 … 100; parts may be NULL */
double cpl_metric_exact(const cpl_metric *m);                       /* 0 … 1; 0 for no lines */
/* "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:couplet-0.1.0": sacreBLEU's form, with our own
 * version in place of its. nrefs is "var" when lines had different numbers. Returns buffer. */
char *cpl_metric_signature(const cpl_metric *m, char *buffer, size_t size);

/* e to the mean loss per token; infinite above about 709, NaN for NaN (write both as null in JSON, case G10). */
double cpl_perplexity(double mean_loss);

#endif
