/*
 * Reading a file of recorded exchanges (record/recorded_exchange.h).
 *
 *     struct record_file *file = record_file_open(path, error);     NULL: error has the message
 *     while (record_file_next(file, &recorded, &content)) {
 *         ... the slices of `recorded` are of content ...
 *         free(content);
 *     }
 *     record_file_end(file)->complaint ...            NULL: it is whole
 *     record_file_close(&file);
 *
 * A damaged record is skipped when the beginning of the next one is known. A file that was cut off
 * is read up to the cut. Memory is allocated only for bytes that have been read.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_RECORD_FILE_H
#define RETORT_RECORD_FILE_H

#include "record/recorded_exchange.h"

#include <stdio.h>

enum { RECORD_FILE_ERROR = 300 };

struct record_file;

/* The result after the last exchange. */
struct record_file_end {
    const char *complaint; /* where the file is damaged or cut off; NULL: it is whole */
    uint64_t read;         /* exchanges that were returned */
    uint64_t damaged;      /* damaged exchanges that were skipped */
    uint64_t dropped, unfinished;
    char reason[100]; /* why the recording ended; empty: not known */
};

struct record_file *record_file_open(const char *path, char error[RECORD_FILE_ERROR]);
/* Reads an open file and takes it over. `name` is used in messages. */
struct record_file *record_file_of(FILE *stream, const char *name, char error[RECORD_FILE_ERROR]);
/* The caller frees the content. */
bool record_file_next(struct record_file *file, struct recorded_exchange *recorded, char **content);
const struct record_file_end *record_file_end(const struct record_file *file);
void record_file_close(struct record_file **filep);

#endif
