/* couplet.h: the public interface of Couplet.
 *
 * Couplet learns from couplets of text, a source and a target. This header is all that a program,
 * the command line, a server or a binding needs; nothing in src/ is included by users.
 *
 * It is over 500 lines on purpose: one header is what a program includes, and it is read from top to bottom, simple
 * things first within each part.
 *
 * Conventions
 * - Every function that can fail returns a cpl_status and takes `cpl_error *err` last (may be NULL).
 * - Shapes in comments are named dimensions: [batch t units]. Sizes are in elements, memory in bytes,
 *   times in seconds, unless a name says otherwise.
 * - Strings are UTF-8. A pointer that you receive belongs to the object it came from, unless the
 *   comment says "the caller frees it with cpl_free".
 */
#ifndef COUPLET_H
#define COUPLET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CPL_VERSION_MAJOR 0
#define CPL_VERSION_MINOR 1
#define CPL_VERSION_PATCH 0
#define CPL_VERSION_STRING "0.1.0"

#define CPL_API __attribute__((visibility("default")))

/* ---- errors ---------------------------------------------------------------------------------- */

/* What a call came to. The values are the command line's exit statuses. */
typedef enum cpl_status {
    CPL_OK = 0,     /* done */
    CPL_FAILED = 1, /* the machine said no: memory, files, a damaged model */
    CPL_USAGE = 2,  /* the user can mend it: usage, configuration, data, model definition */
    CPL_STOPPED = 3 /* a stop was asked for (signal or callback); the state was saved */
} cpl_status;

enum { CPL_ERROR_LINES = 6, CPL_ERROR_WIDTH = 480 };

/* A chain of sentences: line[0] is the cause, the last line the outermost context. Lives on the
 * caller's stack and never allocates. */
typedef struct cpl_error {
    cpl_status status;
    int lines;
    char line[CPL_ERROR_LINES][CPL_ERROR_WIDTH];
    char hint[CPL_ERROR_WIDTH]; /* empty, or how to mend it */
} cpl_error;

#define CPL_ERROR_INIT                                                                             \
    {                                                                                              \
        CPL_OK, 0, {{0}}, { 0 }                                                                    \
    }

/* Prints the chain, outermost context first:  error: …  /    because: …  /    hint: …  */
CPL_API void cpl_error_print(const cpl_error *err, FILE *to);

/* Frees memory that a function handed over to the caller. NULL is fine. */
CPL_API void cpl_free(void *p);


/* ---- building a model -------------------------------------------------------------------------
 *
 * A model is a C function that is called once, while the graph is traced. It receives symbolic inputs and
 * says what is computed; nothing runs there. The first mistake sticks: later builders do nothing and return
 * a poison node (never NULL), and cpl_compile reports it with the layer's path, the shapes and a hint.
 *
 * Shapes are dimension words separated by spaces: "batch s units". `batch` is the number of sentences;
 * `s` and `t` are time: their lengths differ from sentence to sentence and are given with the data (padding
 * does not exist inside); `padded` is a rectangle's time axis (only at the borders: cpl_pack, cpl_unpack);
 * every other word is a feature dimension with a fixed size. A word stands for one size in one graph for
 * batch and time, and for one size in one call for features. */

typedef struct cpl_graph cpl_graph;
typedef struct cpl_node cpl_node; /* a tensor of the graph; owned by the graph */

typedef struct cpl_input_type {
    int id;                 /* 1: integer ids; 0: real numbers */
    const char *vocabulary; /* ids only: which vocabulary they count in, such as "target" */
    int64_t size;           /* ids: entries of that vocabulary; reals: size of the last dimension, 0 if it is none */
} cpl_input_type;
#ifdef __cplusplus /* which has no compound literals */
#define CPL_ID(name, entries) (cpl_input_type{1, (name), static_cast<int64_t>(entries)})
#define CPL_REALS(last) (cpl_input_type{0, nullptr, static_cast<int64_t>(last)})
#else
#define CPL_ID(name, entries) ((cpl_input_type){.id = 1, .vocabulary = (name), .size = (entries)})
#define CPL_REALS(last) ((cpl_input_type){.id = 0, .size = (last)})
#endif

/* Declares an input by name, element type and named shape. */
CPL_API cpl_node *cpl_input(cpl_graph *g, const char *name, cpl_input_type type, const char *shape);

typedef enum cpl_initializer {
    CPL_ZEROS, CPL_ONES, CPL_GLOROT_UNIFORM, CPL_ORTHOGONAL, CPL_UNIFORM_005, CPL_LSTM_BIAS
} cpl_initializer;

/* A trainable tensor under the current path, such as "decoder.rnn.kernel"; shape "in=16 units=48". A path that
 * is asked for again with the same shape is the same tensor; another shape is an error that names both places. */
#define cpl_parameter(g, name, init, ...) cpl_parameter_at((g), (name), (init), __FILE__, __LINE__, __VA_ARGS__)
CPL_API cpl_node *cpl_parameter_at(cpl_graph *g, const char *name, cpl_initializer init, const char *file, int line,
                                   const char *shape_format, ...) __attribute__((format(printf, 6, 7)));

/* Parameters made between enter and leave live under `name`. */
CPL_API void cpl_enter(cpl_graph *g, const char *name);
CPL_API void cpl_leave(cpl_graph *g);

/* The user's own shape check: x must have exactly these dimension words, and a word with "=N" that size. */
CPL_API void cpl_expect(cpl_graph *g, cpl_node *x, const char *shape);

CPL_API void cpl_output(cpl_graph *g, const char *name, cpl_node *x);   /* can be read after a run: cpl_read */
CPL_API void cpl_watch(cpl_graph *g, const char *name, cpl_node *x);    /* its gradient can be read as an output */
CPL_API void cpl_minimize(cpl_graph *g, cpl_node *loss);                /* the scalar to differentiate */
CPL_API int cpl_graph_failed(const cpl_graph *g);

