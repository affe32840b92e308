/* table.c: the reference table. */
#include "kernel/ref/reference.h"
#include "kernel/tables.h"

const cpl_kernels cpl_kernels_reference = {
    .name = "reference",
    .gemm_scratch = 0,
    .gemm = cpl_ref_gemm,
    .axpy = cpl_ref_axpy,
    .scale = cpl_ref_scale,
    .add = cpl_ref_add,
    .multiply = cpl_ref_multiply,
    .dot = cpl_ref_dot,
    .bias_activation = cpl_ref_bias_activation,
    .activation_backward = cpl_ref_activation_backward,
    .add_rows = cpl_ref_add_rows,
    .gru_forward = cpl_ref_gru_forward,
    .gru_backward = cpl_ref_gru_backward,
    .gru_before_gates = cpl_ref_gru_before_gates,
    .gru_before_state = cpl_ref_gru_before_state,
    .gru_before_backward_state = cpl_ref_gru_before_backward_state,
    .gru_before_backward_gates = cpl_ref_gru_before_backward_gates,
    .lstm_forward = cpl_ref_lstm_forward,
    .lstm_backward = cpl_ref_lstm_backward,
    .softmax = cpl_ref_softmax,
    .softmax_backward = cpl_ref_softmax_backward,
    .additive_scores = cpl_ref_additive_scores,
    .additive_scores_backward = cpl_ref_additive_scores_backward,
    .cross_entropy = cpl_ref_cross_entropy,
    .argmax = cpl_ref_argmax,
    .layer_norm = cpl_ref_layer_norm,
    .layer_norm_backward = cpl_ref_layer_norm_backward,
    .adam = cpl_ref_adam,
};
