/*
 * A failure that is told in a sentence: the way in which functions say why they can't do something.
 *
 *     if (count == 0)
 *         return failure(error, error_size, "%s: it is empty", path);
 *
 * The caller gives the room for the sentence, which is cut off where it ends.
 * Threads: any.
 */
#ifndef RETORT_BASE_FAILURE_H
#define RETORT_BASE_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the sentence, and returns false. */
bool failure(char *error, size_t error_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
