#include "cache/body_reader.h"

#include "base/assert.h"

#include <unistd.h>

void body_reader_open(struct body_reader *reader, struct body *body, struct task *task,
                      struct mailbox *mailbox) {
    memset(reader, 0, sizeof *reader);
    reader->body = body_reference(body);
    reader->block = &body->first;
    reader->task = task;
    reader->mailbox = mailbox;
    reader->end = UINT64_MAX;
}

static bool has_blocks(const struct body *body) {
    return body->kind < BODY_BACKED;
}

void body_reader_choose(struct body_reader *reader, uint64_t first, uint64_t count) {
    if (has_blocks(reader->body))
        reader->skip = first;
    else
        reader->position = first;
    reader->end = first + count;
}

void body_reader_close(struct body_reader *reader) {
    if (reader->body == NULL)
        return;
    if (reader->waiter != NULL)
        body_stop_waiting(reader->body, &reader->waiter);
    body_release(&reader->body);
}

/* Steps to the next block when this one is read out; false when there is none yet. */
static bool egress_block(struct body_reader *reader) {
    if (reader->offset < reader->block->capacity)
        return true;
    struct body_block *next = body_next_block(reader->block);
    if (next == NULL)
        return false;
    reader->block = next;
    reader->offset = 0;
    return true;
}

/* Bytes that have arrived, are wanted, and have not been read. */
static uint64_t available(const struct body_reader *reader) {
    uint64_t length = body_length(reader->body);
    if (length > reader->end)
        length = reader->end;
    return length - reader->position;
}

static void body_reader_skip(struct body_reader *reader) {
    uint64_t arrived = body_length(reader->body) - reader->position;
    if (reader->skip == 0)
        return;
    uint64_t count = reader->skip < arrived ? reader->skip : arrived;
    reader->skip -= count;
    body_reader_advance(reader, (size_t)count);
}

/* Gives all bytes that are left as one piece, if the body is BODY_HELD. */
static int held_piece(const struct body_reader *reader, struct iovec *piece, size_t *bytes,
                      uint64_t left) {
    struct body_held *held = reader->body->held;
    if (reader->body->kind != BODY_HELD)
        return 0;
    *bytes = (size_t)left;
    *piece = (struct iovec){held->bytes + held->begin + reader->position, (size_t)left};
    return 1;
}

int body_reader_pieces(struct body_reader *reader, struct iovec *pieces, int most, size_t *bytes) {
    int count = 0;
    *bytes = 0;
    body_reader_skip(reader);
    uint64_t left = available(reader);
    if (left == 0)
        return 0;
    if (!has_blocks(reader->body))
        return held_piece(reader, pieces, bytes, left);
    if (!egress_block(reader))
        return 0;
    struct body_block *block = reader->block;
    size_t offset = reader->offset;
    while (count < most && left > 0) {
        size_t piece = block->capacity - offset;
        if (piece > left)
            piece = (size_t)left;
        pieces[count++] = (struct iovec){body_block_data(block) + offset, piece};
        *bytes += piece;
        left -= piece;
        if (left > 0) {
            block = body_next_block(block);
            offset = 0;
        }
    }
    return count;
}

char *body_reader_front(struct body_reader *reader, size_t length) {
    if (!reader->block->passing || reader->body->kind != BODY_PASSING || !egress_block(reader) ||
        reader->offset > 0 || !reader->block->passing)
        return NULL;
    struct body_passing_block *passing =
        CONTAINER_OF(reader->block, struct body_passing_block, block);
    return passing->offset < length ? NULL : passing->buffer->data + passing->offset - length;
}

void body_reader_advance(struct body_reader *reader, size_t bytes) {
    struct body *body = reader->body;
    reader->position += bytes;
    if (!has_blocks(body))
        return;
    while (bytes > 0 && egress_block(reader)) {
        size_t piece = reader->block->capacity - reader->offset;
        if (piece > bytes)
            piece = bytes;
        reader->offset += piece;
        bytes -= piece;
    }
    if (body->kind == BODY_PASSING)
        body_forget_until(body, reader->block, reader->position);
}

size_t body_reader_file(struct body_reader *reader, int *fd, off_t *offset, bool *copy) {
    uint64_t left = available(reader);
    if (reader->body->kind != BODY_BACKED || left == 0)
        return 0;
    struct body_backing *backing = reader->body->backing;
    if (reader->position >= reader->ready_until)
        reader->ready_until = reader->position + backing->ready(backing, reader->position);
    uint64_t count = reader->ready_until - reader->position;
    *fd = backing->fd;
    *copy = backing->copy;
    *offset = (off_t)(backing->offset + reader->position);
    return (size_t)(count < left ? count : left);
}

bool body_reader_wait(struct body_reader *reader) {
    return reader->waiter != NULL || body_wait(reader->body, reader->position, &reader->waiter,
                                               reader->mailbox, reader->task);
}

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
