/* table.c: the table of this instruction set, such as cpl_kernels_generic; kernel/tables.h lists them. */
#include "kernel/tables.h"
#include "kernel/vector/gemm_tile.h"
#include "kernel/vector/vector.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

const cpl_kernels CPL_JOIN(kernels, CPL_ISA) = {
    .name = STRING(CPL_ISA),
    .gemm_scratch = SCRATCH_FLOATS * sizeof(float),
    .gemm = CPL_FN(gemm),
    .gemm_bf16 = CPL_FN(gemm_bf16),
    .multiplies_bf16 = TOGETHER == 2,
    .gemm_packed = CPL_FN(gemm_packed),
    .axpy = CPL_FN(axpy),
    .scale = CPL_FN(scale),
    .add = CPL_FN(add),
    .multiply = CPL_FN(multiply),
    .dot = CPL_FN(dot),
    .bias_activation = CPL_FN(bias_activation),
    .activation_backward = CPL_FN(activation_backward),
    .add_rows = CPL_FN(add_rows),
    .gru_forward = CPL_FN(gru_forward),
    .gru_backward = CPL_FN(gru_backward),
    .gru_before_gates = CPL_FN(gru_before_gates),
    .gru_before_state = CPL_FN(gru_before_state),
    .gru_before_backward_state = CPL_FN(gru_before_backward_state),
    .gru_before_backward_gates = CPL_FN(gru_before_backward_gates),
    .lstm_forward = CPL_FN(lstm_forward),
    .lstm_backward = CPL_FN(lstm_backward),
    .softmax = CPL_FN(softmax),
    .softmax_backward = CPL_FN(softmax_backward),
    .additive_scores = CPL_FN(additive_scores),
    .additive_scores_backward = CPL_FN(additive_scores_backward),
    .additive_exponentials = CPL_FN(additive_exponentials),
    .additive_step = CPL_FN(additive_step),
    .additive_step_backward = CPL_FN(additive_step_backward),
    .attention_step = CPL_FN(attention_step),
    .cross_entropy = CPL_FN(cross_entropy),
    .argmax = CPL_FN(argmax),
    .argmax_sum_exp = CPL_FN(argmax_sum_exp),
    .layer_norm = CPL_FN(layer_norm),
    .layer_norm_backward = CPL_FN(layer_norm_backward),
    .adam = CPL_FN(adam),
    .multiply_adds = CPL_FN(multiply_adds),
    .read = CPL_FN(read),
};
