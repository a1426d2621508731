/*
 * The static table of HPACK (RFC 7541 §2.3.1, Appendix A; hpack_static.def), and how to find a name
 * in it.
 *
 *     hpack_static[2]                                        ":method" "GET"
 *     hpack_static_index(SLICE("Content-Type"))              31
 *
 * Threads: constant after main() has begun.
 */
#ifndef RETORT_HTTP2_HPACK_STATIC_H
#define RETORT_HTTP2_HPACK_STATIC_H

#include "http/names.h"
#include "http2/hpack.h"

/* Entry 0 is empty. */
extern const struct hpack_field hpack_static[HPACK_STATIC_COUNT + 1];

enum { HPACK_NOT_SENT = 255 };

/* The first entry of that name, in upper or lower case; 0: there is none. HPACK_NOT_SENT: the field
 * belongs to a connection of HTTP/1.1 and is none of HTTP/2 (RFC 9113 §8.2.2). */
unsigned hpack_static_index(struct slice name);
/* The same for a name that is known. HTTP_OTHER: 0. */
unsigned hpack_static_index_of(enum http_name id);

/* How names are found: a table with a slot for each. */
enum { HPACK_STATIC_SLOTS = 256, HPACK_STATIC_FRONT = 16 };

struct hpack_static_name {
    char front[HPACK_STATIC_FRONT]; /* of the name in lower case, or all of it */
    char back[HPACK_STATIC_FRONT];  /* likewise at its end */
    uint8_t length;                 /* of the name; 0: the slot is empty */
    uint8_t index;
    uint16_t front_bits; /* a bit for each byte of `front` */
    char literal[2];     /* how a literal of that name begins */
    uint8_t literal_length;
};

extern struct hpack_static_name hpack_static_names[HPACK_STATIC_SLOTS];

/* The slot where a name is, if it is one of the table: compare it. The name is not empty. Bit 0x20
 * makes letters lower-case. These factors give each name of the table a slot of its own, and most
 * others that responses have an empty one. */
static inline const struct hpack_static_name *hpack_static_slot(const char *name, size_t length) {
    const unsigned char *text = (const unsigned char *)name;
    unsigned first = text[0] | 0x20u, middle = text[length / 2] | 0x20u,
             last = text[length - 1] | 0x20u;
    unsigned hash = (unsigned)length * 198 + first * 244 + middle * 185 + last * 15;
    return &hpack_static_names[hash % HPACK_STATIC_SLOTS];
}

#endif
