/*
 * Kept bytes: what of a body may be wanted again, in memory up to a limit, then in a file that has
 * no name and goes with its descriptor.
 *
 *     struct spill_file file;
 *     spill_file_init(&file, &limits);
 *     if (!spill_file_append(&file, bytes, count)) ...         a limit is reached, or the disk is full
 *     ssize_t got = spill_file_peek(&file, &cursor, buffer, capacity);   the bytes stay; moves the cursor
 *     ssize_t got = spill_file_take(&file, buffer, capacity);  takes them off the front
 *     spill_file_release(&file);
 *
 * A cursor begins as {0} at the front, and is good while nothing is taken. What is taken from the
 * file is given back to the disk as it goes. Reading gives 0 at the end, -1 when the file can't be
 * read any more.
 *
 * Calls to the file may wait for the disk where its cache in memory is full.
 * Threads: belongs to one thread.
 */
#ifndef RETORT_BASE_SPILL_FILE_H
#define RETORT_BASE_SPILL_FILE_H

#include "base/spool.h"

#include <stdint.h>
#include <sys/types.h>

struct spill_file_limits {
    size_t memory;              /* bytes; beyond: the file */
    uint64_t file;              /* bytes; 0: there is none */
    const char *directory;      /* for the file */
    struct spool_blocks *spare; /* NULL: memory comes from the allocator */
};

struct spill_file_cursor {
    struct spool_cursor memory;
    uint64_t taken; /* bytes before it */
};

struct spill_file {
    struct spill_file_limits limits;
    struct spool memory;
    int fd;              /* -1: there is no file now */
    bool on_disk;        /* there has been one */
    uint64_t begin, end; /* of what waits in the file */
    uint64_t given_back; /* bytes at the file's front that take no room any more */
};

void spill_file_init(struct spill_file *file, const struct spill_file_limits *limits);
void spill_file_release(struct spill_file *file);
/* All of them or none. */
bool spill_file_append(struct spill_file *file, const char *bytes, size_t count);
ssize_t spill_file_peek(const struct spill_file *file, struct spill_file_cursor *cursor,
                        char *buffer, size_t capacity);
ssize_t spill_file_take(struct spill_file *file, char *buffer, size_t capacity);
/* Lets go of so many bytes at the front; there are as many. */
void spill_file_skip(struct spill_file *file, uint64_t count);

static inline uint64_t spill_file_length(const struct spill_file *file) {
    return file->memory.length + (file->end - file->begin);
}

#endif
