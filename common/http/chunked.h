/*
 * The chunked transfer coding (RFC 9112 §7.1), decoded in place of arrival.
 *
 *     struct chunked_decoder decoder;
 *     chunked_init(&decoder);
 *     enum chunked_status s = chunked_decode(&decoder, &input, out, capacity, &got);
 *
 * chunked_decode takes bytes off the front of *input and writes body bytes to `out`, which may be
 * the buffer that the input stands in (at or before it). It never takes a byte behind the message.
 *
 * Strict: sizes are 1 to 16 hexadecimal digits (no sign, no 0x, no overflow past INT64_MAX), white
 * space behind them allowed, CRLF line ends only, extensions of their grammar, at most 4 KB in a
 * line, and skipped (the last chunk's "ieof" extension of RFC 3507 §4.5 and "use-original-body" are
 * remembered; a "use-original-body" without one good number is refused). Trailers are at most 16
 * KB; they are skipped, or kept where chunked_keep_trailers has given them room.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_HTTP_CHUNKED_H
#define RETORT_HTTP_CHUNKED_H

#include "base/slice.h"

enum chunked_status {
    CHUNKED_MORE, /* input used up, or out is full: *got tells; call again with more of either */
    CHUNKED_END,  /* the message is complete; *input stands behind it; *got bytes came with it */
    CHUNKED_BAD,  /* not of the grammar, or a limit passed */
};

struct chunked_decoder {
    unsigned state;
    unsigned digits;     /* of the size being read */
    uint64_t size;       /* of the current chunk, as far as it was read */
    uint64_t remaining;  /* of the current chunk's data */
    unsigned line_bytes; /* of the extensions being skipped */
    unsigned trailer_bytes;
    unsigned matched;  /* length of the extension name being read, of which... */
    char name[20];     /* ... this is the beginning, in lower case */
    bool last;         /* the last chunk was read; what follows are trailers */
    bool ieof;         /* the last chunk carried "; ieof" */
    bool has_original; /* the last chunk carried "; use-original-body=N" */
    uint64_t original; /* that N */
    char *trailers;    /* where trailers go; NULL: they are skipped */
};

enum { CHUNKED_TRAILERS_MAX = 16384 };

void chunked_init(struct chunked_decoder *decoder);
/* Trailers go to `space`, which has room for CHUNKED_TRAILERS_MAX bytes. At CHUNKED_END they are
 * the first `trailer_bytes` of it, as they came: lines of name, colon, value, and the empty line.
 */
void chunked_keep_trailers(struct chunked_decoder *decoder, char *space);
enum chunked_status chunked_decode(struct chunked_decoder *decoder, struct slice *input, char *out,
                                   size_t capacity, size_t *got);

/* Writes "SIZE\r\n" (at most CHUNKED_HEAD_MAX bytes) and returns its length; the data and "\r\n"
 * follow. The end of a body is "0\r\n\r\n". */
enum { CHUNKED_HEAD_MAX = 18 };
size_t chunked_write_head(char *out, uint64_t size);

#endif
