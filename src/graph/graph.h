/* graph.h: the graph inside. Values are tensors, calls are applications of ops, in an order in which they can run.
 * Passes rewrite it; plan.h lays it out in memory; program.h runs it. */
#ifndef CPL_GRAPH_GRAPH_H
#define CPL_GRAPH_GRAPH_H

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "couplet.h"
#include "graph/op.h"
#include "graph/parameters.h"

typedef enum cpl_storage {
    CPL_STORE_BLOCK,     /* in the planned block */
    CPL_STORE_PARAMETER, /* the parameter's own memory */
    CPL_STORE_GRADIENT   /* the gradient block, at the parameter's place */
} cpl_storage;

typedef struct cpl_value {
    cpl_type type;
    const char *path;  /* who made it: layer path or input name, for errors */
    int producer;      /* call, or −1: input or parameter */
    int output;        /* which output of the producer */
    cpl_storage storage;
    int parameter;     /* index in the store, or −1 */
    int input;         /* index in graph inputs, or −1 */
    int hidden;        /* exists only when its call is differentiated */
} cpl_value;

typedef struct cpl_call {
    const cpl_op *op;
    const void *attributes;
    const char *path;  /* layer path */
    uint64_t uid;      /* names the node for random numbers; survives passes and copies */
    int backward;      /* 1: runs op->backward */
    int differentiated;
    int loop;          /* 0: runs once; else 1 + the loop whose steps it runs in */
    int reverse;       /* the loop runs from its last step to its first */
    int inputs, outputs;     /* of the forward form; hidden ones included in outputs */
    int visible;             /* outputs that are not hidden */
    int in[CPL_MAX_INPUTS];  /* value, or −1 */
    int out[CPL_MAX_OUTPUTS];/* forward: written; backward: read when the op keeps them */
    int dout[CPL_MAX_OUTPUTS];
    int din[CPL_MAX_INPUTS]; /* backward: written, or −1 */
    int dead;
    int again;               /* a forward call that runs a second time: recomputation */
    int merged;              /* how many equal calls it stands for besides itself */
} cpl_call;

typedef struct cpl_graph_input {
    const char *name;
    int value;
    cpl_input_type declared;
} cpl_graph_input;

typedef struct cpl_graph_output {
    const char *name;
    int value;
    int gradient; /* 1: cpl_watch, wants the gradient of `value` */
} cpl_graph_output;

typedef struct cpl_symbol {
    const char *name;
    cpl_dim_kind kind;
    const char *from; /* the input that brought it */
    int nested;       /* time: the steps of `inner` for each step of `outer`, "s in t" (nest.c) */
    int outer, inner; /* symbols */
} cpl_symbol;

/* A loop over a time word. Which calls run inside is found by a pass (passes/loops.c): those on a cycle through its
 * carried states. All others of the body run once, on all steps together. */
typedef struct cpl_loop_info {
    const char *name;
    int symbol;
    int outer;                    /* 0: none; else 1 + the loop in each of whose steps it runs */
    uint64_t first_uid, last_uid; /* of the calls that the body made */
    int inside, outside;          /* how many of them run step by step, and once */
} cpl_loop_info;

enum { CPL_MAX_LOOPS = 8 };

struct cpl_node {
    cpl_graph *graph;
    int value; /* −1: poison */
};

struct cpl_graph {
    cpl_arena *arena;
    cpl_parameters *parameters; /* shared by all graphs of one model */
    cpl_error error;            /* sticky */
    cpl_value *values;
    size_t value_count, value_capacity;
    cpl_call *calls;
    size_t call_count, call_capacity;
    cpl_graph_input *inputs;
    size_t input_count, input_capacity;
    cpl_graph_output *outputs;
    size_t output_count, output_capacity;
    cpl_symbol symbols[CPL_MAX_SYMBOLS];
    int symbol_count;
    int loss; /* value, or −1 */
    int staged; /* 1: plans have room for each gradient of a parameter beside the call that writes it */
    int block_rows; /* ops that work in blocks take no more rows at once; 0: their own choice */
    int seed; /* the value 1 that a backward pass starts from, or −1 */
    uint64_t next_uid;
    cpl_loop_info loops[CPL_MAX_LOOPS];
    int loop_count;
    int tracing; /* 0; or 1 + the loop whose body is traced now */
    cpl_str warnings; /* lines for the log, one each */
    cpl_str path; /* current layer path */
    cpl_map *layers;          /* path → index of layer_records: what was made there */
    struct cpl_layer_record *layer_records;
    size_t layer_count, layer_capacity;
    const char *place_file;   /* of the user's call that builds now: cpl_at */
    int place_line;
    cpl_node poison;
};

cpl_graph *cpl_graph_new(cpl_parameters *parameters); /* NULL without memory */
cpl_graph *cpl_graph_copy(const cpl_graph *g);        /* shares nothing but the parameter store */
void cpl_graph_free(cpl_graph *g);

/* The sticky failure. The layer path becomes the context line. */
void cpl_graph_fail(cpl_graph *g, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));

int cpl_graph_add_value(cpl_graph *g, const cpl_type *type, const char *path); /* −1 without memory (sticky) */
cpl_call *cpl_graph_add_call(cpl_graph *g);                                   /* NULL without memory (sticky) */
cpl_node *cpl_graph_node(cpl_graph *g, int value);
const char *cpl_graph_path(cpl_graph *g, const char *name); /* current path + name, in the arena */
int cpl_graph_symbol(cpl_graph *g, const char *word, size_t length, cpl_dim_kind kind, const char *from);

/* Notes that the current path is this layer, in words: "dense units=8 activation=tanh". The same path again with other
 * words is an error that names both places (case A05). */
