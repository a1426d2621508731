/*
 * The format of a volume: its header, segments with headers and tables of contents, and records.
 * These are pure functions between bytes and structs; nothing here reads or writes.
 *
 *     | volume header | purges (small volumes) | segment 0 | segment 1 | ... | purges (others) |
 *     purges:   | area | its twin | area | its twin |, of sectors: purge_slot.h, volume_purges.c
 *     segment:  | header | seal | record | record | ... | table of contents |
 *     record:   | front: struct record_front, URL, head, vary, a sum for each chunk | body |
 *
 * Each part begins at a multiple of RECORD_ALIGN and has a checksum (XXH3, 64 bits) of itself. A
 * body has a sum for each RECORD_CHUNK, so that a part of it can be verified alone. Each record
 * contains the sequence number of its segment, which distinguishes it from older data at the same
 * place. The seal and the table of contents are written when the segment is full.
 *
 *     struct record_front front;
 *     size_t length = record_front_length(&front);                  from its lengths
 *     record_write(&front, url, head, vary, sums, out);
 *
 *     struct record record;
 *     switch (record_read(&record, bytes, identity, sequence)) ...
 *
 * Numbers are in the byte order of the machine; the volume's header tells when that is another.
 *
 * Threads: pure functions. Reading never trusts a length before it is checked.
 */
#ifndef RETORT_DISK_RECORD_H
#define RETORT_DISK_RECORD_H

#include "cache/object.h"

enum {
    RECORD_ALIGN = 512,
    RECORD_CHUNK = 256 * 1024,
    RECORD_TEXT_MAX = 1 << 20, /* URL, head and vary, each */
    SEGMENT_START = 2 * RECORD_ALIGN,
};

/* A renewal has a new head and no body. It has the key and the variant of the object's record,
 * whose body stays in use if it is the same one. */
enum record_kind { RECORD_OBJECT = 1, RECORD_REMOVAL = 2, RECORD_RENEWAL = 3 };

struct volume_header {
    uint64_t magic;
    uint64_t checksum;
    uint32_t version, segment_count;
    uint64_t size, segment_size;
    uint64_t purges_at, purges_size; /* where the first of PURGES_AREAS stands, bytes of each */
    uint64_t identity;          /* random, so that older records of another volume do not count */
    struct cache_secret secret; /* the secret of the keys of its records */
};

enum {
    VOLUME_HEADER_SIZE = 8192, /* the header, and a page without meaning: see volume.copies */
    PURGES_AREAS = 4,          /* two, and a twin of each */
    PURGES_SHARE = 128,        /* of a volume's size goes to one, within these limits: */
    PURGES_LEAST = 480 * 1024, /* all of them have room before the segments */
    PURGES_MOST = 64 << 20,
    /* Segments begin and end at multiples of this, the largest piece of a file that the kernel
     * keeps as one in memory: see segment_detach_pages. */
    SEGMENT_UNIT = 2 << 20,
    SEGMENTS_AT = SEGMENT_UNIT, /* behind the header */
};

struct segment_header {
    uint64_t magic;
    uint64_t checksum;
    uint64_t identity, sequence;
    uint32_t run; /* segments that this one spans: more than 1 for a single large record */
    uint32_t unused;
};

struct segment_seal {
    uint64_t magic;
    uint64_t checksum;
    uint64_t identity, sequence;
    uint64_t contents_at, contents_sum; /* where the table of contents stands in the segment */
    uint64_t oldest;                    /* the smallest `events` of its records */
    uint32_t count, unused;             /* of its entries */
};

/* An entry of the table of contents. */
struct record_entry {
    uint64_t key; /* its low half */
    uint64_t serial;
    uint32_t variant;
    uint32_t at, blocks; /* in RECORD_ALIGN, from the segment's start */
    uint32_t kind;
};

struct record_front {
    uint64_t magic;
    uint64_t checksum;
    uint64_t identity, sequence;
    uint64_t serial; /* the order in which records were written, across segments and volumes */
    uint64_t events; /* the newest purge that the record need not fear */
    struct cache_key key;
    uint64_t body_length;
    uint64_t renewed; /* RECORD_RENEWAL: record_contents of the body */
    uint32_t kind, variant;
    uint32_t url_length, head_length, vary_length;
    uint32_t first_serial; /* the low half of its first serial: a record may be written again */
    struct object_image image;
};

struct record {
    struct record_front front;
    struct slice url, head, vary;
    const uint64_t *sums; /* of the body's chunks; aligned */
    size_t front_length;
};

enum record_verdict {
    RECORD_GOOD,
    RECORD_SHORT, /* front_length bytes are needed */
    RECORD_BAD,
};

/* The order in which the objects of records were stored: the first serial of a record. 0 in its
 * place: it was written before records had one. */
static inline uint64_t record_order(const struct record_front *front) {
    if (front->first_serial == 0)
        return front->serial;
    return front->serial - ((uint32_t)front->serial - front->first_serial);
}

static inline uint64_t record_chunks(uint64_t body_length) {
    return (body_length + RECORD_CHUNK - 1) / RECORD_CHUNK;
}

/* In blocks of RECORD_ALIGN. */
static inline uint64_t record_blocks(uint64_t bytes) {
    return (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN;
}

size_t record_front_length(const struct record_front *front);
/* front: all but magic and checksum is set. `out` has record_front_length bytes. */
void record_write(const struct record_front *front, struct slice url, struct slice head,
                  struct slice vary, const uint64_t *sums, char *out);
/* bytes: aligned to 8. The slices point into them. */
enum record_verdict record_read(struct record *record, struct slice bytes, uint64_t identity,
                                uint64_t sequence);
uint64_t record_sum(const void *bytes, size_t length);
/* Returns a number that identifies a body by the sums of its chunks. */
uint64_t record_contents(const uint64_t *sums, uint64_t body_length);
/* Returns true when the whole body matches the sums in the front. */
bool record_body_good(const struct record *record, const char *body);

void volume_header_seal(struct volume_header *header);
bool volume_header_good(const struct volume_header *header);
/* The other contents do not matter. */
bool volume_header_is_of_another_version(const struct volume_header *header);
void segment_header_seal(struct segment_header *header);
bool segment_header_good(const struct segment_header *header, uint64_t identity);
void segment_seal_seal(struct segment_seal *seal);
bool segment_seal_good(const struct segment_seal *seal, const struct segment_header *header,
                       uint64_t segment_size);

#endif
