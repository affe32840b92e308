/* page.c: usage and help pages, made from options.def and the words below. */
#include "cli/cli.h"

#include <string.h>

/* What a page says beyond its options. */
typedef struct page {
    const char *name, *description, *examples;
} page;

static const page pages[] = {
    {"train",
     "Fits the model that CONFIG.yaml describes on its training pairs. A line on the data comes first,\n"
     "then progress; at each validation a few translations are shown as source, reference and output.\n"
     "\n"
     "DIR/model.safetensors is the best model so far, DIR/checkpoint.safetensors the latest state and\n"
     "DIR/log.jsonl the history. A DIR that holds a run is only touched with --resume or --overwrite.\n"
     "On Ctrl-C the state is saved and --resume goes on from it; a second Ctrl-C ends at once.\n"
     "\n"
     "--profile says at the end, also after Ctrl-C, where the time went. Phases: waiting for data,\n"
     "feeding, forward, backward, optimizer, validation, translating examples, saving; no moment counts\n"
     "twice. Nodes: each layer's operations, forward and backward ('again': recomputed to save memory),\n"
     "with calls and milliseconds a step, share of the steps' time, GFLOP/s and their share of the\n"
     "multiply-add peak, which is measured for 50 ms. 'busy' is the share of the threads' time in which\n"
     "they computed. DIR/profile.json has all of it, and the first 10 steps and batches of validation\n"
     "as a trace, which chrome://tracing and ui.perfetto.dev open. Results stay the same to the bit.\n"
     "\n"
     "'couplet help config' lists the keys of a configuration.",
     "couplet train de-en.yaml\n"
     "couplet train de-en.yaml -o small --set model.units=128 --set training.epochs=10\n"
     "couplet train de-en.yaml --resume\n"
     "couplet train de-en.yaml -o profiled --profile --set training.max_steps=100"},
    {"plan",
     "Reads the data and builds the model as training would, and prints what it would cost: a data\n"
     "report, the layers with shapes and parameter counts, operations for each step, and exact memory\n"
     "by part.",
     "couplet plan de-en.yaml\n"
     "couplet plan de-en.yaml --set model.units=512 --json"},
    {"generate",
     "Writes exactly one line for each line read, in order; a blank line stays blank. It reads ahead at\n"
     "most one batch and never waits for input while it owes an answer. MODEL is a model.safetensors or\n"
     "the folder of a run. Several are an ensemble: each step's probabilities are the mean of theirs.\n"
     "They need the same target vocabulary; each reads the source by its own rules.",
     "echo 'ein mann fährt fahrrad .' | couplet generate de-en\n"
     "couplet generate de-en/model.safetensors -i test.de -o test.en\n"
     "couplet generate run-1 run-2 run-3 --beam 5 -i test.de"},
    {"evaluate",
     "Generates from the sources of PAIRS.tsv and scores the outputs against its targets; or, with\n"
     "--outputs, scores lines that are already there. Both sides pass the target's text rules, unless\n"
     "--raw is given. Scores are printed with the signature that makes them comparable: BLEU and chrF\n"
     "equal sacreBLEU's, ROUGE rouge-score's. BLEU, chrF and ROUGE go from 0 to 100, the others from 0\n"
     "to 1, where token_error_rate can exceed 1; of several references (--group source) it takes the\n"
     "nearest, and exact any.\n"
     "\n"
     "With --baseline, p is the probability of a difference as large as the one seen if the systems\n"
     "were equally good, by paired bootstrap as sacreBLEU computes it.",
     "couplet evaluate de-en test.tsv\n"
     "couplet evaluate de-en test.tsv --metric bleu,exact --json\n"
     "couplet evaluate --outputs test.en test.tsv --metric bleu,chrf --bootstrap 1000\n"
     "couplet evaluate --outputs new.en --baseline old.en test.tsv"},
    {"score",
     "Prints, for each line of PAIRS.tsv, the natural logarithm of the probability that MODEL gives to\n"
     "the target, END included, when it reads the source: the sum over the target's tokens. A token\n"
     "that the model does not know counts as [UNK]; an empty side or a blank line gets its number too.\n"
     "With --json also the tokens and the logarithm of each.",
     "couplet score de-en test.tsv\n"
     "couplet score de-en test.tsv --json"},
    {"new",
     "Looks at the pairs, source<TAB>target a line (.gz too), and writes a configuration to standard output: how\n"
     "text is split, how large the model is, how long it trains, each with the measured reason. A valid.tsv or\n"
     "dev.tsv beside the pairs is used for validation. A relative PAIRS.tsv is relative to the folder where the\n"
     "configuration will be: redirect into the current one.",
     "couplet new de-en.tsv > de-en.yaml\n"
     "couplet train de-en.yaml"},
    {"inspect",
     "Prints a model file's options, layers, sizes, training history and the checksum of each tensor.",
     "couplet inspect de-en/model.safetensors"},
    {"vocabulary",
     "Builds a vocabulary from one column of FILE.tsv, or from both together; a text of one column will\n"
     "do. Words, characters and bytes become a list with a token a line: padding, [UNK], [START], [END],\n"
     "then by frequency; bpe and unigram become a SentencePiece model. text.*.vocabulary of a\n"
     "configuration reads either, so that several models have one vocabulary. Prints how much of the text\n"
     "the vocabulary covers.",
     "couplet vocabulary train.tsv --column target --size 8000 -o en.txt\n"
     "couplet vocabulary train.tsv --column both --kind bpe --size 8000 -o shared.model"},
    {"import",
     "Makes a model of a .weights.h5 that Keras saved. CONFIG.yaml says what the model is; the weights\n"
     "are found by the attribute paths of the tutorial's classes (encoder/embedding, encoder/rnn/...,\n"
     "decoder/attention/mha/query_dense, ...), or by those of --map. What is missing, left over or of\n"
     "another shape is named, and then nothing is written. Source padding must have been masked when\n"
     "the model was trained (mask_zero): Couplet has no padding.",
     "couplet import keras de-en.weights.h5 --config de-en.yaml --source-vocabulary de.txt \\\n"
     "    --target-vocabulary en.txt -o de-en.safetensors"},
    {"average",
     "Writes a model whose weights are the mean of those of the given models, files or folders of runs: as a\n"
     "rule the last ones of one run, which training.keep leaves in its folder. They must have the same shape,\n"
     "vocabularies and text rules; what differs is named.",
     "couplet train de-en.yaml --set training.keep=5\n"
     "couplet average de-en/model-*.safetensors -o de-en.safetensors"},
    {"quantize",
     "Writes a copy of MODEL, a model file or the folder of a run, whose matrices are of a smaller type:\n"
     "int8 has a scale for each output of a product and turns what is multiplied into bytes as well,\n"
     "bfloat16 cuts the weights to 8 significant bits. Biases and norms stay float32. The result generates,\n"
     "evaluates, scores and encodes like any model, with outputs that differ a little; it does not train,\n"
     "and MODEL is needed for that, for average and for export.",
     "couplet quantize de-en -o de-en.int8.safetensors\n"
     "couplet quantize de-en --type bfloat16 -o de-en.bf16.safetensors\n"
     "couplet evaluate de-en.int8.safetensors test.tsv"},
    {"export",
     "Writes the weights of MODEL, a model file or the folder of a run, under the names that the\n"
     "tutorial's classes have in Keras: load_weights reads them into a model of the same sizes.",
     "couplet export keras de-en -o de-en.weights.h5"},
    {"bench",
     "Measures training steps of the reference models (translator, autoencoder, summarizer), greedy\n"
     "decoding (decode), products alone (kernels), and what the processor can do at most with the\n"
     "instruction set in use: a share is of that. WORK names some of these; growth, how time and memory\n"
     "of a translator's step grow with batch and lengths, is measured only when it is named. Weights,\n"
     "words and lengths are made up, the same each time. COUPLET_ISA chooses another instruction set.",
     "couplet bench\n"
     "couplet bench translator --set model.units=1024 --vocabulary 32000 --precision bfloat16\n"
     "couplet bench decode --model de-en/model.safetensors --batch 1 --threads 1\n"
     "couplet bench kernels --json"},
};

