/*
 * HPACK (RFC 7541): writes header blocks. What is written refers to the static table only, never to
 * what went before, so a block can be made once and sent on any connection. Names are written in
 * lower case.
 *
 *     char *at = hpack_put_no_table(block);                  in front of a connection's first block
 *     at = hpack_put_status(at, 200);
 *     at = hpack_put_known(at, HTTP_CONTENT_TYPE, SLICE("text/html"));
 *     at = hpack_put_number(at, HTTP_CONTENT_LENGTH, 1024);
 *     at = hpack_put_field(at, SLICE("X-Any"), value);
 *     at = hpack_put_lines(at, SLICE("ETag: \"1\"\r\n"));
 *
 * Fields of connections (RFC 9113 §8.2.2: Connection, Keep-Alive, Proxy-Connection, TE,
 * Transfer-Encoding, Upgrade) are left out, whoever asks for them. Strings have no Huffman code,
 * which takes more instructions than all the rest.
 *
 * Each literal is one that no later proxy may index (§6.2.3). What came so has to leave so, and a head
 * that has been stored, or that rules and services have changed, does not say any more how its
 * fields came. So all of them leave so: it costs no byte, and nothing here is indexed anyway. Only
 * values that the static table has are written as its entries, and these are no secrets.
 *
 * Each function returns the end of what it wrote, and needs the room that HPACK_ROOM or the function
 * beside it says. Threads: constants only.
 */
#ifndef RETORT_HTTP2_HPACK_ENCODE_H
#define RETORT_HTTP2_HPACK_ENCODE_H

#include "http/head.h"

/* The room for a field whose name and value have that many bytes together. */
enum { HPACK_LITERAL_OVERHEAD = 13 };
#define HPACK_ROOM(bytes) ((size_t)(bytes) + HPACK_LITERAL_OVERHEAD)
/* The room for hpack_put_status and hpack_put_no_table together, and for hpack_put_number. */
enum { HPACK_STATUS_ROOM = 6, HPACK_NUMBER_ROOM = HPACK_LITERAL_OVERHEAD + 32 + SLICE_DIGITS };

/* Says that the peer's decoder needs no table: a change of its size to 0 (§6.3). */
static inline char *hpack_put_no_table(char *at) {
    *at++ = 0x20;
    return at;
}

/* ":status", 100..999. */
char *hpack_put_status(char *at, unsigned status);
/* ":method", ":scheme", ":authority", ":path". */
char *hpack_put_method(char *at, struct slice method);
char *hpack_put_scheme(char *at, struct slice scheme);
char *hpack_put_authority(char *at, struct slice authority);
char *hpack_put_path(char *at, struct slice path);

/* A field of any name. */
char *hpack_put_field(char *at, struct slice name, struct slice value);
char *hpack_put_number(char *at, enum http_name id, int64_t number);

/* How a literal begins, up to its value: with an index of the static table, or 0 and a name. */
char *hpack_put_literal_name(char *at, unsigned index, struct slice name);

/* "Name: value\r\n", any number of them, which http/head_parser.h would accept. An empty line ends
 * them. It may write behind the end that it returns, within the room. */
char *hpack_put_lines(char *at, struct slice lines);
/* The same with a status line in front, "HTTP/1.1 200 OK\r\n": a stored response head. */
char *hpack_put_response_text(char *at, struct slice text);
/* The room for a text of that length, which is also that for hpack_put_lines. */
static inline size_t hpack_text_room(size_t length) {
    return length + length / 64 + 16;
}

/* The fields of a head, without its start line. Host is left out: it is ":authority" in HTTP/2. */
char *hpack_put_fields(char *at, const struct http_head *head);
size_t hpack_fields_room(const struct http_head *head);

#endif
