#include "config.h"

#include "disk/record.h"

#include "base/assert.h"

#include <xxhash.h>
#ifdef HAVE_XXH3_64BITS_DISPATCH
#include <xxh_x86dispatch.h>
#endif

/* "RETORT" and a number that changes with the format and with the byte order. */
#define VOLUME_MAGIC  0x5452544f56000001u
#define PURGES_MAGIC  0x5452544f50000001u
#define SEGMENT_MAGIC 0x5452544f53000001u
#define SEAL_MAGIC    0x5452544f45000001u
#define RECORD_MAGIC  0x5452544f52000002u

enum { VOLUME_VERSION = 5 };

uint64_t record_sum(const void *bytes, size_t length) {
    return XXH3_64bits(bytes, length);
}

uint64_t record_contents(const uint64_t *sums, uint64_t body_length) {
    return XXH3_64bits_withSeed(sums, (size_t)record_chunks(body_length) * sizeof *sums,
                                body_length);
}

size_t record_front_length(const struct record_front *front) {
    size_t length = sizeof *front;
    length += (size_t)record_chunks(front->body_length) * sizeof(uint64_t);
    return length + front->url_length + front->head_length + front->vary_length;
}

static char *record_put(char *at, const void *bytes, size_t length) {
    if (length > 0)
        memcpy(at, bytes, length);
    return at + length;
}

void record_write(const struct record_front *front, struct slice url, struct slice head,
                  struct slice vary, const uint64_t *sums, char *out) {
    ASSERT(front->url_length == url.length && front->head_length == head.length &&
           front->vary_length == vary.length);
    struct record_front copy = *front;
    copy.magic = RECORD_MAGIC;
    copy.checksum = 0;
    /* The sums come first, where they are aligned. */
    char *at = record_put(out, &copy, sizeof copy);
    at = record_put(at, sums, (size_t)record_chunks(front->body_length) * sizeof *sums);
    at = record_put(at, url.base, url.length);
    at = record_put(at, head.base, head.length);
    record_put(at, vary.base, vary.length);
    copy.checksum = record_sum(out, record_front_length(front));
    memcpy(out, &copy, sizeof copy);
}

/* The lengths are checked first, because the sum covers as many bytes as they say. */
static bool is_plausible(const struct record_front *front, uint64_t identity, uint64_t sequence) {
    return front->magic == RECORD_MAGIC && front->identity == identity &&
           front->sequence == sequence && front->url_length <= RECORD_TEXT_MAX &&
           front->head_length <= RECORD_TEXT_MAX && front->vary_length <= RECORD_TEXT_MAX &&
           front->body_length <= (uint64_t)1 << 40 && front->kind >= RECORD_OBJECT &&
           front->kind <= RECORD_RENEWAL;
}

static bool has_its_sum(const struct record_front *front, struct slice bytes) {
    static const uint64_t zero = 0;
    enum { BEFORE = offsetof(struct record_front, checksum), AFTER = BEFORE + sizeof zero };
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, bytes.base, BEFORE);
    XXH3_64bits_update(state, &zero, sizeof zero);
    XXH3_64bits_update(state, bytes.base + AFTER, bytes.length - AFTER);
    uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum == front->checksum;
}

enum record_verdict record_read(struct record *record, struct slice bytes, uint64_t identity,
                                uint64_t sequence) {
    struct record_front *front = &record->front;
    record->front_length = sizeof *front;
    if (bytes.length < sizeof *front)
        return RECORD_SHORT;
    memcpy(front, bytes.base, sizeof *front);
    if (!is_plausible(front, identity, sequence))
        return RECORD_BAD;
    record->front_length = record_front_length(front);
    if (bytes.length < record->front_length)
        return RECORD_SHORT;
    if (!has_its_sum(front, slice_make(bytes.base, record->front_length)))
        return RECORD_BAD;
    const char *at = bytes.base + sizeof *front;
    record->sums = (const uint64_t *)(const void *)at;
    at += record_chunks(front->body_length) * sizeof(uint64_t);
    record->url = slice_make(at, front->url_length);
    record->head = slice_make(at + front->url_length, front->head_length);
    record->vary = slice_make(record->head.base + front->head_length, front->vary_length);
    return RECORD_GOOD;
}

bool record_body_good(const struct record *record, const char *body) {
    uint64_t left = record->front.body_length;
    for (uint64_t i = 0; left > 0; i++) {
        size_t length = left < RECORD_CHUNK ? (size_t)left : RECORD_CHUNK;
        if (record_sum(body, length) != record->sums[i])
            return false;
        body += length;
        left -= length;
    }
    return true;
}

/* The headers are alike: a magic number, then the sum of all with the sum itself zero. */
#define SEAL(header, its_magic)                                                                    \
    do {                                                                                           \
        (header)->magic = (its_magic);                                                             \
        (header)->checksum = 0;                                                                    \
        (header)->checksum = record_sum((header), sizeof *(header));                               \
    } while (0)

#define IS_GOOD(header, copy, its_magic)                                                           \
    ((copy) = *(header), (copy).checksum = 0,                                                      \
     (header)->magic == (its_magic) && (header)->checksum == record_sum(&(copy), sizeof(copy)))

void volume_header_seal(struct volume_header *header) {
    header->version = VOLUME_VERSION;
    SEAL(header, VOLUME_MAGIC);
}

bool volume_header_is_of_another_version(const struct volume_header *header) {
    return header->magic == VOLUME_MAGIC && header->version != VOLUME_VERSION;
}

bool volume_header_good(const struct volume_header *header) {
    struct volume_header copy;
    return IS_GOOD(header, copy, VOLUME_MAGIC) && header->version == VOLUME_VERSION;
}

void segment_header_seal(struct segment_header *header) {
    SEAL(header, SEGMENT_MAGIC);
}

bool segment_header_good(const struct segment_header *header, uint64_t identity) {
    struct segment_header copy;
    return IS_GOOD(header, copy, SEGMENT_MAGIC) && header->identity == identity;
}

void segment_seal_seal(struct segment_seal *seal) {
    SEAL(seal, SEAL_MAGIC);
}

bool segment_seal_good(const struct segment_seal *seal, const struct segment_header *header,
                       uint64_t segment_size) {
    struct segment_seal copy;
    return IS_GOOD(seal, copy, SEAL_MAGIC) && seal->identity == header->identity &&
           seal->sequence == header->sequence && seal->contents_at <= segment_size &&
           seal->count <= (segment_size - seal->contents_at) / sizeof(struct record_entry);
}
