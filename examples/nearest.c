/* nearest.c: sentences that are alike, by the vectors of an encoder (of an autoencoder, or of any other model).
 *
 *   nearest MODEL SENTENCES [N] < queries
 *
 * For each line of standard input: the N (default 5) nearest sentences of the file (the first column of a .tsv), by the
 * cosine of the means over their tokens. MODEL may be an encoder alone, as `couplet extract MODEL encoder` writes it.
 * paraphrases.c measures what such vectors are worth. */
#include <couplet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sentence {
    char *text;
    float *vector; /* [width], of length 1 */
    double score;
} sentence;

typedef struct collection {
    cpl_model *model;
    sentence *items;
    size_t count;
    int64_t width;
} collection;

/* A vector of length 1: the cosine of two such vectors is their product. */
static cpl_status encode(collection *c, const char *text, float **vector, cpl_error *err)
{
    int64_t shape[2];
    double square = 0;
    cpl_status status = cpl_encode(vector, shape, c->model, text, CPL_POOL_MEAN, err);
    if (status != CPL_OK)
        return status;
    c->width = shape[1];
    for (int64_t k = 0; k < c->width; k++)
        square += (double)(*vector)[k] * (double)(*vector)[k];
    for (int64_t k = 0; k < c->width && square > 0; k++)
        (*vector)[k] /= (float)sqrt(square);
    return CPL_OK;
}

/* The lines of a file, each up to its first tab. */
static cpl_status read_sentences(collection *c, FILE *in, cpl_error *err)
{
    char *line = NULL;
    size_t capacity = 0;
    cpl_status status = CPL_OK;
    while (status == CPL_OK && getline(&line, &capacity, in) >= 0) {
        line[strcspn(line, "\t\r\n")] = '\0';
        sentence *more = realloc(c->items, (c->count + 1) * sizeof *more);
        if (!more || !(more[c->count].text = strdup(line)))
            return fputs("out of memory\n", stderr), exit(1), CPL_FAILED;
        c->items = more;
        c->items[c->count].vector = NULL;
        status = encode(c, line, &c->items[c->count++].vector, err);
    }
    free(line);
    return status;
}

static int by_score(const void *a, const void *b)
{
    double x = ((const sentence *)a)->score, y = ((const sentence *)b)->score;
    return (x < y) - (x > y);
}

static cpl_status answer(collection *c, const char *query, size_t most, cpl_error *err)
{
    float *x;
    cpl_status status = encode(c, query, &x, err);
    if (status != CPL_OK)
        return status;
    for (size_t i = 0; i < c->count; i++) {
        c->items[i].score = 0;
        for (int64_t k = 0; k < c->width; k++)
            c->items[i].score += (double)x[k] * (double)c->items[i].vector[k];
    }
    cpl_free(x);
    qsort(c->items, c->count, sizeof *c->items, by_score);
    printf("%s\n", query);
    for (size_t i = 0; i < most && i < c->count; i++)
        printf("  %.3f  %s\n", c->items[i].score, c->items[i].text);
    return fflush(stdout) ? CPL_FAILED : CPL_OK;
}

int main(int argc, char **argv)
{
    cpl_error err = CPL_ERROR_INIT;
    collection c = {0};
    char *line = NULL;
    size_t capacity = 0, most = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
    FILE *in = argc > 2 ? fopen(argv[2], "r") : NULL;
    if (!in || argc > 4 || most == 0)
        return fputs("usage: nearest MODEL SENTENCES [N] < queries\n", stderr), 2;
    cpl_status status = cpl_model_open(&c.model, argv[1], 0, &err);
    if (status == CPL_OK)
        status = read_sentences(&c, in, &err);
    fclose(in);
    while (status == CPL_OK && getline(&line, &capacity, stdin) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        status = answer(&c, line, most, &err);
    }
    if (status != CPL_OK)
        cpl_error_print(&err, stderr);
    for (size_t i = 0; i < c.count; i++) {
        free(c.items[i].text);
        cpl_free(c.items[i].vector);
    }
    free(c.items);
    free(line);
    cpl_model_close(c.model);
    return (int)status;
}
