/* The chunked coding: the same comes out whichever way the bytes arrive. The first two bytes say
 * how long the pieces of input and the room for output are. */
#include "base/assert.h"
#include "http/chunked.h"
#include "http/head_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum chunked_status status;
    size_t taken, got;
    char *out; /* as much room as there was input */
    char *trailers;
    struct chunked_decoder decoder;
};

/* Feeds pieces, each in memory of its own; reads past their end are seen by AddressSanitizer. */
static void decode(struct outcome *outcome, const char *bytes, size_t length, size_t piece_length,
                   size_t window) {
    outcome->out = xmalloc(length + 1);
    outcome->taken = outcome->got = 0;
    outcome->status = CHUNKED_MORE;
    chunked_init(&outcome->decoder);
    outcome->trailers = xmalloc(CHUNKED_TRAILERS_MAX);
    chunked_of_response(&outcome->decoder, outcome->trailers);
    while (outcome->status == CHUNKED_MORE && outcome->taken < length) {
        size_t got, left = length - outcome->taken;
        size_t count = left < piece_length ? left : piece_length;
        char *piece = xmalloc(count);
        memcpy(piece, bytes + outcome->taken, count);
        struct slice input = slice_make(piece, count);
        size_t room = length - outcome->got < window ? length - outcome->got : window;
        outcome->status =
            chunked_decode(&outcome->decoder, &input, outcome->out + outcome->got, room, &got);
        ASSERT(got <= room && input.base + input.length == piece + count);
        ASSERT(outcome->status != CHUNKED_MORE || input.length == 0 || got == room);
        ASSERT(outcome->decoder.size <= INT64_MAX);
        ASSERT(outcome->decoder.remaining <= outcome->decoder.size);
        ASSERT(outcome->decoder.trailer_bytes <= CHUNKED_TRAILERS_MAX);
        outcome->got += got;
        outcome->taken += count - input.length;
        free(piece);
    }
}

static void check_same(const struct outcome *a, const struct outcome *b) {
    ASSERT(a->status == b->status);
    if (a->status == CHUNKED_BAD)
        return;
    ASSERT(a->taken == b->taken && a->got == b->got);
    ASSERT(memcmp(a->out, b->out, a->got) == 0);
    ASSERT(a->decoder.ieof == b->decoder.ieof && a->decoder.last == b->decoder.last);
    ASSERT(a->decoder.has_original == b->decoder.has_original);
    ASSERT(a->decoder.original == b->decoder.original);
    ASSERT(a->decoder.remaining == b->decoder.remaining);
    ASSERT(a->decoder.trailer_bytes == b->decoder.trailer_bytes);
    ASSERT(memcmp(a->trailers, b->trailers, a->decoder.trailer_bytes) == 0);
}

static void release(struct outcome *outcome) {
    free(outcome->out);
    free(outcome->trailers);
}

/* What was kept are lines of fields and an empty one, for the parser of heads to read. */
static void check_trailers(const struct outcome *outcome) {
    struct http_head head;
    size_t length = outcome->decoder.trailer_bytes;
    ssize_t used = http_head_parse_fields(&head, outcome->trailers, length);
    ASSERT(used == (ssize_t)length || used < 0);
    ASSERT(length >= 2 && memcmp(outcome->trailers + length - 2, "\r\n", 2) == 0);
}

/* The body written as one chunk is the body again. */
static void check_written(const struct outcome *outcome) {
    char *bytes = xmalloc(outcome->got + CHUNKED_HEAD_MAX + 7);
    size_t length = 0;
    if (outcome->got > 0) {
        length = chunked_write_head(bytes, outcome->got);
        memcpy(bytes + length, outcome->out, outcome->got);
        length += outcome->got;
        memcpy(bytes + length, "\r\n", 2);
        length += 2;
    }
    memcpy(bytes + length, "0\r\n\r\n", 5);
    struct outcome again;
    decode(&again, bytes, length + 5, length + 5, length + 5);
    ASSERT(again.status == CHUNKED_END && again.taken == length + 5 && again.got == outcome->got);
    ASSERT(memcmp(again.out, outcome->out, again.got) == 0);
    release(&again);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    struct outcome whole, pieces;
    const char *bytes = (const char *)data + 2;
    decode(&whole, bytes, size - 2, size - 2, size - 2);
    decode(&pieces, bytes, size - 2, 1 + data[0] % 32, 1 + data[1] % 32);
    check_same(&whole, &pieces);
    if (whole.status == CHUNKED_END) {
        check_written(&whole);
        check_trailers(&whole);
    }
    release(&whole);
    release(&pieces);
    return 0;
}
