/* display.c: training as a person sees it, on stderr.
 *
 * A line that stays for each epoch and validation, three lines for each example, and between them either one line that
 * is drawn over (bar) or a line now and then (plain). Nothing blinks: at most ten drawings a second. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE = 512, BAR_MOST = 30, BAR_LEAST = 8 };

#define REDRAW_SECONDS 0.1 /* between two drawings of the bar */
#define PLAIN_SECONDS 10.0 /* between two lines of steps */

/* ---- the terminal ---- */

static int is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') /* the first that is set decides, as in setlocale */
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL || strstr(value, "utf-8") != NULL;
    }
    return 0;
}

static int columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void cpl_cli_display_start(cpl_cli_display *d, const char *mode)
{
    const char *terminal = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    int capable = isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
    memset(d, 0, sizeof *d);
    d->mode = capable ? CPL_CLI_PROGRESS_BAR : CPL_CLI_PROGRESS_PLAIN;
    if (mode != NULL && strcmp(mode, "plain") == 0)
        d->mode = CPL_CLI_PROGRESS_PLAIN;
    if (mode != NULL && strcmp(mode, "none") == 0)
        d->mode = CPL_CLI_PROGRESS_NONE;
    d->unicode = is_utf8();
    d->colour = capable && (no_colour == NULL || no_colour[0] == '\0');
    d->last = -PLAIN_SECONDS;
}

/* Takes the bar away, so that a line can be printed where it stood. */
static void clear_bar(cpl_cli_display *d)
{
    if (d->drawn)
        fputs("\r\033[K", stderr);
    d->drawn = 0;
}

/* ---- pieces of a line ---- */

static void add(char line[LINE], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char line[LINE], const char *format, ...)
{
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, LINE - used, format, arguments);
    va_end(arguments);
}