/* ---- layers -----------------------------------------------------------------------------------
 *
 * A layer makes its parameters under its name and appends its ops. Options are structs: leave out what you do not
 * need, a zero is the default. Two layers of one name and the same options share their weights. */

typedef enum cpl_cell { CPL_GRU, CPL_GRU_RESET_BEFORE, CPL_LSTM } cpl_cell;
typedef enum cpl_merge { CPL_SUM, CPL_CONCAT, CPL_AVERAGE, CPL_MULTIPLY } cpl_merge;

typedef struct cpl_embedding_options {
    int64_t size;    /* entries of the table */
    int64_t units;
    const char *dim; /* name of the new dimension; default "units" */
} cpl_embedding_options;
/* ids [...] → [... units]. Table: uniform ±0.05. */
CPL_API cpl_node *cpl_embedding(cpl_graph *g, const char *name, cpl_node *ids, const cpl_embedding_options *o);
/* Its table [entries units] alone: the same parameter at the same name, for cpl_dense_options.tied. */
CPL_API cpl_node *cpl_embedding_table(cpl_graph *g, const char *name, const cpl_embedding_options *o);

typedef struct cpl_dense_options {
    int64_t units;
    const char *dim;    /* name of the new dimension; default "units". A loss wants its logits over "vocab". */
    int activation;     /* 0 linear, 1 tanh, 2 sigmoid, 3 relu */
    int no_bias;
    cpl_node *tied;     /* a table [units in] in place of the kernel: f(x·tableᵀ + bias). NULL: a kernel of its own */
} cpl_dense_options;
/* x [... in] → [... units]: f(x·kernel + bias). Kernel: Glorot-uniform. */
CPL_API cpl_node *cpl_dense(cpl_graph *g, const char *name, cpl_node *x, const cpl_dense_options *o);

typedef struct cpl_rnn_options {
    cpl_cell cell;
    int64_t units;
    int reverse;                           /* 1: reads each sentence from its end */
    cpl_node *h, *c;                       /* initial states [batch units]; NULL: zero */
    cpl_initializer recurrent_initializer; /* 0 (CPL_ZEROS): Glorot-uniform; or CPL_ORTHOGONAL */
    double dropout;                        /* of what the recurrent product reads of the state in CPL_TRAIN runs, the
                                            * same elements in all steps of a sentence; 0 ≤ dropout < 1 */
} cpl_rnn_options;
/* What a recurrent layer gives: all outputs, and the states after each sentence's last step by name. */
typedef struct cpl_rnn_result {
    cpl_node *y; /* [batch time units] */
    cpl_node *h; /* [batch units] */
    cpl_node *c; /* [batch units], LSTM only, else NULL */
} cpl_rnn_result;
/* x [batch time in]. GRU gates stand in the order z r h, LSTM gates i f c o, as in Keras 3. */
CPL_API cpl_rnn_result cpl_rnn(cpl_graph *g, const char *name, cpl_node *x, const cpl_rnn_options *o);

typedef struct cpl_bidirectional_options {
    cpl_cell cell;
    int64_t units;
    cpl_merge merge;
    cpl_node *forward_h, *forward_c, *backward_h, *backward_c;
    cpl_initializer recurrent_initializer;
    double dropout; /* as of cpl_rnn_options, masks of its own for each direction */
} cpl_bidirectional_options;
typedef struct cpl_bidirectional_result {
    cpl_node *y;                 /* merged, in time order: [batch time units] (concat: 2 units) */
    cpl_rnn_result forward, backward; /* each direction alone: merge "none", and the named states */
} cpl_bidirectional_result;
CPL_API cpl_bidirectional_result cpl_bidirectional(cpl_graph *g, const char *name, cpl_node *x,
                                                   const cpl_bidirectional_options *o);

/* What is compared with what. The last three mix the memory itself: no value or output projection, one head. */
typedef enum cpl_score {
    CPL_SCORE_MULTIHEAD, /* projected query · projected key / √(width of a head) */
    CPL_SCORE_ADDITIVE,  /* cpl_additive_attention with units = key_units */
    CPL_SCORE_DOT,       /* query · memory, of one width; no parameters */
    CPL_SCORE_GENERAL    /* query · query.kernel · memory */
} cpl_score;

typedef struct cpl_attention_options {
    int64_t heads;     /* default 1 */
    int64_t key_units; /* width of all heads together; default: the query's width */
    cpl_score score;
    double dropout;    /* share of weights that CPL_TRAIN runs drop before they mix the values, 0 ≤ dropout < 1 */
} cpl_attention_options;
typedef struct cpl_attention_memory {
    cpl_node *keys, *values; /* [batch s key_units]; values (dot and general: both) may be the memory [batch s units] */
    cpl_node *prepared;      /* additive: cpl_additive_attention_prepare of keys; NULL: none, always allowed */
    double dropout;          /* additive: of the options it was projected with */
} cpl_attention_memory;
typedef struct cpl_attention_result {
    cpl_node *y;       /* [batch t units]: multi-head: as wide as the query; else as the memory */
    cpl_node *weights; /* [heads batch t s], additive [batch t s]: softmax over the positions that exist,
                        * as it was before dropout */
} cpl_attention_result;
/* Multi-head cross-attention with projections and biases (Vaswani et al. 2017; Keras's MultiHeadAttention). The
 * memory is projected once; queries may come step by step. */
CPL_API cpl_attention_memory cpl_attention_project(cpl_graph *g, const char *name, cpl_node *memory,
                                                   const cpl_attention_options *o, int64_t query_units);
CPL_API cpl_attention_result cpl_attention_query(cpl_graph *g, const char *name, cpl_node *query,
                                                 cpl_attention_memory memory, const cpl_attention_options *o);
/* Both at once. */
CPL_API cpl_attention_result cpl_attention(cpl_graph *g, const char *name, cpl_node *query, cpl_node *memory,
                                           const cpl_attention_options *o);

