#include "base/spill_file.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GIVE_BACK = 1 << 20 };

void spill_file_init(struct spill_file *file, const struct spill_file_limits *limits) {
    memset(file, 0, sizeof *file);
    file->limits = *limits;
    file->fd = -1;
    spool_init(&file->memory);
    spool_share(&file->memory, limits->spare);
}

void spill_file_release(struct spill_file *file) {
    spool_release(&file->memory);
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    file->begin = file->end = 0;
}

/* A file system without O_TMPFILE gets a file with a name, which is removed at once. */
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

static bool put_into_file(struct spill_file *file, const char *bytes, size_t count) {
    if (file->end + count > file->limits.file)
        return false;
    if (file->fd < 0)
        file->fd = open_unnamed(file->limits.directory);
    file->on_disk = file->fd >= 0;
    for (size_t put = 0; file->fd >= 0 && put < count;) {
        ssize_t done = pwrite(file->fd, bytes + put, count - put, (off_t)(file->end + put));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            break;
        put += (size_t)done;
        if (put < count)
            continue;
        file->end += count;
        return true;
    }
    log_warn("a body that waits for an ICAP service can't be kept in %s: %s; choose another "
             "temporary_directory, or make room there",
             file->limits.directory, strerror(errno));
    return false;
}

bool spill_file_append(struct spill_file *file, const char *bytes, size_t count) {
    if (file->end == 0 && file->memory.length + count <= file->limits.memory)
        return spool_append(&file->memory, bytes, count);
    return put_into_file(file, bytes, count);
}

static ssize_t spill_read_file(const struct spill_file *file, uint64_t at, char *buffer,
                               size_t capacity) {
    ssize_t got;
    if (capacity > file->end - at)
        capacity = (size_t)(file->end - at);
    if (capacity == 0)
        return 0;
    do
        got = pread(file->fd, buffer, capacity, (off_t)at);
    while (got < 0 && errno == EINTR);
    return got > 0 ? got : -1;
}

ssize_t spill_file_peek(const struct spill_file *file, struct spill_file_cursor *cursor,
                        char *buffer, size_t capacity) {
    ssize_t got;
    if (cursor->taken < file->memory.length)
        got = (ssize_t)spool_peek(&file->memory, &cursor->memory, buffer, capacity);
    else
        got = spill_read_file(file, file->begin + (cursor->taken - file->memory.length), buffer,
                              capacity);
    if (got > 0)
        cursor->taken += (uint64_t)got;
    return got;
}

static void spill_advance(struct spill_file *file, uint64_t count) {
    file->begin += count;
    if (file->begin - file->given_back < GIVE_BACK)
        return;
    /* A file system that can't do this frees the space when the file is closed. */
    (void)!fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)file->given_back,
                     (off_t)(file->begin - file->given_back));
    file->given_back = file->begin;
}

ssize_t spill_file_take(struct spill_file *file, char *buffer, size_t capacity) {
    if (file->memory.length > 0)
        return (ssize_t)spool_read(&file->memory, buffer, capacity);
    ssize_t got = spill_read_file(file, file->begin, buffer, capacity);
    if (got > 0)
        spill_advance(file, (uint64_t)got);
    return got;
}

void spill_file_skip(struct spill_file *file, uint64_t count) {
    char scrap[SPOOL_BLOCK];
    ASSERT(count <= spill_file_length(file));
    while (count > 0 && file->memory.length > 0) {
        size_t piece = count < sizeof scrap ? (size_t)count : sizeof scrap;
        count -= spool_read(&file->memory, scrap, piece);
    }
    if (count > 0)
        spill_advance(file, count);
}
