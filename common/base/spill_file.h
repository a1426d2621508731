/*
 * Kept bytes: a part of a body that may be needed again. The bytes are in memory up to a limit, and
 * then in a file without a name, which disappears when its descriptor is closed.
 *
 *     struct spill_file file;
 *     spill_file_init(&file, &limits);
 *     if (!spill_file_append(&file, bytes, count)) ...         limit reached, or the disk is full
 *     ssize_t got = spill_file_peek(&file, &cursor, buffer, capacity);   reads at the cursor
 *     ssize_t got = spill_file_take(&file, buffer, capacity);  takes bytes off the front
 *     spill_file_release(&file);
 *
 * A cursor begins as {0} at the front; peek moves it and keeps the bytes. A cursor is valid until
 * bytes are taken. The disk space of taken bytes is freed now and then. Reading gives 0 at the end,
 * -1 when the file can't be read any more.
 *
 * Calls may wait for the disk when the page cache is full. Threads: belongs to one thread.
 */
#ifndef RETORT_BASE_SPILL_FILE_H
#define RETORT_BASE_SPILL_FILE_H

#include "base/spool.h"

#include <stdint.h>
#include <sys/types.h>

struct spill_file_limits {
    size_t memory;              /* bytes; the bytes after these go to the file */
    uint64_t file;              /* bytes; 0: no file is used */
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
    bool on_disk;        /* a file has been made */
    uint64_t begin, end; /* of the bytes that wait in the file */
    uint64_t given_back; /* bytes at the file's front whose disk space is freed */
};

void spill_file_init(struct spill_file *file, const struct spill_file_limits *limits);
void spill_file_release(struct spill_file *file);
/* False: the bytes could not be kept. */
bool spill_file_append(struct spill_file *file, const char *bytes, size_t count);
ssize_t spill_file_peek(const struct spill_file *file, struct spill_file_cursor *cursor,
                        char *buffer, size_t capacity);
ssize_t spill_file_take(struct spill_file *file, char *buffer, size_t capacity);
/* Drops `count` bytes at the front; the file must hold at least as many. */
void spill_file_skip(struct spill_file *file, uint64_t count);

static inline uint64_t spill_file_length(const struct spill_file *file) {
    return file->memory.length + (file->end - file->begin);
}

#endif