typedef struct cpl_additive_attention_options {
    int64_t units; /* in which query and memory are compared; default: the query's width */
    double dropout; /* as of cpl_attention_options */
} cpl_additive_attention_options;
/* Additive attention (Bahdanau et al. 2015): softmax over s of score · tanh(query·W + bias + memory·W' + bias'), with
 * parameters query, key and score (kernel [units 1], bias [1]). query [batch t in], memory [batch s in'] → y
 * [batch t in'], weights [batch t s]. The memory is projected once; queries may come step by step. */
CPL_API cpl_attention_memory cpl_additive_attention_project(cpl_graph *g, const char *name, cpl_node *memory,
                                                            const cpl_additive_attention_options *o,
                                                            int64_t query_units);
CPL_API cpl_attention_result cpl_additive_attention_query(cpl_graph *g, const char *name, cpl_node *query,
                                                          cpl_attention_memory memory);
/* What every step would compute of the keys again, [batch s keys]. Queries inside a loop make it themselves, once
 * before the loop. A graph of a single step (decoding) that is handed keys and values as inputs may be handed this
 * third one too, as memory.prepared: made with the keys, and each step takes about half the time. It carries no
 * gradient: keys must be there as well. Whole sequences of queries need none. */
CPL_API cpl_node *cpl_additive_attention_prepare(cpl_graph *g, cpl_node *keys);
/* Both at once. */
CPL_API cpl_attention_result cpl_additive_attention(cpl_graph *g, const char *name, cpl_node *query, cpl_node *memory,
                                                    const cpl_additive_attention_options *o);

/* Over the last dimension, biased variance; epsilon 0: 1e-3. */
CPL_API cpl_node *cpl_layer_norm(cpl_graph *g, const char *name, cpl_node *x, double epsilon);
/* Active in CPL_TRAIN runs only. */
CPL_API cpl_node *cpl_dropout(cpl_graph *g, cpl_node *x, double rate);
/* The same for whole rows of x [batch time …], such as embedded words. */
CPL_API cpl_node *cpl_dropout_words(cpl_graph *g, cpl_node *x, double rate);
/* [batch time n] → [batch n]: mean over the positions that exist. */
CPL_API cpl_node *cpl_mean_time(cpl_graph *g, cpl_node *x);
CPL_API cpl_node *cpl_add(cpl_graph *g, cpl_node *a, cpl_node *b);
CPL_API cpl_node *cpl_multiply(cpl_graph *g, cpl_node *a, cpl_node *b);
CPL_API cpl_node *cpl_scale(cpl_graph *g, cpl_node *x, double factor);
CPL_API cpl_node *cpl_sum(cpl_graph *g, cpl_node *x); /* [] of all elements */
CPL_API cpl_node *cpl_concat(cpl_graph *g, cpl_node *a, cpl_node *b); /* along the last dimension */
CPL_API cpl_node *cpl_tanh(cpl_graph *g, cpl_node *x);
CPL_API cpl_node *cpl_argmax(cpl_graph *g, cpl_node *x); /* [... n] → ids [...]; the first largest; −1 for NaN */

typedef struct cpl_loss_result {
    cpl_node *loss;     /* [] mean over the positions whose target is not 0 */
    cpl_node *accuracy; /* [] share of them where the largest logit is the target */
    cpl_node *count;    /* [] how many they are */
} cpl_loss_result;
/* logits [batch t vocab] of the targets' own vocabulary; targets: ids [batch t]. Padding stays in the softmax's
 * denominator. */
CPL_API cpl_loss_result cpl_masked_cross_entropy(cpl_graph *g, cpl_node *logits, cpl_node *targets);
/* The same with label smoothing: of each label the share `smoothing` (0 … below 1) goes to all classes of the
 * vocabulary alike. That is for CPL_TRAIN runs: minimize the loss, and report *plain, the loss without it. */
CPL_API cpl_loss_result cpl_smoothed_cross_entropy(cpl_graph *g, cpl_node *logits, cpl_node *targets, double smoothing,
                                                   cpl_node **plain);

/* What a model needs to copy words of its source (pointer-generator, See et al. 2017). Extended ids: those of the
 * target vocabulary, and from its size on the words of a sentence's own source that it lacks, numbered by sentence. */
typedef struct cpl_copying {
    cpl_node *gate;    /* [batch t 1]: the logit of writing from the vocabulary rather than copying */
    cpl_node *weights; /* [batch t s], or [heads=1 batch t s]: how much each source word is pointed at */
    cpl_node *ids;     /* extended ids [batch s] of the source words */
} cpl_copying;
/* The loss of the mixture σ(gate) · softmax(logits) + (1 − σ(gate)) · the weights on the target's word. logits come
 * from a dense layer; targets: extended ids [batch t]. Declare both ids by CPL_EXTENDED_ID. */
CPL_API cpl_loss_result cpl_copying_cross_entropy(cpl_graph *g, cpl_node *logits, const cpl_copying *copying,
                                                  cpl_node *targets);
/* [] Σ over steps and source words of min(weight now, sum of the weights before), divided by the number of targets that
 * are not 0: what coverage minimises beside the loss itself. weights as in cpl_copying. */
CPL_API cpl_node *cpl_coverage(cpl_graph *g, cpl_node *weights, cpl_node *targets);
#define CPL_EXTENDED_ID CPL_ID("target and source words", INT32_MAX)

/* ---- loops ----
 *
 * A body is traced once and stands for every step of a time word. What it makes from the loop's inputs keeps the time
 * word: it is one step of it. Only what a carried state depends on runs step by step; the rest of the body runs once,
 * for all steps together: an encoder called inside costs one run. Everything is differentiable.
 *
 * A loop inside a body, over another time word, runs in each step of the outer one when an input or a first value of it
 * is a step's: for each target step, a recurrence over the source. Its inputs are [batch s units], or a step of the
 * outer loop that all its steps see; a first value may be a step of the outer loop; its final state is one. What it
 * emits goes into layers without time, cpl_sum, or another loop inside. Its states are kept for each step of each step.
 */
typedef struct cpl_loop cpl_loop;
typedef void (*cpl_loop_body)(cpl_graph *g, cpl_loop *loop, const void *user);

