#include "transaction/join.h"

#include "base/assert.h"
#include "cache/body_reader.h"

struct join {
    struct source source;
    struct source *live; /* owned; NULL: read to its end */
    struct body_reader before, after;
};

/* Returns false when nothing is left. */
static bool read_stored(struct body_reader *reader, char *buffer, size_t capacity, size_t *got) {
    struct iovec piece;
    size_t bytes;
    if (reader->body == NULL || body_reader_pieces(reader, &piece, 1, &bytes) == 0)
        return false;
    *got = piece.iov_len < capacity ? piece.iov_len : capacity;
    memcpy(buffer, piece.iov_base, *got);
    body_reader_advance(reader, *got);
    return true;
}

static enum source_status join_read(struct source *source, char *buffer, size_t capacity,
                                    size_t *got) {
    struct join *join = CONTAINER_OF(source, struct join, source);
    *got = 0;
    if (read_stored(&join->before, buffer, capacity, got))
        return SOURCE_DATA;
    if (join->live != NULL) {
        source_set_waker(join->live, source->waker);
        enum source_status status = source_read(join->live, buffer, capacity, got);
        if (status != SOURCE_END)
            return status;
        source_close(&join->live);
    }
    return read_stored(&join->after, buffer, capacity, got) ? SOURCE_DATA : SOURCE_END;
}

static void join_close(struct source *source) {
    struct join *join = CONTAINER_OF(source, struct join, source);
    source_close(&join->live);
    body_reader_close(&join->before);
    body_reader_close(&join->after);
}

static const struct source_class join_class = {"joined body", join_read, join_close, NULL};

static void open_stored(struct body_reader *reader, struct body *stored, uint64_t first,
                        uint64_t count) {
    memset(reader, 0, sizeof *reader);
    if (count == 0)
        return;
    body_reader_open(reader, stored, NULL, NULL);
    body_reader_choose(reader, first, count);
}

struct source *join_new(struct arena *arena, struct loop *loop, struct body *stored,
                        uint64_t before, struct source **livep, uint64_t from, uint64_t after) {
    struct join *join = arena_alloc(arena, sizeof *join);
    ASSERT(body_state(stored) == BODY_COMPLETE && (*livep)->length >= 0);
    ASSERT(stored->kind != BODY_BACKED); /* parts are not kept on disk */
    source_init(&join->source, &join_class, loop,
                (int64_t)before + (*livep)->length + (int64_t)after);
    join->live = *livep;
    *livep = NULL;
    open_stored(&join->before, stored, 0, before);
    open_stored(&join->after, stored, from, after);
    return &join->source;
}
