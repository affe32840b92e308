/* summarizer.c: reference A. Encoder: embedding, LSTM. Decoder: from the encoder's last state, one step at a time:
 * additive attention queried by the state before the step, LSTM over the attention's result and the embedded token,
 * projection of the new state to the vocabulary. CPL_TYPE_DEFAULTS in options.def makes these the defaults. */
#include "model/parts.h"

const cpl_model_kind cpl_summarizer = {.name = "summarizer",
                                       .describe = cpl_seq2seq_describe,
                                       .loss = cpl_seq2seq_loss,
                                       .score = cpl_seq2seq_score,
                                       .predict = cpl_seq2seq_predict,
                                       .encode = cpl_seq2seq_encode,
                                       .step = cpl_seq2seq_step,
                                       .features = cpl_seq2seq_features};
