/* evaluate.h: between evaluate.c (which figures, and how they are shown) and figures.c (their computation). */
#ifndef CPL_API_EVALUATE_H
#define CPL_API_EVALUATE_H

#include "api/model.h"
#include "metric/metric.h"

enum {
    CPL_FIGURE_BLEU = 1, CPL_FIGURE_EXACT = 2, CPL_FIGURE_ACCURACY = 4, CPL_FIGURE_LOSS = 8, CPL_FIGURE_PERPLEXITY = 16,
    CPL_FIGURES_OF_TEXT = 3, /* those that need outputs; the others need the model's probabilities */
    CPL_FIGURES_DEFAULT = 15
};

typedef struct cpl_figures {
    int wanted;
    cpl_metric *metric; /* outputs against references */
    int64_t pairs;
    double loss, accuracy; /* sums over tokens */
    double tokens;         /* of the targets, END included */
    int64_t cut;           /* outputs that reached their maximum length */
} cpl_figures;

/* A model's outputs, and its probabilities of the references. */
cpl_status cpl_figures_of_model(cpl_figures *f, cpl_model *model, const cpl_evaluate_options *o, cpl_error *err);
/* The lines of o->outputs, as they are, against the file. */
cpl_status cpl_figures_of_outputs(cpl_figures *f, const cpl_evaluate_options *o, cpl_error *err);

#endif