/* Prints text with every line indented. */
static void indented(const char *text, int spaces, FILE *to)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");
        fprintf(to, "%*s%.*s\n", n == 0 ? 0 : spaces, "", n, text);
        text += n + (text[n] == '\n');
    }
}

/* "--max-length N", "-o DIR", "--resume". */
static void option_use(const cpl_cli_option *o, char *buffer, size_t size)
{
    char name[64];
    snprintf(buffer, size, "%s%s%s", cpl_cli_option_text(o, name), o->meta[0] == '\0' ? "" : " ", o->meta);
}

/* The usage line, broken before column 100; "--resume | --overwrite" follows from the two excluding each other. */
static void usage_line(const cpl_cli_command *c, FILE *to)
{
    char use[96];
    int column = fprintf(to, "    couplet %s %s", c->name, c->positional);
    for (int i = 0; i < c->count; i++) {
        option_use(&c->options[i], use, sizeof use);
        int width = (int)strlen(use) + 3;
        if (column + width > 98)
            column = fprintf(to, "\n           ") - 1;
        column += fprintf(to, " [%s]%s", use, c->options[i].kind == CPL_CLI_TEXTS ? "..." : "");
    }
    fputc('\n', to);
}

void cpl_cli_page(const cpl_cli_command *command, FILE *to)
{
    const page *p = NULL;
    char use[96];
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strcmp(pages[i].name, command->name) == 0)
            p = &pages[i];
    fprintf(to, "couplet %s: %s\n\nUsage:\n", command->name, command->summary);
    usage_line(command, to);
    if (p != NULL) {
        fprintf(to, "\n");
        indented(p->description, 0, to);
    }
    fprintf(to, "\nOptions:\n");
    for (int i = 0; i < command->count; i++) {
        option_use(&command->options[i], use, sizeof use);
        fprintf(to, "    %s\n", use);
        indented(command->options[i].help, 8, to);
    }
    fprintf(to, "    -h, --help\n        this page\n");
    if (p != NULL) {
        fprintf(to, "\nExamples:\n");
        indented(p->examples, 4, to);
    }
    fprintf(to, "\nExit status: 0 done, 1 failed, 2 wrong usage, configuration or data%s.\n",
            strcmp(command->name, "train") == 0 ? ",\n130 or 143 stopped by Ctrl-C or SIGTERM after saving" : "");
}

