/*
 * HPACK, how HTTP/2 compresses fields (RFC 7541): the decoder. http2/hpack_encode.h writes blocks,
 * http2/fields.h makes a head of what was decoded.
 *
 *     struct hpack_decoder decoder;
 *     hpack_decoder_init(&decoder, HPACK_TABLE_DEFAULT);         one a connection
 *     hpack_list_init(&list, text, sizeof text, fields, COUNT, 65536);
 *     switch (hpack_decode(&decoder, block, &list)) {            a whole block, in one piece
 *     case HPACK_BAD: ...                                        GOAWAY(COMPRESSION_ERROR)
 *     case HPACK_TOO_MUCH: ...                                   GOAWAY(ENHANCE_YOUR_CALM)
 *     case HPACK_GOOD: ...                                       list.fields[0 .. list.count - 1],
 *     }                                                          or list.is_too_large
 *     hpack_decoder_release(&decoder);
 *
 * Names and values point into list.text or to constants, so they live until the list is used again,
 * whatever becomes of the decoder and of the block.
 *
 * The decoder is strict: an index of no entry, a number above 2^31-1 or of more than six bytes, a
 * string that ends behind the block, bad Huffman code, and a change of the table's size that is too
 * large, behind a field, or the third in a block are HPACK_BAD.
 *
 * Memory: a decoder allocates when the first entry is added to its table, and grows with it up to
 * about twice the table's size. Work: what a block costs has a bound in the lengths of the block
 * and of the table, also when it is too large. Threads: one at a time.
 */
#ifndef RETORT_HTTP2_HPACK_H
#define RETORT_HTTP2_HPACK_H

#include "base/slice.h"

enum {
    HPACK_STATIC_COUNT = 61,
    HPACK_FIELD_OVERHEAD = 32,  /* what a field counts beside name and value (§4.1) */
    HPACK_TABLE_DEFAULT = 4096, /* SETTINGS_HEADER_TABLE_SIZE (RFC 9113 §6.5.2) */
};

/* Pseudo-header fields (RFC 9113 §8.3, RFC 8441 §4). */
enum hpack_pseudo {
    HPACK_NONE, /* a field like others */
    HPACK_AUTHORITY,
    HPACK_METHOD,
    HPACK_PATH,
    HPACK_PROTOCOL,
    HPACK_SCHEME,
    HPACK_STATUS,
    HPACK_UNKNOWN, /* another name that begins with a colon */
};

struct hpack_field {
    struct slice name, value;
    uint8_t id;         /* enum http_name */
    uint8_t pseudo;     /* enum hpack_pseudo */
    bool is_clean;      /* name and value are such as RFC 9113 §8.2.1 allows */
    bool never_indexed; /* its sender takes it for a secret (§6.2.3); hpack_encode.h heeds that */
};

/* Where the fields of a block go. */
struct hpack_list {
    struct hpack_field *fields;
    unsigned count, room;
    char *text; /* of names and values */
    size_t text_used, text_room;
    size_t size, size_most; /* as RFC 9113 §6.5.2 counts them */
    /* There were more fields than `room`, they were larger than `size_most`, or the text had no
     * room for them. The list is empty then, but the decoder goes on with other blocks. */
    bool is_too_large;
};

/* How much text a list of that size may need, for what http2/fields.h joins as well. No list may
 * have less text than the decoder's table, however small a head may be. */
#define HPACK_LIST_TEXT(size_most)                                                                 \
    (2 * (size_most) > HPACK_TABLE_DEFAULT ? 2 * (size_most) : HPACK_TABLE_DEFAULT)

/* How many fields a list of that size can have: its size alone bounds them, since a cookie may come
 * in any number of fields (RFC 9113 §8.2.3). http2/fields.h bounds those of the head. */
#define HPACK_LIST_FIELDS(size_most) ((unsigned)((size_most) / HPACK_FIELD_OVERHEAD))

static inline void hpack_list_init(struct hpack_list *list, char *text, size_t text_room,
                                   struct hpack_field *fields, unsigned room, size_t size_most) {
    *list = (struct hpack_list){
        .fields = fields,
        .room = room,
        .text = text,
        .text_room = text_room,
        .size_most = size_most,
    };
}

struct hpack_entry;

struct hpack_decoder {
    uint32_t announced; /* the largest table that our settings allow */
    uint32_t limit;     /* the largest that the peer may ask for now */
    uint32_t capacity;  /* the largest that it has asked for */
    uint32_t size;      /* of the entries (§4.1) */
    bool must_resize;   /* the next block has to begin with a new size */
    /* A ring of entries. */
    struct hpack_entry *entries;
    uint32_t entry_room; /* a power of two, or 0 */
    uint32_t newest, count;
    /* Their names and values, the oldest first. */
    char *text;
    uint32_t text_room, text_begin, text_end;
};

enum hpack_result {
    HPACK_GOOD,
    HPACK_BAD,      /* the block is not of this format */
    HPACK_TOO_MUCH, /* its list is too large, and the rest of it is too much work */
};

/* `limit` is the SETTINGS_HEADER_TABLE_SIZE that we announce; the peer begins with
 * HPACK_TABLE_DEFAULT. */
void hpack_decoder_init(struct hpack_decoder *decoder, uint32_t limit);
void hpack_decoder_release(struct hpack_decoder *decoder);
/* The peer has acknowledged our settings. If the table is larger than what they say, the peer has
 * to begin its next block with a smaller size (§4.2). */
void hpack_decoder_acknowledged(struct hpack_decoder *decoder);

/* Are name and value, of a field that is no pseudo-header field, such as RFC 9113 §8.2.1 allows? */
bool hpack_is_clean(struct slice name, struct slice value);

enum hpack_result hpack_decode(struct hpack_decoder *decoder, struct slice block,
                               struct hpack_list *list);

#endif
