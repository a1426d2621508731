#include "icap/kept.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GIVE_BACK = 1 << 20 };

void kept_init(struct kept *kept, const struct kept_limits *limits) {
    memset(kept, 0, sizeof *kept);
    kept->limits = *limits;
    kept->fd = -1;
    spool_init(&kept->memory);
    spool_share(&kept->memory, limits->spare);
}

void kept_release(struct kept *kept) {
    spool_release(&kept->memory);
    if (kept->fd >= 0)
        close(kept->fd);
    kept->fd = -1;
    kept->begin = kept->end = 0;
}

/* Not every file system makes files without a name. */
static int open_unnamed(const char *directory) {
    char path[4096];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if (snprintf(path, sizeof path, "%s/retort-XXXXXX", directory) >= (int)sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool put_into_file(struct kept *kept, const char *bytes, size_t count) {
    if (kept->end + count > kept->limits.file)
        return false;
    if (kept->fd < 0)
        kept->fd = open_unnamed(kept->limits.directory);
    kept->on_disk = kept->fd >= 0;
    for (size_t put = 0; kept->fd >= 0 && put < count;) {
        ssize_t done = pwrite(kept->fd, bytes + put, count - put, (off_t)(kept->end + put));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            break;
        put += (size_t)done;
        if (put < count)
            continue;
        kept->end += count;
        return true;
    }
    log_warn("a body that waits for an ICAP service can't be kept in %s: %s; choose another "
             "temporary_directory, or make room there",
             kept->limits.directory, strerror(errno));
    return false;
}

bool kept_append(struct kept *kept, const char *bytes, size_t count) {
    if (kept->end == 0 && kept->memory.length + count <= kept->limits.memory)
        return spool_append(&kept->memory, bytes, count);
    return put_into_file(kept, bytes, count);
}

static ssize_t kept_read_file(const struct kept *kept, uint64_t at, char *buffer, size_t capacity) {
    ssize_t got;
    if (capacity > kept->end - at)
        capacity = (size_t)(kept->end - at);
    if (capacity == 0)
        return 0;
    do
        got = pread(kept->fd, buffer, capacity, (off_t)at);
    while (got < 0 && errno == EINTR);
    return got > 0 ? got : -1;
}

ssize_t kept_peek(const struct kept *kept, struct kept_cursor *cursor, char *buffer,
                  size_t capacity) {
    ssize_t got;
    if (cursor->taken < kept->memory.length)
        got = (ssize_t)spool_peek(&kept->memory, &cursor->memory, buffer, capacity);
    else
        got = kept_read_file(kept, kept->begin + (cursor->taken - kept->memory.length), buffer,
                             capacity);
    if (got > 0)
        cursor->taken += (uint64_t)got;
    return got;
}

static void kept_advance(struct kept *kept, uint64_t count) {
    kept->begin += count;
    if (kept->begin - kept->given_back < GIVE_BACK)
        return;
    /* A file system that can't do it gives all back at the end. */
    (void)!fallocate(kept->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)kept->given_back,
                     (off_t)(kept->begin - kept->given_back));
    kept->given_back = kept->begin;
}

ssize_t kept_take(struct kept *kept, char *buffer, size_t capacity) {
    if (kept->memory.length > 0)
        return (ssize_t)spool_read(&kept->memory, buffer, capacity);
    ssize_t got = kept_read_file(kept, kept->begin, buffer, capacity);
    if (got > 0)
        kept_advance(kept, (uint64_t)got);
    return got;
}

void kept_skip(struct kept *kept, uint64_t count) {
    char scrap[SPOOL_BLOCK];
    ASSERT(count <= kept_length(kept));
    while (count > 0 && kept->memory.length > 0) {
        size_t piece = count < sizeof scrap ? (size_t)count : sizeof scrap;
        count -= spool_read(&kept->memory, scrap, piece);
    }
    if (count > 0)
        kept_advance(kept, count);
}
