#include "cache/body_reader.h"

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
static bool reach_block(struct body_reader *reader) {
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
    if (!reach_block(reader))
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
    if (!reader->block->passing || reader->body->kind != BODY_PASSING || !reach_block(reader) ||
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
    while (bytes > 0 && reach_block(reader)) {
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
