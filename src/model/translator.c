/* translator.c: reference B. Encoder: embedding, recurrent layer in both directions, summed. Decoder: embedding,
 * recurrent layer from a zero state, multi-head attention over the encoder's outputs queried by the recurrent
 * outputs, residual and layer normalisation, projection to the vocabulary. All of it are the options' defaults. */
#include "model/parts.h"

const cpl_model_kind cpl_translator = {.name = "translator",
                                       .describe = cpl_seq2seq_describe,
                                       .loss = cpl_seq2seq_loss,
                                       .score = cpl_seq2seq_score,
                                       .predict = cpl_seq2seq_predict,
                                       .encode = cpl_seq2seq_encode,
                                       .step = cpl_seq2seq_step,
                                       .features = cpl_seq2seq_features};
