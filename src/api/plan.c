/* plan.c: cpl_plan: what training would be, without training. */
#include <inttypes.h>
#include <string.h>

#include "api/run_data.h"
#include "base/error.h"
#include "base/memory.h"

/* ---- text ---- */

/* "1.5 GiB". */
static void add_bytes(cpl_str *to, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    int unit = 0;
    for (; n >= 1024 && unit < 4; unit++)
        n /= 1024;
    cpl_str_printf(to, unit ? "%.2f %s" : "%.0f %s", n, units[unit]);
}

/* The layer of "encoder.rnn.forward.kernel" is "encoder.rnn.forward". */
static int layer_length(const char *path)
{
    const char *dot = strrchr(path, '.');
    return (int)(dot ? dot - path : (long)strlen(path));
}

static void add_shape(cpl_str *to, const cpl_parameter_info *info)
{
    cpl_str_printf(to, "%s[", info->path + layer_length(info->path) + (strchr(info->path, '.') ? 1 : 0));
    for (int i = 0; i < info->rank; i++)
        cpl_str_printf(to, "%s%s=%" PRId64, i ? " " : "", info->dim[i], info->size[i]);
    cpl_str_add(to, "]");
}

/* One line a layer: name, parameters, the named shape of each. */
static void add_layers(cpl_str *to, const cpl_parameters *p)
{
    size_t count = cpl_parameters_count(p);
    int width = 5;
    for (size_t i = 0; i < count; i++) {
        int n = layer_length(cpl_parameters_at(p, i)->path);
        width = n > width ? n : width;
    }
    cpl_str_printf(to, "%-*s  %12s  shapes\n", width, "layer", "parameters");
    for (size_t i = 0; i < count;) {
        const char *path = cpl_parameters_at(p, i)->path;
        int n = layer_length(path);
        int64_t elements = 0, trained = 0;
        size_t end = i;
        for (; end < count; end++) {
            const cpl_parameter_info *info = cpl_parameters_at(p, end);
            if (layer_length(info->path) != n || strncmp(info->path, path, (size_t)n) != 0)
                break;
            elements += info->elements;
            trained += info->trainable ? info->elements : 0;
        }
        cpl_str_printf(to, "%-*.*s  %12" PRId64 "  %s", width, n, path, elements, trained == 0 ? "frozen: " : "");
        for (size_t k = i; k < end; k++) {
            cpl_str_add(to, k > i ? " " : "");
            add_shape(to, cpl_parameters_at(p, k));
            if (trained > 0 && !cpl_parameters_at(p, k)->trainable)
                cpl_str_add(to, " frozen");
        }
        cpl_str_add(to, "\n");
        i = end;
    }
    cpl_str_printf(to, "%-*s  %12" PRId64 "\n", width, "all", cpl_parameters_elements(p));
}

static void add_memory(cpl_str *to, const cpl_memory_figures *m)
{
    cpl_str_add(to, "memory\n");
    for (int i = 0; i < m->count; i++) {
        cpl_str_printf(to, "  %-14s  %14" PRIu64 "  ", m->part[i].name, m->part[i].bytes);
        add_bytes(to, m->part[i].bytes);
        cpl_str_add(to, m->part[i].with_batch ? "  grows with the batch and its lengths\n" : "\n");
    }
    cpl_str_printf(to, "  %-14s  %14" PRIu64 "  ", "peak", m->peak);
    add_bytes(to, m->peak);
    cpl_str_add(to, "\nparameters, gradients and optimizer do not depend on the batch size\n");
}

/* "micro-batch 12 of 32, recomputation cheap (9 calls run again, 3.1 MiB saved), loss block 96 of 384 rows: …" */
static void add_means(cpl_str *to, const cpl_memory_figures *m)
{
    cpl_str_printf(to, "micro-batch %" PRId64 " of %" PRId64 ", recomputation %s", m->micro_batch, m->batch,
                   cpl_recompute_name(m->recompute));
    if (m->recompute != CPL_RECOMPUTE_NONE) {
        cpl_str_printf(to, " (%d calls run again, ", m->recomputed);
        add_bytes(to, m->recompute_saved);
        cpl_str_add(to, " saved)");
    }
    if (m->loss_block < m->whole_loss_block)
        cpl_str_printf(to, ", loss block %" PRId64 " of %" PRId64 " rows", m->loss_block, m->whole_loss_block);
    cpl_str_add(to, m->micro_batch < m->batch ? ": more pairs where they are short\n"
                    : m->budget > 0 ? ": the whole batch fits\n" : ": the whole batch\n");
    if (m->valid_batch > 0)
        cpl_str_printf(to, "validation micro-batch %" PRId64 " of %" PRId64 "%s\n", m->valid_micro_batch,
                       m->valid_batch,
                       m->valid_micro_batch < m->valid_batch ? ": more pairs where they are short" : "");
}