enum { CPL_LOOP_VALUES = 10 };
typedef struct cpl_loop_value {
    const char *name;
    cpl_node *x;   /* input: [batch time …]; state: its first value [batch units], NULL: zero */
    int64_t units; /* of a state without a first value */
} cpl_loop_value;

typedef struct cpl_scan_options {
    const char *name;                       /* for errors and paths */
    const char *time;                       /* "t": the steps */
    cpl_loop_value inputs[CPL_LOOP_VALUES]; /* up to the first without a name */
    cpl_loop_value states[CPL_LOOP_VALUES];
} cpl_scan_options;

/* Traces body once. options must live until the last use of the loop. */
CPL_API cpl_loop *cpl_scan(cpl_graph *g, const cpl_scan_options *options, cpl_loop_body body, const void *user);
/* Inside the body: this step of an input, the state before this step, its value after it, a result of this step. */
CPL_API cpl_node *cpl_loop_slice(cpl_loop *loop, const char *input);
CPL_API cpl_node *cpl_loop_state(cpl_loop *loop, const char *state);
CPL_API void cpl_loop_next(cpl_loop *loop, const char *state, cpl_node *x);
CPL_API void cpl_loop_emit(cpl_loop *loop, const char *name, cpl_node *x);
/* After it: all steps of what was emitted [batch time …]; the state after each sentence's last step [batch units]. */
CPL_API cpl_node *cpl_loop_output(cpl_loop *loop, const char *name);
CPL_API cpl_node *cpl_loop_final(cpl_loop *loop, const char *state);

/* Cells for bodies: x [batch time in] and the states before → after; in a loop in C [batch in]. LSTM parameters
 * are those of cpl_rnn; the GRU (reset after) has bias and recurrent_bias in place of the two rows. */
CPL_API void cpl_lstm_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, cpl_node **c, int64_t units);
CPL_API void cpl_gru_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, int64_t units);
/* Either, by o's cell, units, recurrent_initializer and dropout (the other options are those of whole sequences; in a
 * loop in C each step is a call of its own, and drops elements of its own). A GRU has no c: NULL will do. A
 * gru_reset_before has no step. */
CPL_API void cpl_cell_step(cpl_graph *g, const char *name, cpl_node *x, cpl_node **h, cpl_node **c,
                           const cpl_rnn_options *o);

/* ---- loops in C ----
 *
 * A `for` of one's own over a fixed number of steps, unrolled while the model is traced: layers called at one name
 * again share their weights, and calls with the same inputs run once, such as an encoder called in every step. It
 * suits short loops; cpl_scan stands for any length. States are [batch units]; an attention may be queried by one. */

/* Step number `step` (from 0) of [batch t …] or of a rectangle [batch padded …]: [batch …]. Numbers or ids; zeros
 * (padding) for sentences that have no such step. */
CPL_API cpl_node *cpl_take(cpl_graph *g, cpl_node *x, int step);
/* [batch units] of zeros for each sentence of `like`, any numbers over batch: a first state. */
CPL_API cpl_node *cpl_zeros(cpl_graph *g, cpl_node *like, int64_t units);
/* n steps [batch units] as one sequence [batch TIME units], of each sentence as many as it has. A run with a sentence
 * longer than n is an error. */
CPL_API cpl_node *cpl_stack(cpl_graph *g, cpl_node *const *steps, int n, const char *time);

/* x itself. Each time that the graph runs, and never while it is traced, a line goes to the message sink (level 0):
 * text, the name of x, its shape with the run's sizes, minimum, mean, maximum, how many numbers are not finite, and
 * the first of them. Inside a loop, where a state depends on it, once for each step. */
CPL_API cpl_node *cpl_print(cpl_graph *g, cpl_node *x, const char *text);

/* The borders to rectangles. pack: [batch padded …] → [batch TIME …], the positions that exist (cpl_feed_mask or
 * lengths of `time`). unpack: back, with zeros where nothing exists or, with repeat, the output of the step before. */
CPL_API cpl_node *cpl_pack(cpl_graph *g, cpl_node *x, const char *time);
CPL_API cpl_node *cpl_unpack(cpl_graph *g, cpl_node *x, int repeat);

/* Layers remember the place in your program that made them, for errors. */
CPL_API void cpl_at(cpl_graph *g, const char *file, int line);
#ifndef CPL_BUILDING
#define cpl_embedding(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_embedding((g), __VA_ARGS__))
#define cpl_dense(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_dense((g), __VA_ARGS__))
#define cpl_rnn(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_rnn((g), __VA_ARGS__))
#define cpl_bidirectional(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_bidirectional((g), __VA_ARGS__))
#define cpl_attention(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_attention((g), __VA_ARGS__))
#define cpl_additive_attention(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_additive_attention((g), __VA_ARGS__))
#define cpl_layer_norm(g, ...) (cpl_at((g), __FILE__, __LINE__), cpl_layer_norm((g), __VA_ARGS__))
#endif

/* ---- compiling and running --------------------------------------------------------------------
 *
 * cpl_compile traces the model once, checks it, differentiates it and lays out memory. New lengths and batch
 * sizes never trace again; at most they make a new memory plan. */

typedef struct cpl_program cpl_program;
typedef void (*cpl_model_function)(cpl_graph *g, const void *user);

/* level 0: information, 1: a warning. */
typedef void (*cpl_message_sink)(void *user, int level, const char *text);

typedef struct cpl_compile_options {
    const char *name;         /* of the model, for errors; default "model" */
    cpl_program *share;       /* use this program's parameters and threads; it must outlive the new one */
    uint64_t seed;            /* of first values and dropout */
    int threads;              /* 0: all processors that the process may use */
    int no_passes;            /* 1: the graph as it was traced (to compare results) */
    int inference;            /* 1: never trained: no backward pass is made */
    int bfloat16;             /* 1: CPL_TRAIN rounds what its matrix products read to bfloat16; the rest stays float */
    const char *const *freeze; /* paths or patterns of what does not train, as for cpl_set_trainable */
    int freeze_count;
    cpl_message_sink message; /* NULL: silent */
    void *user;
} cpl_compile_options;

