/* paraphrases.c: do the vectors of an encoder mean something? A measure, against counting words.
 *
 *   paraphrases MODEL PAIRS.tsv [PAIRS.tsv]...
 *
 * Sentences of the first column that share a translation (second column) are paraphrases. Of each sentence that has one
 * in the set: is the sentence nearest to it by cosine, among all others, a paraphrase? Of several equally near ones the
 * share counts. Printed in percent for the three ways to pool a sentence's vectors, as they are and with the mean of all
 * sentences subtracted, and for words: counts, and counts weighed by how rare a word is. */
#include <couplet.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20000, MOST_WORDS = 60, LONGEST = 40 };

typedef struct pair {
    char *source, *target;
} pair;

typedef struct word {
    int id;
    float weight;
} word;

typedef struct sentence {
    const char *text;
    int first_group, groups; /* its pairs, whose targets are the translations */
    float *vector;
    word words[MOST_WORDS];  /* by id */
    int word_count;
} sentence;

static pair pairs[MOST];
static sentence sentences[MOST];
static char vocabulary[MOST][LONGEST];
static int in_sentences[MOST]; /* of each word */
static int pair_count, count, vocabulary_size;
static int64_t width;

static int by_target(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->target, ((const pair *)b)->target);
}

static int by_source(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->source, ((const pair *)b)->source);
}

static int by_id(const void *a, const void *b)
{
    return ((const word *)a)->id - ((const word *)b)->id;
}

static int read_pairs(const char *path)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    while (in && pair_count < MOST && getline(&line, &capacity, in) >= 0) {
        char *tab = strchr(line, '\t');
        if (!tab)
            break;
        tab[strcspn(tab, "\r\n")] = '\0';
        pairs[pair_count].target = strdup(tab + 1);
        *tab = '\0';
        pairs[pair_count++].source = strdup(line);
    }
    int read = in && feof(in);
    free(line);
    return in ? fclose(in), read : 0;
}

/* Each source once, with the numbers of its translations. */
static void make_sentences(void)
{
    qsort(pairs, (size_t)pair_count, sizeof *pairs, by_target);
    for (int i = 1; i < pair_count; i++) /* a target that is the same is the same string from here */
        if (strcmp(pairs[i].target, pairs[i - 1].target) == 0)
            free(pairs[i].target), pairs[i].target = pairs[i - 1].target;
    qsort(pairs, (size_t)pair_count, sizeof *pairs, by_source);
    for (int i = 0; i < pair_count; i++) {
        if (i == 0 || strcmp(pairs[i].source, pairs[i - 1].source) != 0)
            sentences[count++] = (sentence){.text = pairs[i].source, .first_group = i};
        sentences[count - 1].groups++;
    }
}

static int are_paraphrases(const sentence *a, const sentence *b)
{
    for (int i = 0; i < a->groups; i++)
        for (int k = 0; k < b->groups; k++)
            if (pairs[a->first_group + i].target == pairs[b->first_group + k].target)
                return 1;
    return 0;
}

/* ---- nearness: the product of vectors of length 1 ---- */

static double of_vectors(const sentence *a, const sentence *b)
{
    double sum = 0;
    for (int64_t k = 0; k < width; k++)
        sum += (double)(a->vector[k] * b->vector[k]);
    return sum;
}

static double of_words(const sentence *a, const sentence *b)
{
    double sum = 0;
    for (int i = 0, k = 0; i < a->word_count && k < b->word_count;) {
        int order = a->words[i].id - b->words[k].id;
        if (order == 0)
            sum += (double)(a->words[i].weight * b->words[k].weight);
        i += order <= 0;
        k += order >= 0;
    }
    return sum;
}

static void measure(const char *name, double (*nearness)(const sentence *, const sentence *))
{
    double found = 0;
    int asked = 0;
    for (int i = 0; i < count; i++) {
        double most = -2;
        int ties = 0, right = 0, has = 0;
        for (int k = 0; k < count; k++) {
            if (k == i)
                continue;
            double near = nearness(&sentences[i], &sentences[k]);
            int is = are_paraphrases(&sentences[i], &sentences[k]);
            has |= is;
            if (near > most)
                most = near, ties = right = 0;
            ties += near == most;
            right += near == most && is;
        }
        asked += has;
        found += has ? (double)right / ties : 0;
    }
    printf("%-20s %6.2f %% of %d\n", name, 100 * found / asked, asked);
}

/* ---- the encoder ---- */

