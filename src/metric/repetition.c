/* repetition.c: as in metric.c, a split line has one space between tokens, so a trigram is a slice of it. */
#include "metric/repetition.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"

/* The token that begins at `begin` ends here. */
static size_t token_end(const cpl_str *line, size_t begin)
{
    const char *space = memchr(line->data + begin, ' ', line->length - begin);
    return space ? (size_t)(space - line->data) : line->length;
}

/* Every token of the source into map. Returns 0, or -1 without memory. */
static int note_source(cpl_map *map, const cpl_str *source)
{
    for (size_t at = 0, end; at < source->length; at = end + 1) {
        end = token_end(source, at);
        if (!cpl_map_insert(map, source->data + at, end - at, NULL))
            return -1;
    }
    return 0;
}

static int count(cpl_repetition_counts *c, const cpl_str *output, const cpl_map *source, cpl_map *seen)
{
    size_t before = 0, last = 0; /* where the two tokens before the one at hand begin */
    uint64_t tokens = 0;
    for (size_t at = 0, end; at < output->length; at = end + 1) {
        end = token_end(output, at);
        c->copied += cpl_map_find(source, output->data + at, end - at) != NULL;
        if (++tokens > 2) {
            int is_new;
            if (!cpl_map_insert(seen, output->data + before, end - before, &is_new))
                return -1;
            c->trigrams++;
            c->repeated += !is_new;
        }
        before = last;
        last = at;
    }
    c->tokens += tokens;
    return 0;
}

cpl_status cpl_repetition_add(cpl_repetition_counts *c, cpl_bleu_split split, cpl_metric_text output,
                              cpl_metric_text source, cpl_error *err)
{
    cpl_repetition_counts sum = *c; /* stays as it was when memory is short */
    cpl_str lines[2] = {{0}, {0}};
    cpl_map *of_source = cpl_map_new(), *seen = cpl_map_new();
    cpl_bleu_split_line(split, output.text, output.length, &lines[0]);
    cpl_bleu_split_line(split, source.text, source.length, &lines[1]);
    int failed = lines[0].failed || lines[1].failed || !of_source || !seen || note_source(of_source, &lines[1]) ||
                 count(&sum, &lines[0], of_source, seen);
    cpl_map_free(of_source);
    cpl_map_free(seen);
    cpl_str_free(&lines[0]);
    cpl_str_free(&lines[1]);
    if (failed)
        CPL_FAIL(err, CPL_FAILED, "no memory for scoring a line of %zu bytes", output.length);
    *c = sum;
    return CPL_OK;
}

double cpl_repeated_trigrams(const cpl_repetition_counts *c)
{
    return c->trigrams ? (double)c->repeated / (double)c->trigrams : 0;
}

double cpl_copy_rate(const cpl_repetition_counts *c)
{
    return c->tokens ? (double)c->copied / (double)c->tokens : 0;
}

char *cpl_repetition_signature(cpl_bleu_split split, char *buffer, size_t size)
{
    snprintf(buffer, size, "case:mixed|tok:%s|version:couplet-" CPL_VERSION_STRING, cpl_bleu_split_name(split));
    return buffer;
}