/* "42s", "3:07", "1:02:03", "2d 3h". */
static void add_time(char line[LINE], double seconds)
{
    long long s = (long long)(seconds + 0.5);
    if (s < 60)
        add(line, "%llds", s);
    else if (s < 3600)
        add(line, "%lld:%02lld", s / 60, s % 60);
    else if (s < 86400)
        add(line, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        add(line, "%lldd %lldh", s / 86400, s / 3600 % 24);
}

static void add_rate(char line[LINE], double tokens, const char *unit)
{
    if (!(tokens > 0) || !isfinite(tokens))
        return;
    if (tokens >= 1000)
        add(line, "  %.*fk %s", tokens < 99950 ? 1 : 0, tokens / 1000, unit);
    else
        add(line, "  %.0f %s", tokens, unit);
}

static void add_epoch(char line[LINE], const cpl_progress_event *e)
{
    add(line, "epoch %" PRId64, e->epoch);
    if (e->epochs > 0)
        add(line, "/%" PRId64, e->epochs);
}

static void add_figures(char line[LINE], const cpl_progress_event *e)
{
    add(line, "  loss %.4f  accuracy %.3f", e->loss, e->accuracy);
}

/* An epoch that was not validated has neither figure; a loss that is not a number is shown. */
static void add_validation(char line[LINE], const cpl_progress_event *e)
{
    if ((isnan(e->val_loss) && isnan(e->val_accuracy)) || (e->val_loss == 0 && e->val_accuracy == 0))
        return;
    add(line, "  val_loss %.4f  val_accuracy %.3f", e->val_loss, e->val_accuracy);
    if (e->val_figures != NULL && e->val_figures[0] != '\0')
        add(line, "  %s", e->val_figures);
}

static void add_left(char line[LINE], const cpl_progress_event *e)
{
    if (!(e->seconds_left > 0) || !isfinite(e->seconds_left))
        return;
    add(line, "  ");
    add_time(line, e->seconds_left);
    add(line, " left");
}

/* ---- steps ---- */

/* Writes a bar of `width` columns, `done` of it filled. The half glyph at the edge doubles the resolution. */
static void add_bar(char line[LINE], const cpl_cli_display *d, int width, double done)
{
    int halves = (int)(done * 2 * width + 0.5);
    if (d->colour)
        add(line, "\033[36m");
    for (int i = 0; i < width; i++) {
        int rest = halves - 2 * i;
        if (rest == 1 && d->colour)
            add(line, "%s\033[2m", d->unicode ? "╸" : "-");
        else if (rest > 0)
            add(line, "%s", d->unicode ? (rest == 1 ? "╸" : "━") : "#");
        else
            add(line, "%s%s", rest == 0 && d->colour ? "\033[2m" : "", d->unicode ? "─" : ".");
    }
    if (d->colour)
        add(line, "\033[0m");
}

/* What stands right of the bar; shorter words for narrow terminals. */
static void step_figures(char line[LINE], const cpl_progress_event *e, int narrow)
{
    line[0] = '\0';
    if (e->steps_in_epoch > 0)
        add(line, "%" PRId64 "/%" PRId64, e->step_in_epoch, e->steps_in_epoch);
    else
        add(line, "step %" PRId64, e->step);
    if (narrow)
        add(line, "  loss %.3f  acc %.3f", e->loss, e->accuracy);
    else
        add_figures(line, e);
    add_rate(line, e->tokens_per_second, narrow ? "tok/s" : "tokens/s");
    add_left(line, e);
}

/* "epoch 3/100  ━━━━━━╸─────  412/1200  loss 1.2345  accuracy 0.612  12.3k tokens/s  1:23 left": the bar takes the
 * room that the figures leave; a narrow terminal gets shorter words, then no bar, then fewer figures. */
static void draw_step(cpl_cli_display *d, const cpl_progress_event *e)
{
    char left[LINE] = "", right[LINE] = "", line[LINE] = "";
    int width = columns() - 1, room = 0;
    add_epoch(left, e);
    for (int narrow = 0; narrow < 2 && room < BAR_LEAST; narrow++) {
        step_figures(right, e, narrow);
        room = width - (int)strlen(left) - (int)strlen(right) - 4;
    }
    if (room >= BAR_LEAST && e->steps_in_epoch > 0) {
        add(line, "%s  ", left);
        add_bar(line, d, room > BAR_MOST ? BAR_MOST : room, (double)e->step_in_epoch / (double)e->steps_in_epoch);
        add(line, "  %s", right);
    } else {
        add(line, "%s  %s", left, right);
        if ((int)strlen(line) > width)
            line[width] = '\0'; /* no bar: one byte is one column */
    }
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    d->drawn = 1;
}

static void show_step(cpl_cli_display *d, const cpl_progress_event *e)
{
    char line[LINE] = "";
    double wait = d->mode == CPL_CLI_PROGRESS_BAR ? REDRAW_SECONDS : PLAIN_SECONDS;
    int last = e->steps_in_epoch > 0 && e->step_in_epoch == e->steps_in_epoch;
    if (e->elapsed_seconds < d->last) /* a resumed run counts on, an overwritten one starts again */
        d->last = e->elapsed_seconds - wait;
    if (e->elapsed_seconds - d->last < wait && !(last && d->mode == CPL_CLI_PROGRESS_BAR))
        return;
    d->last = e->elapsed_seconds;
    if (d->mode == CPL_CLI_PROGRESS_BAR) {
        draw_step(d, e);
        return;
    }
    add_epoch(line, e);
    add(line, "  step %" PRId64, e->step);
    add_figures(line, e);
    add_rate(line, e->tokens_per_second, "tokens/s");
    add_left(line, e);
    fprintf(stderr, "%s\n", line);
}

/* ---- lines that stay ---- */

/* Text of a data file may hold anything: what a terminal would obey becomes a space. Lines of a report stay lines. */
static void put_text(const char *text, int keep_lines)
{
    for (const unsigned char *p = (const unsigned char *)(text == NULL ? "" : text); *p != '\0'; p++) {
        int c1 = p[0] == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F;
        int odd = (*p < 0x20 && !(keep_lines && *p == '\n')) || *p == 0x7F || c1;
        fputc(odd ? ' ' : *p, stderr);
        p += c1;
    }
}

static void show_example(cpl_cli_display *d, const cpl_progress_event *e)
{
    const char *dim = d->colour ? "\033[2m" : "", *plain = d->colour ? "\033[0m" : "";
    const char *const names[] = {"source   ", "reference", "output   "};
    const char *const texts[] = {e->source, e->reference, e->output};
    clear_bar(d);
    for (int i = 0; i < 3; i++) {
        fprintf(stderr, "  %s%s%s  ", dim, names[i], plain);
        put_text(texts[i], 0);
        fputc('\n', stderr);
    }
    fputc('\n', stderr);
}

static void show_epoch(cpl_cli_display *d, const cpl_progress_event *e)
{
    char line[LINE] = "";
    clear_bar(d);
    add_epoch(line, e);
    add_figures(line, e);
    add_validation(line, e);
    add(line, "  ");
    add_time(line, e->elapsed_seconds);
    fprintf(stderr, "%s\n", line);
}

/* At the end of an epoch its own line has the figures. */
static void show_validation(cpl_cli_display *d, const cpl_progress_event *e)
{
    char line[LINE] = "";
    if (e->steps_in_epoch > 0 && e->step_in_epoch >= e->steps_in_epoch)
        return;
    clear_bar(d);
    add_epoch(line, e);
    add(line, "  step %" PRId64, e->step);
    add_validation(line, e);
    fprintf(stderr, "%s\n", line);
}

/* "start", "report" and "end" bring lines for a person, with or without a newline at their end. */
static void show_report(cpl_cli_display *d, const char *text)
{
    size_t length = strlen(text);
    clear_bar(d);
    put_text(text, 1);
    if (length == 0 || text[length - 1] != '\n')
        fputc('\n', stderr);
}

void cpl_cli_display_event(void *display, const cpl_progress_event *e)
{
    cpl_cli_display *d = display;
    if (d->mode == CPL_CLI_PROGRESS_NONE)
        return;
    if (strcmp(e->kind, "step") == 0)
        show_step(d, e);
    else if (strcmp(e->kind, "validation") == 0)
        show_validation(d, e);
    else if (strcmp(e->kind, "epoch") == 0)
        show_epoch(d, e);
    else if (strcmp(e->kind, "example") == 0)
        show_example(d, e);
    else if (e->text != NULL) /* a kind without lines for a person, such as a checkpoint, is silent */
        show_report(d, e->text);
}

void cpl_cli_display_message(void *display, int level, const char *text)
{
    cpl_cli_display *d = display;
    clear_bar(d);
    fputs(level > 0 ? "warning: " : "", stderr);
    put_text(text, 0);
    fputc('\n', stderr);
}

void cpl_cli_display_end(cpl_cli_display *d)
{
    clear_bar(d);
    fflush(stderr);
}