CPL_API cpl_status cpl_compile(cpl_program **program, cpl_model_function model, const void *user,
                               const cpl_compile_options *options, cpl_error *err);
CPL_API void cpl_program_free(cpl_program *program);

/* Data as programs have it: a rectangle, row-major. ids: CPL_INT32 or CPL_INT64; reals: CPL_FLOAT32 or CPL_FLOAT64. */
typedef enum cpl_array_type { CPL_INT32, CPL_INT64, CPL_FLOAT32, CPL_FLOAT64 } cpl_array_type;
typedef struct cpl_array {
    cpl_array_type type;
    int rank;
    int64_t shape[4];
    const void *data;
    const int64_t *lengths; /* [batch], for inputs over s or t: how much of each row exists; NULL: see cpl_feed */
} cpl_array;

/* Gives an input its data (copied). Without lengths an input over time takes those that another input, or
 * cpl_feed_mask, gave to the same time word for this run; if none did, whole rows exist. */
CPL_API cpl_status cpl_feed(cpl_program *p, const char *input, const cpl_array *array, cpl_error *err);
/* Which positions of a rectangle [batch width] exist, for a time word ("s"). Any pattern; empty rows too. */
CPL_API cpl_status cpl_feed_mask(cpl_program *p, const char *time, const uint8_t *mask, int64_t batch, int64_t width,
                                 cpl_error *err);
/* Ids as one pointer and one length for each sentence. */
CPL_API cpl_status cpl_feed_ids(cpl_program *p, const char *input, const int32_t *const *rows, const int64_t *lengths,
                                int64_t batch, cpl_error *err);

/* From now on each run's `output` [batch units] is the next run's `input`, row by row, when that is not fed: the state
 * at the end of a chunk of a long document begins the next chunk, without a gradient between them (truncated
 * back-propagation through time). An LSTM has two states to carry. */
CPL_API cpl_status cpl_carry(cpl_program *p, const char *output, const char *input, cpl_error *err);
/* Before a run: rows whose `begins` is 1 begin a document, with zeros; the others go on. NULL: all begin, however many
 * they are (cpl_fit does so before each epoch and each validation). */
CPL_API cpl_status cpl_carry_reset(cpl_program *p, const uint8_t *begins, int64_t batch, cpl_error *err);

typedef enum cpl_mode {
    CPL_EVALUATE, /* outputs and loss; dropout off */
    CPL_TRAIN     /* outputs, loss and gradients; dropout on */
} cpl_mode;

/* Runs with what was fed since the last run. Every declared input must have been. */
CPL_API cpl_status cpl_run(cpl_program *p, cpl_mode mode, cpl_error *err);

/* An output of the last run as a rectangle in the caller's sentence order, zeros where nothing exists; axes over time
 * are as wide as what was fed. shape[rank] is always set; to may be NULL to ask for it; capacity in elements. */
CPL_API cpl_status cpl_read(cpl_program *p, const char *output, float *to, size_t capacity, int64_t shape[6], int *rank,
                            cpl_error *err);
CPL_API cpl_status cpl_read_ids(cpl_program *p, const char *output, int32_t *to, size_t capacity, int64_t shape[6],
                                int *rank, cpl_error *err);
CPL_API double cpl_scalar(const cpl_program *p, const char *output); /* NaN when there is no such number */

/* One update from the last run's gradients (Kingma and Ba 2015, epsilon outside the root as in Keras: beta 0.9, 0.999,
 * epsilon 1e-7). A run in which no target was counted changes nothing. */
CPL_API cpl_status cpl_adam(cpl_program *p, double learning_rate, cpl_error *err);

/* Decoding with a step program of one's own: each run reads the token before and gives the next. It stops when all
 * sentences have ended. States go from step to step by cpl_carry; the first ones, and a memory, come by `feed`. */
typedef struct cpl_greedy_options {
    const char *input, *output; /* ids [batch]: the token before; the next one, such as cpl_argmax of the logits */
    int32_t start, end;         /* what the first step reads; what ends a sentence. Ended ones go on reading it */
    int64_t max_steps;
    cpl_status (*feed)(cpl_program *step, int64_t number, void *user, cpl_error *err); /* other inputs; may be NULL */
    void *user;
} cpl_greedy_options;
/* tokens [batch max_steps]: filled up with `end`; lengths [batch]: without it. *steps (may be NULL): how many ran. */
CPL_API cpl_status cpl_greedy(cpl_program *step, int64_t batch, const cpl_greedy_options *options, int32_t *tokens,
                              int64_t *lengths, int64_t *steps, cpl_error *err);

/* Parameters: number, path, shape, values (writable; valid until a later
 * cpl_compile with `share` adds parameters) and the last run's gradients. */
CPL_API size_t cpl_parameter_count(const cpl_program *p);
CPL_API const char *cpl_parameter_path(const cpl_program *p, size_t i);
CPL_API int cpl_parameter_shape(const cpl_program *p, size_t i, int64_t shape[3]); /* rank */
CPL_API float *cpl_parameter_value(const cpl_program *p, size_t i);
CPL_API const float *cpl_parameter_gradient(const cpl_program *p, size_t i); /* NULL when no gradient reaches it */
CPL_API int64_t cpl_parameter_find(const cpl_program *p, const char *path);  /* index, or −1 */

/* Freezes (0) or thaws (1) a part, at any time: a path names a parameter or all that lies under it ("encoder",
 * "decoder.rnn"), and in a pattern * and ? stand for characters ("*.embedding"). What is frozen gets no gradient, keeps
 * no activations and no optimizer state, and stays as it is to the bit; all programs that share it follow from their
 * next CPL_TRAIN run on. What is thawed begins with moments of zero. CPL_USAGE when nothing is named so. */
CPL_API cpl_status cpl_set_trainable(cpl_program *p, const char *pattern, int trainable, cpl_error *err);
CPL_API int cpl_parameter_trainable(const cpl_program *p, size_t i);