/* What a budget leads to, and what the loss saves by working in blocks (case B02). */
static void add_budget(cpl_str *to, const cpl_memory_figures *m)
{
    if (m->budget > 0) {
        cpl_str_printf(to, "budget: %" PRIu64 " bytes, ", m->budget);
        add_bytes(to, m->budget);
        cpl_str_printf(to, " (%s); without a budget the peak would be ", m->budget_from);
        add_bytes(to, m->whole_peak);
        cpl_str_add(to, "\n");
    }
    add_means(to, m);
    cpl_str_printf(to, "whole logits would need %" PRIu64 " bytes [t=%" PRId64 " batch=%" PRId64 " vocab=%" PRId64 "]",
                   m->whole_logits, m->longest_target, m->batch, m->vocabulary);
    if (m->budget > 0 && m->whole_logits > m->budget)
        cpl_str_printf(to, ", over the budget: with them alone at most batch %" PRId64 " would fit",
                       cpl_logits_batch(m->budget, m->longest_target, m->vocabulary));
    cpl_str_printf(to, "; the loss takes blocks of %" PRIu64 " bytes\n", m->logits_block);
}

/* What freezing saves: bytes of the peak without a budget, as it is and if all trained. */
typedef struct frozen_figures {
    int64_t parameters; /* 0: nothing is frozen, or all of it could not train here */
    uint64_t peak, thawed;
} frozen_figures;

static void add_frozen(cpl_str *to, const frozen_figures *f)
{
    if (f->parameters == 0)
        return;
    cpl_str_printf(to, "frozen: %" PRId64 " parameters; if they trained too, the peak would be ", f->parameters);
    add_bytes(to, f->thawed);
    cpl_str_add(to, ", ");
    add_bytes(to, f->thawed > f->peak ? f->thawed - f->peak : 0);
    cpl_str_add(to, " more\n");
}

static void write_text(const cpl_run_data *r, cpl_str *to)
{
    const cpl_trainer *t = r->trainer;
    cpl_dataset_describe(r->data, to);
    if (to->length > 0 && to->data[to->length - 1] != '\n')
        cpl_str_add(to, "\n");
    cpl_str_add(to, "\n");
    add_layers(to, cpl_trainer_program(t)->engine->parameters);
    cpl_str_printf(to, "trainable parameters: %" PRId64 "\n", cpl_trainer_trainable(t));
    if (r->config->training.optimizer.sparse_embeddings)
        cpl_str_printf(to, "of them in sparse embeddings: %" PRId64 "\n", cpl_trainer_sparse(t));
    cpl_str_printf(to, "steps in an epoch: %" PRId64, cpl_trainer_steps_in_epoch(t));
    if (r->config->training.accumulate > 1)
        cpl_str_printf(to, ", each of %" PRId64 " batches", r->config->training.accumulate);
    cpl_str_add(to, "\n");
    cpl_str_printf(to, "floating-point operations of an average step: %.3g\n", cpl_trainer_flops(t));
    cpl_str_printf(to, "precision: %s, kernels %s\n\n", cpl_trainer_precision(t),
                   cpl_trainer_program(t)->engine->kernels->name);
    add_memory(to, cpl_trainer_memory(t));
    add_budget(to, cpl_trainer_memory(t));
}

/* ---- JSON ---- */

