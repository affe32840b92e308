/* rouge.h: ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum, equal to the Python package rouge-score to 1e-9.
 *
 *   cpl_rouge *r;
 *   CPL_TRY(cpl_rouge_new(&r, err), err, "cannot score");
 *   for each item: CPL_TRY(cpl_rouge_add(r, output, references, count, err), err, "item %zu", item);
 *   double rouge2 = cpl_rouge_score(r, CPL_ROUGE_2);
 *   cpl_rouge_free(r);
 *
 * An item's score is the F-measure against the reference that gives the largest one, for each kind on its own; the
 * result is the mean over items, 0 … 100. Words are rouge-score's default without stemmer: lower case, and every run
 * of characters other than a-z and 0-9 separates. That suits English: an accented letter separates too ("café au" is
 * the words caf, au), and text in another script has no words at all and scores 0. For other languages, and to count
 * punctuation, words may be BLEU's pieces of the lower-cased text (cpl_rouge_split), as rouge-score with a tokenizer
 * of its caller's. */
#ifndef CPL_METRIC_ROUGE_H
#define CPL_METRIC_ROUGE_H

#include "metric/metric.h"

/* ROUGE-L takes a text as one sequence; ROUGE-Lsum compares its sentences, which end at newlines, so for texts of a
 * single line the two are equal. */
enum { CPL_ROUGE_1, CPL_ROUGE_2, CPL_ROUGE_L, CPL_ROUGE_LSUM, CPL_ROUGE_KINDS };

const char *cpl_rouge_name(int kind); /* "rouge1", "rouge2", "rougeL", "rougeLsum" */

/* One for one thread; parts counted by several are joined with cpl_rouge_merge. */
typedef struct cpl_rouge cpl_rouge;
cpl_status cpl_rouge_new(cpl_rouge **r, cpl_error *err);
void cpl_rouge_free(cpl_rouge *r); /* NULL is fine */
/* Before the first item: words are BLEU's pieces of the text in lower case (Unicode's; it is composed, too). CPL_FAILED
 * in a build without utf8proc. */
cpl_status cpl_rouge_split(cpl_rouge *r, cpl_bleu_split split, cpl_error *err);
void cpl_rouge_clear(cpl_rouge *r);
/* One output against its n references (n ≥ 1). Work: words of the output × words of the references. */
cpl_status cpl_rouge_add(cpl_rouge *r, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                         cpl_error *err);
void cpl_rouge_merge(cpl_rouge *r, const cpl_rouge *other);
double cpl_rouge_score(const cpl_rouge *r, int kind); /* 0 … 100; 0 for no items */
double cpl_rouge_last(const cpl_rouge *r, int kind);  /* of the item that was added last: 0 … 1 */
/* "nrefs:1|case:lower|tok:a-z0-9|stem:no|measure:f1|average:mean|version:couplet-0.1.0"; tok may be the name of BLEU's
 * rule; ROUGE-Lsum has "sent:newline" too. nrefs is "var" when items had different numbers. buffer has
 * CPL_SIGNATURE_SIZE bytes; returns it. */
char *cpl_rouge_signature(const cpl_rouge *r, int kind, char *buffer, size_t size);

#endif
