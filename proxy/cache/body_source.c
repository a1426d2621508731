#include "cache/body_source.h"

#include "base/assert.h"

#include <unistd.h>

static size_t body_source_take(struct body_reader *reader, const struct iovec *piece, char *buffer,
                               size_t capacity) {
    size_t count = piece->iov_len < capacity ? piece->iov_len : capacity;
    memcpy(buffer, piece->iov_base, count);
    body_reader_advance(reader, count);
    return count;
}

/* Reads the bytes that are ready in a file. 0: none are ready; -1: the file can't be read. */
static ssize_t take_from_file(struct body_reader *reader, char *buffer, size_t capacity) {
    int fd;
    off_t offset;
    bool copy;
    size_t ready = body_reader_file(reader, &fd, &offset, &copy);
    if (ready == 0)
        return 0;
    ssize_t count = pread(fd, buffer, ready < capacity ? ready : capacity, offset);
    if (count <= 0)
        return -1;
    body_reader_advance(reader, (size_t)count);
    return count;
}

static enum source_status stored_read(struct source *source, char *buffer, size_t capacity,
                                      size_t *got) {
    struct body_source *stored = CONTAINER_OF(source, struct body_source, source);
    struct body_reader *reader = &stored->reader;
    struct iovec piece;
    size_t bytes;
    *got = 0;
    for (;;) {
        if (body_reader_pieces(reader, &piece, 1, &bytes) > 0) {
            *got = body_source_take(reader, &piece, buffer, capacity);
            return SOURCE_DATA;
        }
        ssize_t count = take_from_file(reader, buffer, capacity);
        if (count != 0) {
            *got = count > 0 ? (size_t)count : 0;
            return count > 0 ? SOURCE_DATA : SOURCE_FAILED;
        }
        if (body_reader_done(reader))
            return SOURCE_END;
        if (body_reader_failed(reader))
            return SOURCE_FAILED;
        body_reader_rest(reader);
        if (body_reader_wait(reader))
            return SOURCE_WAIT;
    }
}

static void body_source_on_news(struct task *task) {
    source_wake(&CONTAINER_OF(task, struct body_source, task)->source);
}

static void stored_close(struct source *source) {
    struct body_source *stored = CONTAINER_OF(source, struct body_source, source);
    body_reader_close(&stored->reader);
    task_cancel(&stored->task);
}

static const struct source_class stored_class = {"stored body", stored_read, stored_close, NULL};

struct source *body_source_open(struct body_source *stored, struct body *body, struct loop *loop,
                                struct mailbox *mailbox) {
    int64_t length = body->expected;
    if (body_state(body) == BODY_COMPLETE)
        length = (int64_t)body_length(body);
    source_init(&stored->source, &stored_class, loop, length);
    task_init(&stored->task, body_source_on_news);
    body_reader_open(&stored->reader, body, &stored->task, mailbox);
    return &stored->source;
}