/* How often the model function was called, and how many memory plans were made. */
CPL_API int64_t cpl_traces(const cpl_program *p);
CPL_API int64_t cpl_plans(const cpl_program *p);

/* ---- the commands as functions ----------------------------------------------------------------- */

/* What a running training tells. Fields that an event does not fill are 0, NaN or NULL. */
typedef struct cpl_progress_event {
    const char *kind; /* "start", "step", "epoch", "validation", "example", "checkpoint", "report", "profile",
                       * "end" */
    int64_t epoch, epochs;               /* 1 …; epochs planned */
    int64_t step;                        /* updates so far */
    int64_t step_in_epoch, steps_in_epoch;
    double loss, accuracy, val_loss, val_accuracy, learning_rate, tokens_per_second;
    const char *val_figures;             /* of training.metrics, for a person: "val_bleu 15.20  val_exact 0.3460" */
    double elapsed_seconds, seconds_left; /* NaN before ten steps were timed */
    const char *source, *reference, *output; /* "example" */
    const char *text;                        /* "report", "start", "profile", "end": lines for a person */
} cpl_progress_event;
typedef void (*cpl_progress_callback)(void *user, const cpl_progress_event *event);

/* ---- a training of one's own ----
 *
 * cpl_fit trains a program over data of the user's own: epochs, validation, early stopping, the best weights kept. The
 * model has an output "loss", and may have "accuracy" and "count" (of targets, by which batches are weighed). */
typedef struct cpl_batches {
    int64_t count; /* of one epoch */
    /* Feeds every input of the program with batch 0 … count − 1; epochs count from 1. */
    cpl_status (*feed)(cpl_program *p, int64_t epoch, int64_t batch, void *user, cpl_error *err);
    void *user;
} cpl_batches;

typedef struct cpl_fit_rules {
    int64_t epochs;           /* at most */
    double learning_rate;     /* of cpl_adam; 0: 1e-3 */
    int64_t patience;         /* stop after so many epochs without a better validation loss; 0: never */
    double min_delta;         /* by how much it must be better */
    const char *weights_path; /* each better epoch's weights are saved there; NULL: nowhere */
    cpl_progress_callback on_step, on_validation; /* "step"; "epoch"; NULL: not called */
    void *user;
    const volatile int *stop; /* becomes non-zero when it should end; NULL: never */
} cpl_fit_rules;

typedef struct cpl_fit_result {
    int64_t epochs, steps;
    int64_t best_epoch;   /* whose weights the program has at the end; 0: no epoch's loss was a number */
    double best_loss;     /* of validation, or of training without validation batches */
    int stopped_early;
} cpl_fit_result;

/* valid and result may be NULL. CPL_STOPPED when *stop ended it; the program then has the best weights too. */
CPL_API cpl_status cpl_fit(cpl_program *p, const cpl_batches *train, const cpl_batches *valid,
                           const cpl_fit_rules *rules, cpl_fit_result *result, cpl_error *err);
/* All parameters that the program shares, by path, as safetensors. A file that does not fit changes nothing. */
CPL_API cpl_status cpl_save_weights(const cpl_program *p, const char *path, cpl_error *err);
CPL_API cpl_status cpl_load_weights(cpl_program *p, const char *path, cpl_error *err);

/* A configuration as YAML, chosen from a file of pairs (.tsv, .gz), with the measured reason behind each choice. pairs
 * stands in it as given: absolute, or relative to where the configuration will be. swap 1: the second column is the
 * source. The caller frees *text with cpl_free. */
CPL_API cpl_status cpl_new_config(const char *pairs, int swap, char **text, cpl_error *err);

typedef struct cpl_train_options {
    const char *config_path;
    const char *folder;                 /* NULL: the configuration's file name without .yaml, in the current folder */
    const char *const *set;             /* "training.epochs=3" */
    int set_count;
    int resume, overwrite;
    const char *const *freeze;          /* paths or patterns of what does not train, added to training.freeze */
    int freeze_count;
    int threads;                        /* 0: as the configuration says */
    const char *init;                   /* "MODEL" or "MODEL:PART" to begin with, added to training.init; NULL: none */
    const char *memory;                 /* training.memory, such as "2GiB"; NULL: as the configuration says */
    int profile;                        /* 1: a "profile" event at the end says where the time went, as does the trace
                                         * 'profile.json' in the folder */
    cpl_progress_callback on_step;       /* after each update; NULL: not called, as the two below */
    cpl_progress_callback on_validation; /* "validation" and "epoch": when validation figures are known */
    cpl_progress_callback on_event;      /* every other kind */
    cpl_message_sink message;
    void *user;
    const volatile int *stop;           /* becomes non-zero when the run should save and end; NULL: never */
} cpl_train_options;

/* Fits, validates, stops early, writes the run's folder. CPL_STOPPED when *stop ended it, after saving. */
CPL_API cpl_status cpl_train(const cpl_train_options *options, cpl_error *err);
/* Without training: data report, layers, operations per step, exact memory. The caller frees *text with cpl_free. */
CPL_API cpl_status cpl_plan(const cpl_train_options *options, int json, char **text, cpl_error *err);

/* A trained model: its weights, vocabularies and text rules. path: a model file, or the folder of a run. Of an encoder
 * alone (cpl_extract) only cpl_encode can be asked. */
typedef struct cpl_model cpl_model;
CPL_API cpl_status cpl_model_open(cpl_model **model, const char *path, int threads, cpl_error *err);
/* Several models that generate together: at each step the probabilities are the mean of theirs. Target vocabularies
 * must be the same; each model reads the source by its own rules. It is used, and closed, like one model. */
CPL_API cpl_status cpl_model_open_ensemble(cpl_model **model, const char *const *paths, int count, int threads,
                                           cpl_error *err);
CPL_API void cpl_model_close(cpl_model *model);

