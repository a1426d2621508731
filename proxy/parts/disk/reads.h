/*
 * Reads that may wait for a device, outside the event loops: by io_uring in one thread where the
 * kernel allows it, otherwise by threads that block.
 *
 *     struct reads *reads = reads_new(4, true);
 *     read->fd = fd; read->offset = ...; read->bytes = ...; read->length = ...;
 *     read->done = on_read;                        embedded in what it belongs to
 *     reads_submit(reads, read);                   on_read(read) follows in one of the threads,
 *                                                  with read->error 0 or an errno
 *     reads_free(&reads);                          after the last has been done
 *
 * on_read may submit another read. A read beyond the end of the file fails with EIO. A ring keeps
 * up to READS_DEEP reads in the device; a thread has one at a time.
 *
 * Threads: any.
 */
#ifndef RETORT_DISK_READS_H
#define RETORT_DISK_READS_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { READS_DEEP = 128 };

struct reads;

struct disk_read {
    struct list_link link;
    int fd, error;
    uint64_t offset;
    char *bytes;
    size_t length, got;
    void (*done)(struct disk_read *read);
};

/* `threads` is the largest number of threads when there is no ring. Returns NULL when no thread
 * can be started. */
struct reads *reads_new(unsigned threads, bool may_use_ring);
void reads_free(struct reads **readsp);
void reads_submit(struct reads *reads, struct disk_read *read);
/* "io_uring" or "threads" */
const char *reads_kind(const struct reads *reads);

#endif
