/*
 * Two ways to the same result, by turns, and of each the fastest, so that a busy machine matters
 * little: what a service of ours costs beyond the library it stands on.
 *
 *     struct slice page = turns_read_file("page.html");
 *     struct turns turns = turns_take(25, directly, by_encoder, &work);
 *     printf("%.3f times the library", turns.ours / turns.direct);
 *
 * Threads: CPU time is that of the calling one.
 */
#ifndef RETORT_BENCH_TURNS_H
#define RETORT_BENCH_TURNS_H

#include "base/slice.h"

/* Seconds of CPU time. */
struct turns {
    double direct, ours;
};

struct turns turns_take(int count, void (*direct)(void *arg), void (*ours)(void *arg), void *arg);
/* The caller frees its bytes; a file that can't be read ends the program. */
struct slice turns_read_file(const char *path);
const char *turns_name_of(const char *path);

#endif
