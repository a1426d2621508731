/*
 * Reading a file of recorded exchanges (icap/exchange.h).
 *
 *     struct icap_exchange_file *file = icap_exchange_file_open(path, error);     NULL with a
 * message while (icap_exchange_file_next(file, &exchange, &content)) {
 *         ... exchange's slices are of content ...
 *         free(content);
 *     }
 *     icap_exchange_file_end(file)->complaint ...            NULL: it is whole
 *     icap_exchange_file_close(&file);
 *
 * What is damaged is passed over where it is known where the next record begins; of a file that was
 * cut off, all that stands before the cut is given. Memory is taken only for what has been read.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_ICAP_EXCHANGE_FILE_H
#define RETORT_ICAP_EXCHANGE_FILE_H

#include "icap/exchange.h"

#include <stdio.h>

enum { ICAP_EXCHANGE_FILE_ERROR = 300 };

struct icap_exchange_file;

/* What is known when there is no next one. */
struct icap_exchange_file_end {
    const char *complaint; /* where it is damaged, or cut off; NULL: it is whole */
    uint64_t read;         /* exchanges that were given */
    uint64_t damaged;      /* and passed over */
    uint64_t dropped, unfinished;
    char reason[100]; /* why the recording ended; empty: not known */
};

struct icap_exchange_file *icap_exchange_file_open(const char *path,
                                                   char error[ICAP_EXCHANGE_FILE_ERROR]);
/* Of an open one, which is taken over; `name` is for messages. */
struct icap_exchange_file *icap_exchange_file_of(FILE *stream, const char *name,
                                                 char error[ICAP_EXCHANGE_FILE_ERROR]);
/* The caller frees the content. */
bool icap_exchange_file_next(struct icap_exchange_file *file, struct icap_exchange *exchange,
                             char **content);
const struct icap_exchange_file_end *icap_exchange_file_end(const struct icap_exchange_file *file);
void icap_exchange_file_close(struct icap_exchange_file **filep);

#endif
