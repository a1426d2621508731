#include "tools/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30, NANOSECONDS_BETWEEN = 100000000 };

bool terminal_moves(FILE *out) {
    const char *kind = getenv("TERM");
    return fileno(out) >= 0 && isatty(fileno(out)) && kind != NULL && strcmp(kind, "dumb") != 0;
}

bool terminal_has_colours(FILE *out) {
    const char *none = getenv("NO_COLOR"); /* https://no-color.org */
    return (none == NULL || none[0] == '\0') && terminal_moves(out);
}

const char *terminal_begin(FILE *out, enum answer_colour colour) {
    return terminal_has_colours(out) ? answer_colour_code(colour) : "";
}

const char *terminal_end(FILE *out) {
    return terminal_has_colours(out) ? "\033[m" : "";
}

void terminal_heading(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs(terminal_begin(out, ANSWER_HEADING), out);
    vfprintf(out, format, arguments);
    fprintf(out, "%s\n", terminal_end(out));
    va_end(arguments);
}

/* Progress. */

static uint64_t terminal_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void progress_draw(struct progress *progress) {
    char bar[BAR + 1];
    size_t filled = progress->done * BAR / progress->total;
    uint64_t taken = progress->last - progress->begun;
    memset(bar, '#', filled);
    memset(bar + filled, ' ', BAR - filled);
    bar[BAR] = '\0';
    fprintf(stderr, "\r[%s] %zu of %zu", bar, progress->done, progress->total);
    if (progress->done > 0)
        fprintf(stderr, ", %.0f s left\033[K",
                (double)taken / 1e9 / (double)progress->done *
                    (double)(progress->total - progress->done));
    fflush(stderr);
    progress->drawn = true;
}

void progress_begin(struct progress *progress, size_t total) {
    *progress = (struct progress){
        .shown = total > 1 && terminal_moves(stderr), .total = total, .begun = terminal_now()};
}

void progress_step(struct progress *progress) {
    uint64_t now = terminal_now();
    progress->done++;
    if (!progress->shown || now - progress->last < NANOSECONDS_BETWEEN)
        return;
    progress->last = now;
    progress_draw(progress);
}

void progress_hide(struct progress *progress) {
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

void progress_end(struct progress *progress) {
    progress_hide(progress);
    fflush(stderr);
}
