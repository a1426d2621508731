/*
 * Kept bytes: what of a body may be wanted again, in memory up to a limit, then in a file that has
 * no name and goes with its descriptor.
 *
 *     struct kept kept;
 *     kept_init(&kept, &limits);
 *     if (!kept_append(&kept, bytes, count)) ...         a limit is reached, or the disk is full
 *     ssize_t got = kept_peek(&kept, &cursor, buffer, capacity);   the bytes stay; moves the cursor
 *     ssize_t got = kept_take(&kept, buffer, capacity);  takes them off the front
 *     kept_release(&kept);
 *
 * A cursor begins as {0} at the front, and is good while nothing is taken. What is taken from the
 * file is given back to the disk as it goes. Reading gives 0 at the end, -1 when the file can't be
 * read any more.
 *
 * Calls to the file may wait for the disk where its cache in memory is full.
 * Threads: belongs to one thread.
 */
#ifndef RETORT_ICAP_KEPT_H
#define RETORT_ICAP_KEPT_H

#include "base/spool.h"

#include <stdint.h>
#include <sys/types.h>

struct kept_limits {
    size_t memory;              /* bytes; beyond: the file */
    uint64_t file;              /* bytes; 0: there is none */
    const char *directory;      /* for the file */
    struct spool_blocks *spare; /* NULL: memory comes from the allocator */
};

struct kept_cursor {
    struct spool_cursor memory;
    uint64_t taken; /* bytes before it */
};

struct kept {
    struct kept_limits limits;
    struct spool memory;
    int fd;              /* -1: there is no file now */
    bool on_disk;        /* there has been one */
    uint64_t begin, end; /* of what waits in the file */
    uint64_t given_back; /* bytes at the file's front that take no room any more */
};

void kept_init(struct kept *kept, const struct kept_limits *limits);
void kept_release(struct kept *kept);
/* All of them or none. */
bool kept_append(struct kept *kept, const char *bytes, size_t count);
ssize_t kept_peek(const struct kept *kept, struct kept_cursor *cursor, char *buffer,
                  size_t capacity);
ssize_t kept_take(struct kept *kept, char *buffer, size_t capacity);
/* Lets go of so many bytes at the front; there are as many. */
void kept_skip(struct kept *kept, uint64_t count);

static inline uint64_t kept_length(const struct kept *kept) {
    return kept->memory.length + (kept->end - kept->begin);
}

#endif
