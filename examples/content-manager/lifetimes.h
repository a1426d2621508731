/*
 * The list of lifetimes: a file with a pattern of URLs and a number of seconds in each line.
 *
 *     # what changes at noon
 *     http://news.example/front*   600
 *     *.gif                        86400
 *
 *     struct lifetimes list = {0};
 *     if (lifetimes_load(&list, path, error, sizeof error)) ...       it is another list than before
 *     if (lifetimes_find(&list, url, &seconds)) ...
 *
 * The first line that fits counts. Threads: none of its own; whoever shares a list locks it.
 */
#ifndef MANAGER_LIFETIMES_H
#define MANAGER_LIFETIMES_H

#include "base/slice.h"

#include <stdint.h>
#include <time.h>

enum { LIFETIMES_MOST = 1000, LIFETIMES_FILE = 1 << 20 };

struct lifetime {
    char *pattern;
    int64_t seconds;
};

struct lifetimes {
    struct lifetime rows[LIFETIMES_MOST];
    unsigned count;
    struct timespec modified; /* the file, when it was read */
    int64_t size;
};

/* Reads the file if it is another one than before. True: it has. A line that can't be understood is
 * left out, and `error` names it; else `error` is empty. */
bool lifetimes_load(struct lifetimes *list, const char *path, char *error, size_t error_size);
bool lifetimes_find(const struct lifetimes *list, struct slice url, int64_t *seconds);
void lifetimes_release(struct lifetimes *list);

#endif
