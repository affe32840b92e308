/* encoder.h: the encoder of a model that is open, on lines of text: what cpl_encode and cpl_encode_lines share.
 *
 *   cpl_line_encoder *e;
 *   CPL_TRY(cpl_line_encoder_new(&e, file, engine, codec, err), err, "cannot encode");
 *   CPL_TRY(cpl_line_encoder_run(e, lines, count, err), err, "cannot encode");
 *   rows = cpl_line_encoder_rows(e, i, pool, &vectors)         vectors[rows width] of line i; overwritten by the next
 *
 * What a line gives depends on that line alone, not on its batch or its place in it. */
#ifndef CPL_API_ENCODER_H
#define CPL_API_ENCODER_H

#include "data/data.h"
#include "graph/program.h"
#include "model/model_file.h"
#include "text/text.h"

typedef struct cpl_line_encoder cpl_line_encoder;

/* Compiles the encoder alone over the engine's parameters. file, engine and codec (of the source) stay the caller's. */
cpl_status cpl_line_encoder_new(cpl_line_encoder **e, const cpl_model_file *file, cpl_engine *engine,
                                cpl_codec *codec, cpl_error *err);
void cpl_line_encoder_free(cpl_line_encoder *e); /* NULL is fine */

/* Is there such a result? A bottleneck leaves no vector for a token: CPL_USAGE. */
cpl_status cpl_line_encoder_check(const cpl_line_encoder *e, cpl_pool_kind pool, cpl_error *err);
int64_t cpl_line_encoder_width(const cpl_line_encoder *e, cpl_pool_kind pool);

/* Encodes `count` lines, blank ones too. Errors name the line that cannot be read. */
cpl_status cpl_line_encoder_run(cpl_line_encoder *e, const cpl_line *lines, size_t count, cpl_error *err);
/* Of line i of the last run: one row, or (NONE) one for each token. −1 without memory. */
int64_t cpl_line_encoder_rows(cpl_line_encoder *e, size_t i, cpl_pool_kind pool, const float **vectors);

#endif
