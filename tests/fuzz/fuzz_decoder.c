/*
 * Content codings undone. The first line is a Content-Encoding, the second how large the pieces
 * are that come, the third how large those that are read; then the coded body. However it is cut,
 * the same must come of it; of damaged zstd the same beginning, because libzstd looks at more of a
 * frame that it gets whole, such as the length that it states.
 */
#include "adapt/decoder.h"
#include "base/assert.h"
#include "lines.h"

enum { READ_MAX = 70000, OUT_MAX = 1 << 20 };

struct pieces {
    struct source source;
    struct slice rest;
    size_t piece;
    bool waits; /* every second time */
};

static enum source_status pieces_read(struct source *source, char *buffer, size_t capacity,
                                      size_t *got) {
    struct pieces *pieces = CONTAINER_OF(source, struct pieces, source);
    *got = 0;
    pieces->waits = !pieces->waits;
    if (pieces->waits)
        return SOURCE_WAIT;
    *got = pieces->rest.length < pieces->piece ? pieces->rest.length : pieces->piece;
    if (*got > capacity)
        *got = capacity;
    if (*got == 0)
        return SOURCE_END;
    memcpy(buffer, pieces->rest.base, *got);
    pieces->rest.base += *got;
    pieces->rest.length -= *got;
    return SOURCE_DATA;
}

static void pieces_close(struct source *source) {
    (void)source;
}

static const struct source_class pieces_class = {"pieces", pieces_read, pieces_close, NULL};

/* What came of a body, and how it ended. */
struct outcome {
    char *bytes;
    size_t length;
    enum source_status status;
    bool limited;
};

static struct outcome decode(const struct coding *const *codings, int count, struct slice body,
                             size_t piece, size_t most) {
    const struct decoder_limits limits = {OUT_MAX, 0};
    struct outcome outcome = {xmalloc(OUT_MAX + READ_MAX), 0, SOURCE_WAIT, false};
    struct pieces pieces = {.rest = body, .piece = piece};
    struct decoder decoder;
    source_init(&pieces.source, &pieces_class, NULL, -1);
    decoder_init(&decoder, codings, count, &limits, &pieces.source, NULL);
    struct source *from = decoder_body(&decoder);
    while (outcome.status == SOURCE_WAIT || outcome.status == SOURCE_DATA) {
        size_t got;
        char *room = xmalloc(most);
        outcome.status = source_read(from, room, most, &got);
        ASSERT((outcome.status == SOURCE_DATA) == (got > 0 && !decoder.limited));
        if (outcome.status == SOURCE_DATA) {
            memcpy(outcome.bytes + outcome.length, room, got);
            outcome.length += got;
        }
        free(room);
    }
    ASSERT((outcome.status == SOURCE_FAILED) == (decoder.error != NULL));
    ASSERT(outcome.length <= OUT_MAX);
    outcome.limited = decoder.limited;
    decoder_close(&decoder);
    return outcome;
}

static bool tells_all(const struct coding *const *codings, int count) {
    for (int i = 0; i < count; i++)
        if (slice_equal(codings[i]->name, SLICE("zstd")))
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct coding *codings[CODING_LAYERS_MAX];
    struct lines lines = lines_of(data, size);
    int count = coding_list(lines_next(&lines), codings);
    size_t piece = (size_t)(lines_number(&lines) % 5000) + 1;
    size_t most = (size_t)(lines_number(&lines) % READ_MAX) + 1;
    ASSERT(count == CODING_UNKNOWN || (count >= 0 && count <= CODING_LAYERS_MAX));
    if (count <= 0)
        return 0;
    struct slice body = lines_copy(lines.rest);
    struct outcome cut = decode(codings, count, body, piece, most);
    struct outcome whole = decode(codings, count, body, READ_MAX, READ_MAX);
    if (!cut.limited && !whole.limited && tells_all(codings, count)) {
        ASSERT(cut.status == whole.status);
        ASSERT(cut.length == whole.length || cut.status == SOURCE_FAILED);
    }
    size_t both = cut.length < whole.length ? cut.length : whole.length;
    ASSERT(memcmp(cut.bytes, whole.bytes, both) == 0);
    free(cut.bytes);
    free(whole.bytes);
    free((void *)body.base);
    return 0;
}
