#include "event/source.h"

static enum source_status bytes_read(struct source *source, char *buffer, size_t capacity,
                                     size_t *got) {
    struct bytes_source *bytes = CONTAINER_OF(source, struct bytes_source, source);
    *got = bytes->left.length < capacity ? bytes->left.length : capacity;
    if (*got == 0)
        return SOURCE_END;
    memcpy(buffer, bytes->left.base, *got);
    bytes->left.base += *got;
    bytes->left.length -= *got;
    return SOURCE_DATA;
}

static void bytes_close(struct source *source) {
    (void)source; /* the struct and the bytes belong to the caller of bytes_source_start */
}

static const struct source_class bytes_class = {"bytes", bytes_read, bytes_close, NULL};

struct source *bytes_source_start(struct bytes_source *bytes, struct slice all, struct loop *loop) {
    source_init(&bytes->source, &bytes_class, loop, (int64_t)all.length);
    bytes->left = all;
    return &bytes->source;
}
