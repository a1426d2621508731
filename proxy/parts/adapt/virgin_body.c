#include "adapt/virgin_body.h"

static void virgin_body_keep(struct virgin_body *virgin, const char *bytes, size_t count) {
    if (!virgin->keeping)
        return;
    if (spill_file_append(&virgin->kept, bytes, count)) {
        virgin->cursor.taken += count;
        return;
    }
    virgin->unkept = true;
    virgin_body_stop_keeping(virgin);
}

static enum source_status virgin_body_read_on(struct virgin_body *virgin,
                                              const struct source *reader, char *buffer,
                                              size_t capacity, size_t *got) {
    if (virgin->ended)
        return SOURCE_END;
    if (virgin->failed)
        return SOURCE_FAILED;
    source_set_waker(virgin->from, reader->waker);
    enum source_status status = source_read(virgin->from, buffer, capacity, got);
    virgin->ended = status == SOURCE_END;
    virgin->failed = status == SOURCE_FAILED;
    return status;
}

/* The kept bytes: memory, or a file that can't be read back. */
static enum source_status virgin_body_from_kept(ssize_t count, size_t *got) {
    *got = count > 0 ? (size_t)count : 0;
    return count > 0 ? SOURCE_DATA : SOURCE_FAILED;
}

static enum source_status virgin_body_first_read(struct source *source, char *buffer,
                                                 size_t capacity, size_t *got) {
    struct virgin_body *virgin = CONTAINER_OF(source, struct virgin_body, first);
    CHECK_OBJ(virgin, VIRGIN_BODY_MAGIC);
    *got = 0;
    if (virgin->keeping && virgin->cursor.taken < spill_file_length(&virgin->kept))
        return virgin_body_from_kept(
            spill_file_peek(&virgin->kept, &virgin->cursor, buffer, capacity), got);
    if (!virgin->keeping && spill_file_length(&virgin->kept) > 0)
        return virgin_body_from_kept(spill_file_take(&virgin->kept, buffer, capacity), got);
    enum source_status status = virgin_body_read_on(virgin, source, buffer, capacity, got);
    if (status == SOURCE_DATA)
        virgin_body_keep(virgin, buffer, *got);
    return status;
}

static enum source_status virgin_body_replay_read(struct source *source, char *buffer,
                                                  size_t capacity, size_t *got) {
    struct virgin_body *virgin = CONTAINER_OF(source, struct virgin_body, replay);
    CHECK_OBJ(virgin, VIRGIN_BODY_MAGIC);
    *got = 0;
    if (spill_file_length(&virgin->kept) > 0)
        return virgin_body_from_kept(spill_file_take(&virgin->kept, buffer, capacity), got);
    return virgin_body_read_on(virgin, source, buffer, capacity, got);
}

static void virgin_body_no_close(struct source *source) {
    (void)source; /* lives and goes with the virgin */
}

static const struct source_class first_class = {"virgin body", virgin_body_first_read,
                                                virgin_body_no_close, NULL};
static const struct source_class replay_class = {"virgin body again", virgin_body_replay_read,
                                                 virgin_body_no_close, NULL};

void virgin_body_init(struct virgin_body *virgin, struct loop *loop, struct source **from,
                      const struct spill_file_limits *limits) {
    INIT_OBJ(virgin, VIRGIN_BODY_MAGIC);
    virgin->from = *from;
    *from = NULL;
    spill_file_init(&virgin->kept, limits);
    virgin->keeping = true;
    virgin->ended = virgin->from == NULL;
    int64_t length = virgin->from == NULL ? 0 : virgin->from->length;
    source_init(&virgin->first, &first_class, loop, length);
    source_init(&virgin->replay, &replay_class, loop, length);
}

bool virgin_body_is_whole(const struct virgin_body *virgin) {
    return virgin->keeping;
}

void virgin_body_restart(struct virgin_body *virgin) {
    ASSERT(virgin->keeping);
    virgin->cursor = (struct spill_file_cursor){{NULL, 0}, 0};
}

/* After a restart some kept bytes may not have been passed on yet; only those stay. */
void virgin_body_stop_keeping(struct virgin_body *virgin) {
    if (!virgin->keeping)
        return;
    virgin->keeping = false;
    if (virgin->cursor.taken == spill_file_length(&virgin->kept))
        spill_file_release(&virgin->kept);
    else
        spill_file_skip(&virgin->kept, virgin->cursor.taken);
}

struct source *virgin_body_replay(struct virgin_body *virgin) {
    ASSERT(virgin->keeping);
    virgin->first.waker = NULL;
    virgin->keeping = false;
    virgin->replaying = true;
    return &virgin->replay;
}

struct source *virgin_body_hand_on(struct virgin_body *virgin) {
    ASSERT(virgin->keeping);
    uint64_t read = spill_file_length(&virgin->kept);
    struct source *from = virgin->from;
    if (virgin->ended || virgin->failed || !source_unread(from, read))
        return virgin_body_replay(virgin);
    virgin->from = NULL;
    virgin->keeping = false;
    spill_file_release(&virgin->kept);
    source_set_waker(from, NULL);
    return from;
}

void virgin_body_release(struct virgin_body *virgin) {
    if (virgin->magic != VIRGIN_BODY_MAGIC)
        return;
    source_close(&virgin->from);
    spill_file_release(&virgin->kept);
    virgin->magic = 0;
}