typedef struct cpl_generate_options {
    double temperature;   /* 0: the most probable token; else a sample from softmax(logits / temperature) */
    uint64_t seed;        /* of samples */
    int64_t top_k;        /* samples come from the k most probable tokens; 0: all */
    double top_p;         /* samples come from the fewest tokens that have this probability together; 0: all */
    int64_t beam;         /* paths that are followed at a time; 0 and 1: one, the most probable token each step */
    int64_t nbest;        /* outputs of a line, best first; at most beam; 0: 1, and no "index ||| text ||| score" */
    double length_penalty;        /* A of score / ((5 + length) / 6)^A, by which a beam's outputs are ranked; 0: none */
    const char *length_penalty_kind; /* NULL, "gnmt": the above; "plain": score / length^A */
    double coverage_penalty;      /* weight, in a beam's ranking, of source words that got little attention; 0: none */
    int64_t min_length;           /* tokens without END at least */
    int64_t no_repeat;            /* no sequence of so many tokens comes twice in an output; 0: any may */
    const char *const *forbid;    /* tokens of the target's vocabulary that no output has */
    int forbid_count;
    const char *const *force;     /* tokens that each output has: where it would end without, one of them comes next */
    int force_count;
    const char *prefix;           /* text that each output begins with; NULL: none */
    int64_t max_length;   /* tokens without END; 0: larger of 2 · source tokens + 20 and the longest training target */
    int64_t batch_size;   /* lines at a time; 0: 64 */
    int tokens;           /* 1: tokens joined by spaces instead of text */
    int json;             /* 1: one JSON object a line: text, score, finished; with attention_folder also attention */
    const char *attention_folder; /* NULL: none. Made when missing; gets a picture of what each output token looked at
                                   * for each line that is not blank, named by its number: 000001.svg … */
    const char *alignments; /* NULL: none. A file that gets a line for each line of output, "0-0 2-1": the source token
                             * that each output token looked at most; in JSON, "alignment" */
    int replace_unknown;    /* 1: [UNK] in an output becomes the source word that it looked at most … */
    const char *dictionary; /* … or what that is here: lines "source<tab>target", or with a probability behind a second
                             * tab; NULL: none */
    int64_t shortlist;      /* only the N most frequent target entries may be chosen, and … 0: all */
    const char *lexicon;    /* … what a line's own words may become: a file like `dictionary`; NULL: nothing */
} cpl_generate_options;

/* One line of text → one line; its picture is 000001.svg. The caller frees *output with cpl_free. options NULL:
 * defaults. */
CPL_API cpl_status cpl_generate(char **output, cpl_model *model, const char *line, const cpl_generate_options *options,
                                cpl_error *err);
/* One line out for each line in, in order, as soon as it is known; blank lines stay blank. */
CPL_API cpl_status cpl_generate_lines(cpl_model *model, FILE *in, FILE *out, const cpl_generate_options *options,
                                      cpl_message_sink message, void *user, cpl_error *err);

/* An ensemble has scores of its outputs alone: accuracy, loss and perplexity are of one model. */
typedef struct cpl_evaluate_options {
    const char *pairs;    /* TSV */
    const char *outputs;  /* a file of outputs instead of a model's; then model is NULL */
    const char *baseline; /* a file of outputs of another system, which those of `outputs` are tested against; NULL */
    const char *metrics;  /* "bleu,exact,rouge"; NULL: bleu, exact, accuracy, loss (bleu and exact for outputs) */
    const char *tokenize; /* for BLEU, repetition and copying: 13a (NULL), none, char, intl; if given, ROUGE and
                           * token_error_rate split so too */
    const char *group;    /* "source": pairs with the same source are one item with several references; NULL: not */
    int64_t bootstrap;    /* resamples of the items (seed: generate.seed) for 95 % intervals and the test against
                           * `baseline`; 0: none, 1000 with a baseline */
    int raw;              /* 1: compare with the file as it is */
    int json;
    cpl_generate_options generate;
} cpl_evaluate_options;
CPL_API cpl_status cpl_evaluate(cpl_model *model, const cpl_evaluate_options *options, char **text, cpl_error *err);

typedef struct cpl_score_options {
    const char *pairs;  /* TSV; one column is enough for an autoencoder */
    int64_t batch_size; /* pairs at a time; 0: 16 */
    int json;           /* 1: a JSON object a line: tokens, token_log_probabilities, log_probability */
    const char *alignments; /* a file that gets a line for each pair, "0-0 2-1": the source token that the model looks
                             * at most when it reads each target token; in JSON, "alignment"; NULL: none */
} cpl_score_options;
/* The natural logarithm of the probability that the model gives to each target, END included, given its source: a line
 * for each line of the file, in order, an empty side or a blank line too. Targets are never cut. A token that the model
 * does not know counts as [UNK]; a model that copies gives its mixture of writing and copying. An autoencoder
 * without a bottleneck also scores the START that it writes. */
CPL_API cpl_status cpl_score_pairs(cpl_model *model, const cpl_score_options *options, FILE *out, cpl_error *err);

/* Writes a part of a model ("encoder") into a file of its own: its tensors alone, with vocabularies and text rules. It
 * begins other models (training.init); it generates nothing. */
CPL_API cpl_status cpl_extract(const char *model, const char *part, const char *output, cpl_error *err);

/* Over a line's tokens, START and END left out; NONE: a vector for each token; LAST: what the recurrent layer ended
 * with. A model with a bottleneck has one vector, whichever is asked for, and none for a token. */
typedef enum cpl_pool_kind { CPL_POOL_MEAN, CPL_POOL_NONE, CPL_POOL_LAST, CPL_POOL_MAX } cpl_pool_kind;

/* What the encoder makes of one line of text: vectors[shape[0] shape[1]], one row; with CPL_POOL_NONE a row for each
 * token (none for a blank line). The caller frees *vectors with cpl_free. The model may be an encoder alone, which
 * cpl_extract wrote. */
CPL_API cpl_status cpl_encode(float **vectors, int64_t shape[2], cpl_model *model, const char *line, cpl_pool_kind pool,
                              cpl_error *err);

