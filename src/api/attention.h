/* attention.h: where each token of an answer looked: as JSON, and as a picture in a folder. */
#ifndef CPL_API_ATTENTION_H
#define CPL_API_ATTENTION_H

#include "api/model.h"
#include "api/picture.h"

/* Zero-initialise; reused from line to line. What it shows is valid until the next call with it, or with the model. */
typedef struct cpl_attention_view {
    cpl_label *labels; /* scratch: of both sides */
    float *weights;    /* scratch, where there is padding: it is one column, at the end */
    size_t capacity, weights_capacity;
    cpl_str svg;
    cpl_picture picture;
} cpl_attention_view;

/* Sees an answer that was made with attention. A blank or failed one has no labels. */
cpl_status cpl_attention_see(cpl_attention_view *view, cpl_model *m, const cpl_line *line, const cpl_answer *answer,
                             cpl_error *err);
/* {"source": […], "target": […], "weights": [[…] for each target token]}; NULL without memory. */
cpl_json *cpl_attention_json(const cpl_attention_view *view);
/* Writes FOLDER/000007.svg for line 7; nothing for an answer without labels. */
cpl_status cpl_attention_save(cpl_attention_view *view, const char *folder, int64_t number, cpl_error *err);
void cpl_attention_close(cpl_attention_view *view);

#endif
