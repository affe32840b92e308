/* The command in a pipe: each line is answered before the next is sent, and memory does not grow with the lines. */
#include "api/api_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ANSWER_SECONDS = 60, ARGUMENTS = 12 };

static const char *binary;

static int find_binary(void **state)
{
    (void)state;
    binary = getenv("COUPLET_BINARY");
    signal(SIGPIPE, SIG_IGN); /* a command that died is an error of the test, not its end */
    return 0;
}

typedef struct command {
    pid_t child;
    int to, from;
} command;

/* `couplet words…` with a pipe at each end. The pipes are closed in the child, so that it sees the end of its input. */
static command start(const char *const *words)
{
    command c;
    int to[2], from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    c.child = fork();
    assert_true(c.child >= 0);
    if (c.child == 0) {
        char *arguments[ARGUMENTS + 2] = {strdup(binary)};
        for (int i = 0; words[i] && i < ARGUMENTS; i++)
            arguments[i + 1] = strdup(words[i]);
        dup2(to[0], 0);
        dup2(from[1], 1);
        dup2(open("/dev/null", O_WRONLY), 2);
        for (int i = 0; i < 2; i++)
            close(to[i]), close(from[i]);
        execv(binary, arguments);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    c.to = to[1];
    c.from = from[0];
    return c;
}

static void end(command *c, struct rusage *usage)
{
    int status;
    close(c->from);
    assert_int_equal(wait4(c->child, &status, 0, usage), c->child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Up to a line feed, which must come in time. */
static void read_line(const command *c, char line[65536])
{
    size_t n = 0;
    do {
        struct pollfd p = {.fd = c->from, .events = POLLIN};
        if (poll(&p, 1, ANSWER_SECONDS * 1000) <= 0) {
            kill(c->child, SIGKILL);
            fail_msg("no answer within %d seconds", ANSWER_SECONDS);
        }
        assert_int_equal(read(c->from, line + n, 1), 1);
    } while (line[n++] != '\n' && n < 65535);
    line[n] = '\0';
}

/* Sends line after line; each has `each` lines of an answer, in which `what` must stand. */
static void converse(const char *const *words, int each, const char *what)
{
    static const char *const lines[] = {"a b c\n", "d e f g h\n", "z\n", "a b c\n"};
    char *answer = cpl_alloc(1, 65536), *first = cpl_alloc(1, 65536);
    command c = start(words);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(write(c.to, lines[i], strlen(lines[i])), strlen(lines[i]));
        for (int k = 0; k < each; k++)
            read_line(&c, answer);
        assert_non_null(strstr(answer, what));
        if (i == 0)
            strcpy(first, answer);
    }
    if (!strstr(what, "|||")) /* whose lines have numbers */
        assert_string_equal(first, answer);
    close(c.to);
    struct rusage usage;
    end(&c, &usage);
    cpl_release(answer);
    cpl_release(first);
}

static void each_line_is_answered_before_the_next_is_sent(void **state)
{
    (void)state;
    place p;
    if (!binary || !*binary)
        skip();
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    const char *m = p.model;
    converse((const char *const[]){"generate", m, NULL}, 1, "\n");
    converse((const char *const[]){"generate", m, "--beam", "4", NULL}, 1, "\n");
    converse((const char *const[]){"generate", m, "--json", NULL}, 1, "\"text\"");
    converse((const char *const[]){"generate", m, "--beam", "3", "--nbest", "2", NULL}, 2, " ||| ");
    converse((const char *const[]){"generate", m, "--temperature", "1", "--top-k", "1", NULL}, 1, "\n");
    converse((const char *const[]){"encode", m, NULL}, 1, "\"vector\"");
    converse((const char *const[]){"encode", m, "--pool", "none", NULL}, 1, "\"vectors\"");
    place_remove(&p);
}

/* Sends `count` equal lines while reading the answers, which must be equal too. Returns the command's peak in KiB. */
static long peak_of(const char *const *words, int count)
{
    enum { TOGETHER = 100 };
    static const char line[] = "a b c d e f\n";
    char *answer = cpl_alloc(1, 65536), *first = cpl_alloc(1, 65536);
    struct rusage usage;
    command c = start(words);
    for (int i = 0; i < count; i++) {
        for (int k = 0; i % TOGETHER == 0 && k < TOGETHER; k++)
            assert_int_equal(write(c.to, line, sizeof line - 1), sizeof line - 1);
        read_line(&c, answer);
        if (i == 0)
            strcpy(first, answer);
        else if (strcmp(first, answer) != 0)
            fail_msg("answer %d of equal lines is '%s', the first '%s'", i, answer, first);
    }
    close(c.to);
    assert_int_equal(read(c.from, answer, 1), 0); /* one line each, and no more */
    end(&c, &usage);
    cpl_release(answer);
    cpl_release(first);
    return usage.ru_maxrss;
}

static void memory_does_not_grow_with_the_lines(void **state)
{
    (void)state;
    place p;
    if (!binary || !*binary || getenv("COUPLET_SANITIZED")) /* which keep what was freed */
        skip();
    place_make(&p);
    model_write(&p, lively, NULL, 0);
    const char *const generate[] = {"generate", p.model, "--threads", "1", NULL};
    const char *const search[] = {"generate", p.model, "--threads", "1", "--beam", "3", "--json", NULL};
    const char *const encode[] = {"encode", p.model, "--threads", "1", NULL};
    const char *const *const commands[] = {generate, search, encode};
    for (int i = 0; i < 3; i++) {
        long few = peak_of(commands[i], 1000), many = peak_of(commands[i], i == 0 ? 20000 : 5000);
        print_message("%s: %ld KiB for 1000 lines, %ld KiB for more\n", commands[i][0], few, many);
        assert_true(many <= few + 1024);
    }
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_answered_before_the_next_is_sent),
        cmocka_unit_test(memory_does_not_grow_with_the_lines),
    };
    return cmocka_run_group_tests(tests, find_binary, NULL);
}
