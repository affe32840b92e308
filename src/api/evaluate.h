/* evaluate.h: between evaluate.c (which figures, and how they are shown) and their computation: of a model in
 * figures.c, of a file of outputs in figures_of_file.c. */
#ifndef CPL_API_EVALUATE_H
#define CPL_API_EVALUATE_H

#include "api/model.h"
#include "metric/metric.h"
#include "metric/repetition.h"
#include "metric/rouge.h"

enum {
    CPL_FIGURE_BLEU = 1, CPL_FIGURE_EXACT = 2, CPL_FIGURE_ACCURACY = 4, CPL_FIGURE_LOSS = 8, CPL_FIGURE_PERPLEXITY = 16,
    CPL_FIGURE_ROUGE = 32, /* shifted left by the kind: four bits */
    CPL_FIGURES_OF_ROUGE = 15 * CPL_FIGURE_ROUGE,
    CPL_FIGURE_REPEATED_TRIGRAMS = 512, CPL_FIGURE_COPY_RATE = 1024,
    CPL_FIGURES_OF_REPETITION = CPL_FIGURE_REPEATED_TRIGRAMS | CPL_FIGURE_COPY_RATE,
    /* those that need outputs; the others need the model's probabilities */
    CPL_FIGURES_OF_TEXT = CPL_FIGURE_BLEU | CPL_FIGURE_EXACT | CPL_FIGURES_OF_ROUGE | CPL_FIGURES_OF_REPETITION,
    CPL_FIGURES_DEFAULT = CPL_FIGURE_BLEU | CPL_FIGURE_EXACT | CPL_FIGURE_ACCURACY | CPL_FIGURE_LOSS
};

typedef struct cpl_figures {
    int wanted;
    cpl_bleu_split split;
    cpl_metric *metric; /* outputs against references */
    cpl_rouge *rouge;
    cpl_repetition_counts repetition;
    int64_t pairs, items;  /* items: outputs that were scored */
    double loss, accuracy; /* sums over tokens */
    double tokens;         /* of the targets, END included */
    int64_t cut;           /* outputs that reached their maximum length */
} cpl_figures;

/* A model's outputs, and its probabilities of the references. */
cpl_status cpl_figures_of_model(cpl_figures *f, cpl_model *model, const cpl_evaluate_options *o, cpl_error *err);
/* The lines of o->outputs, as they are, against the file. */
cpl_status cpl_figures_of_outputs(cpl_figures *f, const cpl_evaluate_options *o, cpl_error *err);
/* One output, its source and its references, into the wanted figures. */
cpl_status cpl_figures_add(cpl_figures *f, cpl_metric_text output, cpl_metric_text source,
                           const cpl_metric_text *references, size_t n, cpl_error *err);

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
