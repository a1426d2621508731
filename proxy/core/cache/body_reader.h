/*
 * A reader of a body (cache/body.h), which may be arriving still.
 *
 *     struct body_reader reader;
 *     body_reader_open(&reader, body, &task, mailbox);
 *     int n = body_reader_pieces(&reader, iov, 8, &bytes);   0 pieces: look at body_state, or
 *     if (body_reader_wait(&reader)) ...                     the task runs when there is more
 *     body_reader_advance(&reader, bytes_taken);
 *     body_reader_close(&reader);
 *
 * A body in a file has no pieces: body_reader_file tells from where its bytes can be sent.
 *
 * Threads: one, which need not be the writer's unless the body is a passing one. Reading takes no
 * lock. Memory: the caller's; the body is referenced.
 */
#ifndef RETORT_CACHE_BODY_READER_H
#define RETORT_CACHE_BODY_READER_H

#include "cache/body.h"
#include "event/source.h"

struct body_reader {
    struct body *body; /* referenced */
    struct body_block *block;
    size_t offset;          /* in the block */
    uint64_t position, end; /* of the bytes still wanted; end UINT64_MAX: all there are */
    uint64_t ready_until;   /* BODY_BACKED: known to be ready */
    uint64_t skip;          /* bytes before the first one wanted */
    struct task *task;
    struct mailbox *mailbox;
    struct waiter *waiter; /* while it waits */
};

void body_reader_open(struct body_reader *reader, struct body *body, struct task *task,
                      struct mailbox *mailbox);
/* Limits the reader to `count` bytes from `first` on. Must be called before anything is read. */
void body_reader_choose(struct body_reader *reader, uint64_t first, uint64_t count);
void body_reader_close(struct body_reader *reader);
/* Fills up to `most` pieces with what waits to be read; *bytes is their sum. */
int body_reader_pieces(struct body_reader *reader, struct iovec *pieces, int most, size_t *bytes);
/* Space for `length` bytes right before the first of those pieces, so that both can be sent as one;
 * NULL: there is none. Only a passing body has such space: the bytes that precede its own in the
 * read buffer. */
char *body_reader_front(struct body_reader *reader, size_t length);
/* How many bytes of a body in a file can be sent from the file, at *offset. 0 means the same as
 * 0 pieces. */
size_t body_reader_file(struct body_reader *reader, int *fd, off_t *offset, bool *copy);
void body_reader_advance(struct body_reader *reader, size_t bytes);
/* Must be called when some time passes before the next read: bytes of a file that are ready now may
 * not be ready then. */
static inline void body_reader_rest(struct body_reader *reader) {
    reader->ready_until = 0;
}
/* True: nothing new yet, the task will run. False: look again, something has changed. */
bool body_reader_wait(struct body_reader *reader);

/* Everything that has arrived, or that is wanted, has been read. */
static inline bool body_reader_at_end(const struct body_reader *reader) {
    return reader->position == reader->end || reader->position == body_length(reader->body);
}

/* Everything that is wanted has been read, or everything of a complete body. */
static inline bool body_reader_done(const struct body_reader *reader) {
    return reader->position == reader->end || (body_state(reader->body) == BODY_COMPLETE &&
                                               reader->position == body_length(reader->body));
}

/* Nothing more can be read, although the end has not been reached. */
static inline bool body_reader_failed(const struct body_reader *reader) {
    return body_state(reader->body) == BODY_FAILED &&
           (reader->body->kind == BODY_BACKED || body_reader_at_end(reader));
}

/*
 * Reads a body as a source (event/source.h). The body may be stored, or still arriving. Services
 * behind the cache read bodies this way (adapt/postcache.h).
 *
 *     struct body_source stored;
 *     struct source *source = body_source_open(&stored, body, loop, mailbox);
 *     ... source_read(source, ...) ...
 *     source_close(&source);
 *
 * The source is the one reader of a passing body. Bytes of a body in a file are read when they are
 * known to be in memory; the source waits for the others.
 *
 * Threads: the reader's. Memory: the caller's, until source_close.
 */

struct body_source {
    struct source source;
    struct body_reader reader;
    struct task task;
};

/* The body is referenced. */
struct source *body_source_open(struct body_source *stored, struct body *body, struct loop *loop,
                                struct mailbox *mailbox);

#endif