static void normalize(float *x, const double *mean)
{
    double square = 0;
    for (int64_t k = 0; k < width; k++) {
        x[k] -= (float)mean[k];
        square += (double)x[k] * (double)x[k];
    }
    for (int64_t k = 0; k < width; k++)
        x[k] /= (float)sqrt(square > 0 ? square : 1);
}

static cpl_status measure_pool(cpl_model *model, cpl_pool_kind pool, const char *name, int centred, cpl_error *err)
{
    double *mean = NULL;
    char title[40];
    for (int i = 0; i < count; i++) {
        int64_t shape[2];
        cpl_status status = cpl_encode(&sentences[i].vector, shape, model, sentences[i].text, pool, err);
        if (status != CPL_OK)
            return status;
        width = shape[1];
        mean = mean ? mean : calloc((size_t)width, sizeof *mean);
        for (int64_t k = 0; centred && k < width; k++)
            mean[k] += (double)sentences[i].vector[k] / count;
    }
    for (int i = 0; i < count; i++)
        normalize(sentences[i].vector, mean);
    snprintf(title, sizeof title, "%s%s", name, centred ? ", centred" : "");
    measure(title, of_vectors);
    for (int i = 0; i < count; i++)
        cpl_free(sentences[i].vector);
    free(mean);
    return CPL_OK;
}

/* ---- words ---- */

/* A new word where there is room; when there is none, the last one. */
static int word_id(const char *text)
{
    int i = 0;
    while (i < vocabulary_size && strcmp(vocabulary[i], text) != 0)
        i++;
    if (i == MOST)
        return MOST - 1;
    if (i == vocabulary_size)
        strcpy(vocabulary[vocabulary_size++], text);
    return i;
}

static void add_word(sentence *s, const char *text)
{
    int id = word_id(text), i = 0;
    while (i < s->word_count && s->words[i].id != id)
        i++;
    if (i == MOST_WORDS)
        return;
    if (i == s->word_count) {
        s->words[s->word_count++] = (word){.id = id};
        in_sentences[id]++;
    }
    s->words[i].weight++;
}

/* Runs of letters, digits, apostrophes and bytes beyond ASCII, in lower case. */
static void split(sentence *s)
{
    char now[LONGEST];
    int n = 0;
    for (const char *c = s->text;; c++) {
        if (isalnum((unsigned char)*c) || *c == '\'' || (unsigned char)*c >= 128) {
            if (n < LONGEST - 1)
                now[n++] = (char)tolower((unsigned char)*c);
            continue;
        }
        now[n] = '\0';
        if (n > 0)
            add_word(s, now);
        n = 0;
        if (!*c)
            return;
    }
}

static void weigh(int rare)
{
    for (int i = 0; i < count; i++) {
        sentence *s = &sentences[i];
        double square = 0;
        for (int k = 0; k < s->word_count; k++) {
            s->words[k].weight *= rare ? (float)log((double)count / in_sentences[s->words[k].id]) : 1;
            square += (double)(s->words[k].weight * s->words[k].weight);
        }
        for (int k = 0; k < s->word_count && square > 0; k++)
            s->words[k].weight /= (float)sqrt(square);
    }
}

static void measure_words(void)
{
    for (int i = 0; i < count; i++) {
        split(&sentences[i]);
        qsort(sentences[i].words, (size_t)sentences[i].word_count, sizeof(word), by_id);
    }
    weigh(0);
    measure("words", of_words);
    weigh(1);
    measure("words, rare ones", of_words);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"mean", NULL, "last", "max"};
    cpl_error err = CPL_ERROR_INIT;
    cpl_model *model = NULL;
    for (int i = 2; i < argc; i++)
        if (!read_pairs(argv[i]))
            return fprintf(stderr, "cannot use '%s': not there, not pairs, or too many\n", argv[i]), 2;
    if (argc < 3)
        return fputs("usage: paraphrases MODEL PAIRS.tsv...\n", stderr), 2;
    make_sentences();
    cpl_status status = cpl_model_open(&model, argv[1], 0, &err);
    for (int pool = CPL_POOL_MEAN; pool <= CPL_POOL_MAX; pool++)
        for (int centred = 0; centred < 2 && names[pool]; centred++)
            status = status ? status : measure_pool(model, (cpl_pool_kind)pool, names[pool], centred, &err);
    if (status == CPL_OK)
        measure_words();
    else
        cpl_error_print(&err, stderr);
    cpl_model_close(model);
    return (int)status;
}
