/* evaluate.h: between evaluate.c (which figures), show_figures.c (how they are shown) and their computation: of a model
 * in figures.c, of a file of outputs in figures_of_file.c. */
#ifndef CPL_API_EVALUATE_H
#define CPL_API_EVALUATE_H

#include "api/model.h"
#include "metric/bootstrap.h"
#include "metric/scorer.h"

typedef struct cpl_figures {
    uint32_t wanted;
    cpl_scorer *scorer;   /* outputs against references */
    cpl_scorer *baseline; /* another system's; NULL: none */
    int64_t pairs, items; /* items: outputs that were scored */
    double loss, accuracy; /* sums over tokens */
    double tokens;         /* of the targets, END included */
    int64_t cut;           /* outputs that reached their maximum length */
} cpl_figures;

/* A model's outputs, and its probabilities of the references. */
cpl_status cpl_figures_of_model(cpl_figures *f, cpl_model *model, const cpl_evaluate_options *o, cpl_error *err);
/* The lines of o->outputs and o->baseline, as they are, against the file. */
cpl_status cpl_figures_of_outputs(cpl_figures *f, const cpl_evaluate_options *o, cpl_error *err);

/* ---- show_figures.c: the figures as lines and as JSON ---- */

typedef struct cpl_figures_shown {
    const cpl_figures *figures;
    const cpl_bootstrap *bootstrap; /* NULL: none */
    int grouped;
} cpl_figures_shown;

void cpl_figures_show(const cpl_figures_shown *s, cpl_str *to);
cpl_status cpl_figures_show_json(const cpl_figures_shown *s, cpl_str *to, cpl_error *err);

/* ---- items.c: which pairs share one output ---- */

/* Item i is the pairs order[starts[i]] … order[starts[i + 1] − 1], as they follow in the file; items follow by their
 * first pairs. Zero-initialise. */
typedef struct cpl_items {
    int64_t count, most; /* most: pairs of the largest item */
    int64_t *starts;     /* [count + 1] */
    int64_t *order;      /* [pairs] */
} cpl_items;

/* Each pair is an item; with by_source, pairs whose sources have the same bytes are one. */
cpl_status cpl_items_make(cpl_items *items, const cpl_pair *pairs, int64_t n, int by_source, cpl_error *err);
void cpl_items_free(cpl_items *items);

#endif