void cpl_cli_usage(FILE *to)
{
    fprintf(to, "usage: couplet COMMAND [ARGUMENT]...\n\ncommands:");
    for (int i = 0; i < CPL_CLI_COMMAND_COUNT; i++)
        fprintf(to, " %s", cpl_cli_command_at(i)->name);
    fprintf(to, " help\n'couplet help' says what they do\n");
}

void cpl_cli_overview(FILE *to)
{
    char use[64];
    fprintf(to, "Couplet learns from pairs of lines to turn one text into another.\n\n"
                "Usage:\n    couplet COMMAND [ARGUMENT]...\n\nCommands:\n");
    for (int i = 0; i < CPL_CLI_COMMAND_COUNT; i++) {
        const cpl_cli_command *c = cpl_cli_command_at(i);
        snprintf(use, sizeof use, "%s %s", c->name, c->positional);
        fprintf(to, "    %-30s %s\n", use, c->summary);
    }
    fprintf(to, "    %-30s %s\n", "help [COMMAND]", "the page of a command");
    fprintf(to, "    %-30s %s\n", "help config", "every key of a configuration with its default");
    fprintf(to, "\nOptions:\n    %-30s %s\n    %-30s %s\n", "-h, --help", "this page", "--version",
            "version, libraries and the kernels chosen");
    fprintf(to, "\nA first run:\n"
                "    couplet new pairs.tsv > first.yaml     # lines: source, a tab, target\n"
                "    couplet train first.yaml\n"
                "    echo 'some text' | couplet generate first\n");
}
