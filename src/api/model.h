/* model.h: a model that is open for use, and its answers to lines of text: what generate and evaluate share. */
#ifndef CPL_API_MODEL_H
#define CPL_API_MODEL_H

#include "api/encoder.h"
#include "base/str.h"
#include "data/data.h"
#include "decode/decode.h"
#include "model/model_file.h"
#include "text/text.h"

/* What a model makes of one line. */
typedef struct cpl_answer {
    int blank;            /* nothing on the line, or nothing that the text rules leave: the output is blank too */
    cpl_decoded output;   /* all zero, but finished, when blank */
    cpl_more_words words; /* what ids behind the target vocabulary are: the line's words that a model may copy, then
                           * those that replaced [UNK] */
} cpl_answer;

typedef struct cpl_replacer cpl_replacer;

struct cpl_model {
    char *path;             /* for errors */
    cpl_model_file *file;
    cpl_engine *engine;
    cpl_decoder *decoder;   /* NULL: the file holds the encoder alone, or only that was asked for */
    cpl_line_encoder *encoder; /* NULL until cpl_encode wants it */
    cpl_codec *source, *target; /* target: NULL without decoder */
    int32_t *line_ids; /* of one line */
    size_t line_ids_capacity;
    int32_t *ids; /* source rows, one after the other */
    size_t ids_capacity;
    cpl_copy_lines copy; /* of a model that copies: the same rows, and words of all lines */
    const int32_t **row, **copy_row; /* of the lines that are not blank: [lines_capacity], as are those below */
    int64_t *length, *most, *number;
    int32_t *rule_ids; /* of the rules: forbidden, forced, then the prefix */
    size_t rule_ids_capacity;
    cpl_answer *answers;
    size_t lines_capacity;
    struct cpl_model **more; /* of an ensemble: the other models, which this one owns */
    int more_count;
    cpl_decode_source *more_sources; /* what each of them read */
    struct cpl_shortlist *shortlist; /* of shortlist.c; NULL: never asked for */
    cpl_replacer *replacer;          /* of unknown.c; NULL: never asked for */
};

enum { CPL_GENERATE_BATCH = 64 };

/* Opens what encoding needs and no more. */
cpl_status cpl_model_open_encoder(cpl_model **model, const char *path, int threads, cpl_error *err);
/* Makes m->encoder if it is not there. */
cpl_status cpl_model_encoder(cpl_model *m, cpl_error *err);
/* CPL_USAGE unless the model has more than its encoder: all but cpl_encode needs that. */
cpl_status cpl_model_whole(const cpl_model *m, cpl_error *err);
/* What asks for one model alone: an ensemble is CPL_USAGE. what: "loss", "scores". */
cpl_status cpl_model_alone(const cpl_model *m, const char *what, cpl_error *err);

/* The options' ranges: CPL_USAGE naming the option and its value. */
cpl_status cpl_generate_check(const cpl_generate_options *o, cpl_error *err);

/* rules.c: the options' tokens as ids of the model's target vocabulary; one that it lacks is CPL_USAGE. */
cpl_status cpl_model_rules(cpl_model *m, const cpl_generate_options *o, cpl_decode_rules *rules, cpl_error *err);

/* unknown.c: gets ready for the option replace_unknown, and does nothing without it: reads the dictionary when it is
 * another one. */
cpl_status cpl_replacer_open(cpl_model *m, const cpl_generate_options *o, cpl_error *err);
/* Replaces [UNK] in the answers to these lines, which were decoded with attention. */
cpl_status cpl_replacer_apply(cpl_model *m, const cpl_line *lines, size_t count, cpl_error *err);
void cpl_replacer_free(cpl_replacer *r); /* NULL is fine */

/* Answers `count` lines at once. *answers: one for each line, valid until the next call, or NULL. Logits that are not
 * numbers are CPL_FAILED with *answers set; such a line's answer has output.failed. Scores are there where the options
 * show them (json, nbest) or search by them (beam), else NaN. */
cpl_status cpl_model_answer(cpl_model *m, const cpl_line *lines, size_t count, const cpl_generate_options *o,
                            const cpl_answer **answers, cpl_error *err);

/* Appends the answer as text, or as tokens: always one line. */
void cpl_model_write(const cpl_model *m, const cpl_answer *answer, int tokens, cpl_str *out);
/* The same of one of its outputs. */
void cpl_model_write_output(const cpl_model *m, const cpl_answer *answer, const cpl_decoded *output, int tokens,
                            cpl_str *out);

/* figures.c: memory of a loss or score graph for all batches of such rows. */
cpl_status cpl_model_reserve(cpl_program *p, const cpl_rows *rows, int64_t batch_size, cpl_error *err);
/* Feeds it with a batch of pairs. */
cpl_status cpl_model_feed(cpl_program *p, const cpl_batch *b, cpl_error *err);

/* extract.c: the model file that a path names, which may be the folder of a run. The caller frees it; NULL without
 * memory. */
char *cpl_model_path(const char *path);

#endif
