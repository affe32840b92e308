/* Vocabularies as text files: what is refused, and that the rest comes back byte by byte. */
#include "api/api_test.h"

#include "base/files.h"
#include "support/golden.h"
#include "text/text.h"

static void refuses(const char *file, cpl_tokens kind, const char *const *texts)
{
    char path[400];
    cpl_vocabulary *v;
    cpl_error error = CPL_ERROR_INIT;
    snprintf(path, sizeof path, "%s%s%s", *file == '/' ? "" : CPL_TEST_DATA, *file == '/' ? "" : "/cases/", file);
    assert_int_equal(cpl_vocabulary_read(&v, path, kind, &error), CPL_USAGE);
    for (; *texts; texts++)
        if (!strstr(error.line[0], *texts) && !strstr(error.hint, *texts))
            fail_msg("'%s' is not in: %s (%s)", *texts, error.line[0], error.hint);
}

#define REFUSES(file, kind, ...) refuses((file), (kind), (const char *const[]){__VA_ARGS__, NULL})

static void case_E07_duplicate_in_a_vocabulary(void **state)
{
    (void)state;
    REFUSES("E07_duplicate_vocab.txt", CPL_TOKENS_SPACE, "E07_duplicate_vocab.txt", "'house'", "lines 5 and 7",
            "ids 4 and 6");
}

static void case_E08_specials_in_another_order(void **state)
{
    (void)state;
    REFUSES("E08_specials_in_vocab.txt", CPL_TOKENS_SPACE, "line 1 is '<s>'", "[UNK], [START], [END] on lines 2 to 4",
            "if another line is the padding, move it", "same order");
}

static void case_E09_odd_lines_of_a_vocabulary(void **state)
{
    (void)state;
    REFUSES("E09_vocab_odd_lines.txt", CPL_TOKENS_SPACE, "6 lines", "line 6 is blank", "line 7 ' ' holds white space",
            "line 8 '\\xC2\\xA0' holds white space", "line 9 'b\\r' ends in a carriage return",
            "line 10 'c\\td' holds white space", "line 11 'the 118' holds white space", "a count follows a tab");
}

static void case_E09_a_vocabulary_comes_back(void **state)
{
    (void)state;
    static const char text[] = "\n[UNK]\n[START]\n[END]\nb\nä\n12\n";
    place p;
    char path[300], back[300], *data;
    size_t length;
    cpl_vocabulary *v;
    place_make(&p);
    place_write(&p, "v.txt", text);
    place_write(&p, "counts.txt", "[PAD]\n[UNK]\n[START]\n[END]\nb\t118\nä\t3\n12\t1"); /* no last line feed */
    for (int i = 0; i < 2; i++) {
        MUST(cpl_vocabulary_read(&v, place_file(&p, i ? "counts.txt" : "v.txt", path), CPL_TOKENS_WORD, err));
        assert_int_equal(cpl_vocabulary_size(v), 7);
        assert_int_equal(cpl_vocabulary_id(v, "12", 2), 6);
        MUST(cpl_vocabulary_write(v, place_file(&p, "back.txt", back), err));
        MUST(cpl_file_read(back, &data, &length, err));
        assert_string_equal(data, text);
        cpl_release(data);
        cpl_vocabulary_free(v);
    }
    place_write(&p, "v.txt", "\n[UNK]\n[START]\n[END]\n \na\n");
    MUST(cpl_vocabulary_read(&v, place_file(&p, "v.txt", path), CPL_TOKENS_CHAR, err));
    assert_int_equal(cpl_vocabulary_id(v, " ", 1), 4);
    cpl_vocabulary_free(v);
    REFUSES(path, CPL_TOKENS_WORD, "line 5 ' '");
    place_remove(&p);
}

static void case_C11_padding_is_not_first(void **state)
{
    (void)state;
    place p;
    char path[300];
    place_make(&p);
    place_write(&p, "v.txt", "the\ncat\nsat\n");
    REFUSES(place_file(&p, "v.txt", path), CPL_TOKENS_SPACE, "line 1 is 'the'", "must be the padding entry",
            "shift by one", "if another line is the padding, move it");
    place_remove(&p);
}

/* The first bytes of a SentencePiece model: its first pieces, "<unk>" (of type unknown) and "<s>". Whole models have
 * their tests in test_subwords.c. */
static void a_sentencepiece_model_is_no_word_list(void **state)
{
    (void)state;
    static const char model[] = "\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02\x0A\x0C\x0A\x03<s>\x15\0\0\0\0\x18\x03";
    place p;
    char path[300];
    place_make(&p);
    FILE *f = fopen(place_file(&p, "sp.model", path), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model, 1, sizeof model - 1, f), sizeof model - 1);
    assert_int_equal(fclose(f), 0);
    REFUSES(path, CPL_TOKENS_WORD, cpl_subwords_available() ? "SentencePiece model" : "this build has no subwords");
    place_write(&p, "list.txt", "\n[UNK]\n[START]\n[END]\na\n");
    REFUSES(place_file(&p, "list.txt", path), CPL_TOKENS_BPE, "is not a SentencePiece model, which tokens: bpe needs");
    place_write(&p, "sp.vocab", "<unk>\t0\n<s>\t0\n</s>\t0\n\xE2\x96\x81the\t-3.2\n");
    REFUSES(place_file(&p, "sp.vocab", path), CPL_TOKENS_WORD, "line 1 is '<unk>'");
    place_write(&p, "odd.txt", "\n\x0D\n\x05[UNK]\n"); /* begins alike, and is a word list gone wrong */
    REFUSES(place_file(&p, "odd.txt", path), CPL_TOKENS_WORD, "line 2 is '\\r'");
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_E07_duplicate_in_a_vocabulary),
        cmocka_unit_test(case_E08_specials_in_another_order),
        cmocka_unit_test(case_E09_odd_lines_of_a_vocabulary),
        cmocka_unit_test(case_E09_a_vocabulary_comes_back),
        cmocka_unit_test(case_C11_padding_is_not_first),
        cmocka_unit_test(a_sentencepiece_model_is_no_word_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
