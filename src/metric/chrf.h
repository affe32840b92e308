/* chrf.h: chrF (Popović 2015) and chrF++ (2017), equal to sacreBLEU's to 1e-9.
 *
 *   cpl_chrf *c;
 *   CPL_TRY(cpl_chrf_new(&c, 0, err), err, "cannot score");
 *   for each line: double row[CPL_CHRF_WIDTH]; CPL_TRY(cpl_chrf_count(c, output, references, n, row, err), err, "…");
 *   sums of the rows … double chrf = cpl_chrf_score(sums, 0);
 *   cpl_chrf_free(c);
 *
 * Characters are code points without white space, n-grams of 1 to 6 of them; chrF++ adds those of 1 and 2 words, from
 * which one ASCII punctuation mark at the end, else at the start, is parted. Recall counts twice (beta 2). Of several
 * references a line takes the one with the best score. Orders that either side lacks are left out. */
#ifndef CPL_METRIC_CHRF_H
#define CPL_METRIC_CHRF_H

#include "metric/metric.h"

/* A row: for each order the n-grams of the output, of the reference, and common ones: whole numbers, may be added. */
enum { CPL_CHRF_CHARACTERS = 6, CPL_CHRF_ORDERS = 8, CPL_CHRF_WIDTH = 3 * CPL_CHRF_ORDERS };

typedef struct cpl_chrf cpl_chrf; /* scratch; one for one thread */
/* words: 0 for chrF, 2 for chrF++. */
cpl_status cpl_chrf_new(cpl_chrf **c, int words, cpl_error *err);
void cpl_chrf_free(cpl_chrf *c); /* NULL is fine */
/* One output against its n references (n ≥ 1). Orders beyond the kind's are 0 in the row. */
cpl_status cpl_chrf_count(cpl_chrf *c, cpl_metric_text output, const cpl_metric_text *references, size_t n,
                          double row[CPL_CHRF_WIDTH], cpl_error *err);
double cpl_chrf_score(const double sums[CPL_CHRF_WIDTH], int words); /* 0 … 100 */

#endif