typedef struct cpl_encode_options {
    const char *input;  /* lines; NULL and "-": standard input */
    const char *output; /* an .npy file [lines width], in place of JSON lines; with CPL_POOL_NONE all tokens one after
                         * the other, and how many each line has in FILE.lengths.npy */
    cpl_pool_kind pool;
    int threads;
    int64_t batch_size; /* lines at a time; 0: 64. The numbers are the same whatever it is */
} cpl_encode_options;
/* The same for each line, in order, as soon as it is known; an encoder alone will do. */
CPL_API cpl_status cpl_encode_lines(const char *model, const cpl_encode_options *options, FILE *out, cpl_error *err);

/* Writes a model whose weights are the arithmetic mean of those of `count` models (2 to 64), files or folders of runs,
 * such as those that training.keep left. They must be of one shape, with the same vocabularies and text rules. */
CPL_API cpl_status cpl_average_models(const char *const *models, int count, const char *output, cpl_error *err);

/* Writes a model for inference whose matrices are of a lower type: "int8" (NULL), a scale for each output of a product,
 * where the left sides of products become bytes too, or "bfloat16". Everything that a model does it does, but train, be
 * averaged or exported. text: what became of the size, to be freed with cpl_free. */
CPL_API cpl_status cpl_quantize(const char *model, const char *type, const char *output, char **text, cpl_error *err);

/* Options, layers, sizes, types, history, checksum of each tensor; of a model, or of a part that cpl_extract wrote. */
CPL_API cpl_status cpl_inspect(const char *model, int json, char **text, cpl_error *err);

/* A vocabulary built from text, in a file that text.*.vocabulary of a configuration reads: a list of tokens, or a
 * SentencePiece model. NULL and 0 are defaults. */
typedef struct cpl_vocabulary_options {
    const char *input;       /* TSV, .gz too; one column is enough, unless it is both */
    const char *column;      /* source (NULL), target or both: one vocabulary of all text */
    const char *tokens;      /* space, word (NULL), char, byte, bpe, unigram */
    const char *standardize; /* none, nfc, nfkc, nfkc_lower, tutorial; NULL: the default of the side's text rules */
    int64_t size;            /* most entries, the four special ones included; 0: no limit (but subwords need one) */
    int64_t min_count;       /* rarer tokens (of subwords: characters) are left out */
    const char *output;
    int json;
    cpl_message_sink message;
    void *user;
} cpl_vocabulary_options;
/* text: what the vocabulary covers of the input, to be freed with cpl_free. */
CPL_API cpl_status cpl_vocabulary_make(const cpl_vocabulary_options *options, char **text, cpl_error *err);

/* Weights from Keras (.weights.h5), whose attribute paths are those of the reference classes: encoder/embedding,
 * encoder/rnn/forward_layer/cell, decoder/attention/mha/query_dense … Text files of vocabularies: a token a line, the
 * first empty (padding) or [PAD], then [UNK], [START], [END]. All that is missing, left over or of another shape is an
 * error that names it, and then nothing is written. */
typedef struct cpl_keras_import_options {
    const char *weights, *config; /* a .weights.h5, and the configuration (YAML) of the model that it fits */
    const char *source_vocabulary, *target_vocabulary; /* NULL: built from data.train of the configuration */
    const char *map;     /* a file of other names: lines "THEIRS OURS", and "gates PATH ORDER"; NULL: none */
    const char *output;  /* the model file */
    cpl_message_sink message;
    void *user;
    int64_t pad_to;      /* not 0: the model was trained without masking, on sources that padding filled up to so many
                          * tokens, START and END included; it reads them so from then on (text.source.pad_to) */
} cpl_keras_import_options;
CPL_API cpl_status cpl_import_keras(const cpl_keras_import_options *options, cpl_error *err);

/* The way back, for the reference classes' load_weights. */
typedef struct cpl_keras_export_options {
    const char *model;   /* a model file, or the folder of a run */
    const char *output;  /* a .weights.h5 */
    const char *source_vocabulary, *target_vocabulary; /* text files to write; NULL: none */
} cpl_keras_export_options;
CPL_API cpl_status cpl_export_keras(const cpl_keras_export_options *options, cpl_error *err);

/* How fast this machine trains and decodes, and its share of what the processor can do. NULL and 0 are defaults. Works:
 * "translator", "autoencoder", "summarizer" (training steps of the reference models), "decode" (greedy, with random
 * weights), "kernels" (products alone), "growth" (how a translator's step grows). Weights, lengths and ids are the
 * same each time. */
typedef struct cpl_bench_options {
    const char *const *works; /* none: all but growth */
    int work_count;
    int threads;
    double seconds;         /* of each measurement; 0: 3 */
    int64_t steps;          /* exactly so many in place of seconds */
    int64_t batch;          /* of training: 0: 64, summarizer 32; of decoding: 0: 1 and 64 */
    int64_t vocabulary;     /* 0: 5000, summarizer 6764 */
    int64_t tokens;         /* of each output, END never comes; 0: 16 */
    int bfloat16;           /* 1: products of training and of kernels in bfloat16 */
    const char *lengths;    /* a file with a line "source target" for each pair, in place of lengths that are drawn */
    const char *const *set; /* "model.units=1024": keys of the models */
    int set_count;
    const char *const *freeze; /* parts that do not train */
    int freeze_count;
    const char *model;      /* decode: a model file, whatever type its weights have */
    const char *keep_model; /* decode: where the model with random weights is written */
    int json;
    cpl_message_sink message;
    void *user;
} cpl_bench_options;
/* text: a table, or JSON (docs/bench.md), to be freed with cpl_free. */
CPL_API cpl_status cpl_bench_run(const cpl_bench_options *options, char **text, cpl_error *err);

/* Version, libraries and the kernel set chosen. The caller frees both with cpl_free; NULL without memory. */
CPL_API char *cpl_version_text(void);
CPL_API char *cpl_config_help_text(void);

#ifdef __cplusplus
}
#endif
#endif