void cpl_graph_layer(cpl_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Parses "batch t units=8" into type (symbols are made when new). size_last: size of a last feature without "=". */
int cpl_graph_parse_shape(cpl_graph *g, const char *shape, int64_t size_last, const char *from, cpl_type *type);

/* Applies an op: checks and infers by its signature, inserts reorders. inputs[n]: NULL for one left out.
 * Returns the first output; further ones through cpl_node_output. */
cpl_node *cpl_apply(cpl_graph *g, const char *op, const void *attributes, cpl_node *const *inputs, int n);
cpl_node *cpl_node_output(cpl_node *first, int i);
const cpl_type *cpl_node_type(const cpl_node *x); /* until the next value is added; NULL for poison */
int64_t cpl_node_last_size(const cpl_node *x);    /* of the last dimension; 0 for poison and scalars */

/* Types of a call by position, NULL for −1 (for size contexts). */
void cpl_call_sizes(const cpl_graph *g, const cpl_call *c, const cpl_binding *b, int threads, cpl_size_context *s);
/* Operations of a call at these sizes. */
double cpl_call_flops(const cpl_graph *g, const cpl_call *c, const cpl_binding *b, int threads);

/* autodiff.c: appends backward calls for g->loss; gradients of trainable parameters go to the gradient block.
 * needs_gradient(parameter) decides what trains. Parameters that no gradient reaches are left untouched
 * (parameters->reached). */
cpl_status cpl_graph_differentiate(cpl_graph *g, cpl_error *err);

/* passes/: each is one file, can be switched off, and leaves results unchanged. */
enum { CPL_PASS_DEAD = 1, CPL_PASS_EQUAL = 2, CPL_PASS_FUSE_ACTIVATION = 4, CPL_PASS_FUSE_LOSS = 8,
       CPL_PASS_SHARE_ROWS = 16, CPL_PASS_ALL = 31 };
void cpl_pass_dead(cpl_graph *g);
void cpl_pass_equal(cpl_graph *g);
void cpl_pass_fuse_activation(cpl_graph *g);
void cpl_pass_fuse_loss(cpl_graph *g);
void cpl_pass_share_rows(cpl_graph *g);
/* Order, types and references are sound, or a failure that names the pass. Run after each pass. */
cpl_status cpl_graph_verify(const cpl_graph *g, const char *after, cpl_error *err);
cpl_status cpl_graph_optimize(cpl_graph *g, int passes, cpl_error *err);
/* passes/loops.c: not optional. Finds what runs inside each loop and puts it together: before, inside, after. */
cpl_status cpl_pass_loops(cpl_graph *g, cpl_error *err);
/* passes/recompute.c: after differentiation. Drops what is kept for the backward run where it can be made again: by
 * cheap calls (CPL_OP_CHEAP) alone, or by costly ones too. Results stay the same to the bit. `capacity` says what is
 * large. *copies: calls that run again. */
typedef enum cpl_recompute { CPL_RECOMPUTE_NONE, CPL_RECOMPUTE_CHEAP, CPL_RECOMPUTE_ALL, CPL_RECOMPUTES } cpl_recompute;
cpl_status cpl_pass_recompute(cpl_graph *g, cpl_recompute level, const cpl_binding *capacity, int *copies,
                              cpl_error *err);
/* Puts the calls into another order (order[new place] = old place) and mends the values' producers. */
cpl_status cpl_graph_reorder(cpl_graph *g, const size_t *order, cpl_error *err);
/* The calls of one loop, and of those nested in it, stand together: the last one of those around `at`. */
size_t cpl_graph_loop_end(const cpl_graph *g, size_t at);
/* The same of the call's own loop alone. */
size_t cpl_graph_nest_end(const cpl_graph *g, size_t at);
/* 1 + the outermost loop around the call; 0: none. */
int cpl_graph_outermost(const cpl_graph *g, const cpl_call *c);

/* nest.c: a loop over `inner` in each step of one over `outer`. Its time is a symbol of its own, "s in t": the packed
 * rows of `inner` for the sentences that have step 0 of `outer`, then for those that have step 1, … A step of either
 * is one piece of memory. */
int cpl_graph_nest_symbol(cpl_graph *g, int outer, int inner, const char *from); /* made when new */
int cpl_type_nested(const cpl_graph *g, const cpl_type *type); /* its nested time symbol, or −1 */
/* x [batch inner u] or [batch outer u] as [batch symbol u]: for each step of the other time again. */
cpl_node *cpl_nest_input(cpl_graph *g, cpl_node *x, int symbol);
/* May the op be applied to these inputs, if one of them has a nested time? Sticky error if not. */
int cpl_nest_allows(cpl_graph *g, const cpl_op *op, const char *path, const cpl_type *const *in);

/* stage.c: bytes of the gradients that a call writes, where they are staged; else 0. */
size_t cpl_call_stage_bytes(const cpl_graph *g, const cpl_call *c);
/* Gradients of parameters that the call can add to by itself: all that its op can, or none. */
uint32_t cpl_call_adds(const cpl_graph *g, const cpl_call *c);

/* How many calls read the value (outputs and the loss count one each). */
int cpl_graph_uses(const cpl_graph *g, int value);
/* The only call that reads the value; NULL when there are more, other uses, or none. */
cpl_call *cpl_graph_only_reader(cpl_graph *g, int value);
void cpl_graph_replace(cpl_graph *g, int value, int by); /* in every reader, output and the loss */

/* Does the call read, when it runs, its input i / its forward's output i? (A backward call reads what the op keeps.) */
int cpl_call_reads_input(const cpl_call *c, int i);
int cpl_call_reads_output(const cpl_call *c, int i);
/* Does output i of the call exist when it runs? (Hidden ones only when differentiated.) */
int cpl_call_writes_output(const cpl_call *c, int i);

#endif
