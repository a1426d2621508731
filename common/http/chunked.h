/*
 * The chunked transfer coding (RFC 9112 §7.1), decoded in place of arrival.
 *
 *     struct chunked_decoder decoder;
 *     chunked_init(&decoder);
 *     enum chunked_status s = chunked_decode(&decoder, &input, out, capacity, &got);
 *
 * chunked_decode takes bytes off the front of *input and writes body bytes to `out`. `out` may be
 * the buffer of the input, at the input or before it. The decoder never takes a byte behind the
 * message.
 *
 * The decoder is strict. A size has 1 to 16 hexadecimal digits (no sign, no 0x, at most INT64_MAX);
 * white space may follow it. Lines end with CRLF. Extensions must follow the grammar and have at
 * most 4 KB in a line; they are skipped. Two extensions of the last chunk are remembered: "ieof"
 * (RFC 3507 §4.5) and "use-original-body", which is refused without exactly one valid number.
 * Trailers have at most 16 KB; they are skipped unless chunked_of_response gives room for them.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_HTTP_CHUNKED_H
#define RETORT_HTTP_CHUNKED_H

#include "base/slice.h"

enum chunked_status {
    CHUNKED_MORE, /* *got bytes were written; call again with more input or room */
    CHUNKED_END,  /* the message is complete; *input begins behind it; *got bytes were written */
    CHUNKED_BAD,  /* the input breaks the grammar or a limit */
};

struct chunked_decoder {
    unsigned state;
    unsigned digits;     /* of the size being read */
    uint64_t size;       /* of the current chunk; the digits read so far */
    uint64_t remaining;  /* of the current chunk's data */
    unsigned line_bytes; /* of the extensions being skipped */
    unsigned trailer_bytes;
    unsigned matched;  /* length of the extension name being read */
    char name[20];     /* the beginning of that name, in lower case */
    bool last;         /* the last chunk was read; trailers follow */
    bool ieof;         /* the last chunk carried "; ieof" */
    bool has_original; /* the last chunk carried "; use-original-body=N" */
    uint64_t original; /* the N of use-original-body */
    bool of_response;  /* white space before the colon of a trailer is accepted (§5.1) */
    char *trailers;    /* buffer for trailers; NULL: they are skipped */
};

enum { CHUNKED_TRAILERS_MAX = 16384 };

void chunked_init(struct chunked_decoder *decoder);
/* The body is that of a response. Its trailers are written to `trailers`, which has
 * CHUNKED_TRAILERS_MAX bytes, or skipped where that is NULL. At CHUNKED_END its first
 * `trailer_bytes` bytes are the trailers as they were received: lines of name, colon and value, and
 * the empty line. */
void chunked_of_response(struct chunked_decoder *decoder, char *trailers);
enum chunked_status chunked_decode(struct chunked_decoder *decoder, struct slice *input, char *out,
                                   size_t capacity, size_t *got);

/* Writes "SIZE\r\n" (at most CHUNKED_HEAD_MAX bytes) and returns its length; the data and "\r\n"
 * follow. The end of a body is "0\r\n\r\n". */
enum { CHUNKED_HEAD_MAX = 18 };
size_t chunked_write_head(char *out, uint64_t size);

#endif
