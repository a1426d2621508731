/*
 * Colours and progress for people at a terminal. Where the output is a file or a pipe, NO_COLOR is
 * set or TERM is dumb, there is neither.
 *
 *     fprintf(out, "%s%-8s%s\n", terminal_begin(out, answer_colour_of("up")), "up",
 *             terminal_end(out));
 *
 *     struct progress progress;
 *     progress_begin(&progress, 100);              [##########          ] 50 of 100, 7 s left
 *     progress_step(&progress);                    on stderr; drawn at most ten times a second
 *     progress_hide(&progress);                    before a line is printed
 *     progress_end(&progress);
 *
 * Threads: one at a time.
 */
#ifndef RETORT_TOOLS_TERMINAL_H
#define RETORT_TOOLS_TERMINAL_H

#include "admin/answer_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What is written before and behind the text; "" where no colours are wanted. */
const char *terminal_begin(FILE *out, enum answer_colour style);
const char *terminal_end(FILE *out);
/* Are colours wanted there? */
bool terminal_has_colours(FILE *out);
/* Can text be written over what stands there? Not in a file, a pipe, or if TERM is dumb. */
bool terminal_moves(FILE *out);
/* Prints the headings of a table, with a line end. */
void terminal_heading(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct progress {
    bool shown, drawn;
    size_t done, total;
    uint64_t begun, last; /* nanoseconds of the monotonic clock */
};

void progress_begin(struct progress *progress, size_t total);
void progress_step(struct progress *progress);
void progress_hide(struct progress *progress);
void progress_end(struct progress *progress);

#endif