static cpl_json *json_of(const cpl_run_data *r)
{
    const cpl_trainer *t = r->trainer;
    const cpl_memory_figures *m = cpl_trainer_memory(t);
    cpl_json *root = cpl_json_object(), *parts = cpl_json_object();
    cpl_json_set_int(root, "parameters", cpl_parameters_elements(cpl_trainer_program(t)->engine->parameters));
    cpl_json_set_int(root, "trainable_parameters", cpl_trainer_trainable(t));
    if (r->config->training.optimizer.sparse_embeddings)
        cpl_json_set_int(root, "sparse_parameters", cpl_trainer_sparse(t));
    cpl_json_set_int(root, "peak_bytes", (int64_t)m->peak);
    for (int i = 0; i < m->count; i++)
        cpl_json_set_int(parts, m->part[i].name, (int64_t)m->part[i].bytes);
    cpl_json_set(root, "parts", parts);
    cpl_json_set_text(root, "precision", cpl_trainer_precision(t));
    cpl_json_set_text(root, "kernels", cpl_trainer_program(t)->engine->kernels->name);
    cpl_json_set_int(root, "micro_batch", m->micro_batch);
    cpl_json_set_text(root, "recompute", cpl_recompute_name(m->recompute));
    cpl_json_set_int(root, "recomputed_calls", m->recomputed);
    cpl_json_set_int(root, "recompute_saved_bytes", (int64_t)m->recompute_saved);
    cpl_json_set_int(root, "loss_block_rows", m->loss_block);
    if (m->valid_batch > 0)
        cpl_json_set_int(root, "validation_micro_batch", m->valid_micro_batch);
    if (m->budget > 0)
        cpl_json_set_int(root, "budget_bytes", (int64_t)m->budget);
    cpl_json_set_int(root, "whole_logits_bytes", (int64_t)m->whole_logits);
    cpl_json_set_int(root, "logits_block_bytes", (int64_t)m->logits_block);
    cpl_json_set_real(root, "flops_per_step", cpl_trainer_flops(t), 6);
    cpl_json_set_int(root, "steps_per_epoch", cpl_trainer_steps_in_epoch(t));
    cpl_json_set_int(root, "accumulate", r->config->training.accumulate);
    cpl_json_set(root, "data", cpl_dataset_report_json(r->data));
    return root;
}

/* Takes root over. */
static cpl_status write_json(cpl_json *root, const frozen_figures *f, cpl_str *to, cpl_error *err)
{
    if (!root)
        CPL_FAIL(err, CPL_FAILED, "no memory for the plan");
    if (f->parameters > 0)
        cpl_json_set_int(root, "all_trained_peak_bytes", (int64_t)f->thawed);
    cpl_status status = cpl_json_write(root, to, err);
    cpl_json_free(root);
    cpl_str_add(to, "\n");
    return status;
}

/* The part "reading" is what the process held before: no matter of what trains. */
static uint64_t own_peak(const cpl_memory_figures *m)
{
    uint64_t reading = 0;
    for (int i = 0; i < m->count; i++)
        reading += strcmp(m->part[i].name, "reading") == 0 ? m->part[i].bytes : 0;
    return m->whole_peak - (reading < m->whole_peak ? reading : 0);
}

/* Takes a trainer of its own, in place of the one that there was. */
static frozen_figures find_frozen(cpl_run_data *r)
{
    const cpl_trainer *t = r->trainer;
    frozen_figures f = {.peak = own_peak(cpl_trainer_memory(t))};
    if (r->config->training.freeze.count == 0)
        return f;
    f.parameters = cpl_parameters_elements(cpl_trainer_program(t)->engine->parameters) - cpl_trainer_trainable(t);
    r->config->training.freeze.count = 0;
    r->config->training.memory = 0;
    if (cpl_run_data_trainer(r, NULL) == CPL_OK)
        f.thawed = own_peak(cpl_trainer_memory(r->trainer));
    else
        f.parameters = 0;
    return f;
}

cpl_status cpl_plan(const cpl_train_options *options, int json, char **text, cpl_error *err)
{
    cpl_run_data r = {0};
    cpl_str out = {0};
    cpl_json *root = NULL;
    frozen_figures frozen;
    *text = NULL;
    cpl_status status = cpl_run_data_config(&r, options, err);
    if (status == CPL_OK)
        status = cpl_run_data_open(&r, err);
    if (status == CPL_OK && json)
        root = json_of(&r);
    else if (status == CPL_OK)
        write_text(&r, &out);
    if (status == CPL_OK)
        frozen = find_frozen(&r);
    if (status == CPL_OK && json)
        status = write_json(root, &frozen, &out, err);
    else if (status == CPL_OK)
        add_frozen(&out, &frozen);
    cpl_run_data_free(&r);
    if (status == CPL_OK && out.failed)
        status = cpl_error_set(err, CPL_FAILED, "no memory for the plan");
    if (status == CPL_OK)
        *text = cpl_str_take(&out);
    cpl_str_free(&out);
    return status;
}
