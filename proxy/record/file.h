/*
 * Reading a file of recorded exchanges (record/recorded_exchange.h).
 *
 *     struct record_file *file = record_file_open(path, error);     NULL with a
 * message while (record_file_next(file, &exchange, &content)) {
 *         ... exchange's slices are of content ...
 *         free(content);
 *     }
 *     record_file_end(file)->complaint ...            NULL: it is whole
 *     record_file_close(&file);
 *
 * What is damaged is passed over where it is known where the next record begins; of a file that was
 * cut off, all that stands before the cut is given. Memory is taken only for what has been read.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_RECORD_FILE_H
#define RETORT_RECORD_FILE_H

#include "record/recorded_exchange.h"

#include <stdio.h>

enum { RECORD_FILE_ERROR = 300 };

struct record_file;

/* What is known when there is no next one. */
struct record_file_end {
    const char *complaint; /* where it is damaged, or cut off; NULL: it is whole */
    uint64_t read;         /* exchanges that were given */
    uint64_t damaged;      /* and passed over */
    uint64_t dropped, unfinished;
    char reason[100]; /* why the recording ended; empty: not known */
};

struct record_file *record_file_open(const char *path, char error[RECORD_FILE_ERROR]);
/* Of an open one, which is taken over; `name` is for messages. */
struct record_file *record_file_of(FILE *stream, const char *name, char error[RECORD_FILE_ERROR]);
/* The caller frees the content. */
bool record_file_next(struct record_file *file, struct recorded_exchange *exchange, char **content);
const struct record_file_end *record_file_end(const struct record_file *file);
void record_file_close(struct record_file **filep);

#endif
