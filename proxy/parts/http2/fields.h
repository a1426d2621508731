/*
 * Makes a message head (http/head.h) of the fields of a header block, and refuses what RFC 9113
 * §8.2 and §8.3 call malformed. Only what this accepts reaches anything outside HTTP/2.
 *
 *     struct http2_meaning meaning;
 *     switch (http2_fields_to_request(&list, false, &head, &meaning)) {
 *     case HTTP2_FIELDS_MALFORMED: ...           RST_STREAM, HTTP2_PROTOCOL_ERROR; meaning.error says why
 *     case HTTP2_FIELDS_TOO_LARGE: ...           431
 *     case HTTP2_FIELDS_GOOD: ...
 *     }
 *     http2_request_make_absolute(&list, &head, &meaning);      for a forward listener
 *
 * Malformed are: a name that is no token or has a letter in upper case; a value with a control byte
 * (NUL, CR, LF); white space at an end of a value in a request, which is removed from those of a
 * response; a field of a connection (Connection, Keep-Alive,
 * Proxy-Connection, Transfer-Encoding, Upgrade; TE but for "trailers" in a request); a pseudo field
 * that is unknown, doubled, behind others, of the other kind of message, or in trailers; a length
 * that is no number, is above 2^63-1, or differs from another. Bytes above 0x7f are taken in values
 * and in the path, as in HTTP/1.1.
 *
 * Malformed requests are also: one without method, scheme, path, or a host; a path that neither
 * begins with '/' nor is the "*" of OPTIONS, or that has a fragment, white space or control bytes;
 * an authority with user info or of no valid host; a Host that differs from it; a CONNECT with a
 * scheme, a path or a length. RFC 8441 changes the rules for a CONNECT with ":protocol".
 *
 * Heads point into the list's text and to constants. A head that is not good is empty. Threads:
 * values.
 */
#ifndef RETORT_HTTP2_FIELDS_H
#define RETORT_HTTP2_FIELDS_H

#include "http/head.h"
#include "http2/hpack.h"

enum http2_fields_result {
    HTTP2_FIELDS_GOOD,
    HTTP2_FIELDS_MALFORMED,
    HTTP2_FIELDS_TOO_LARGE, /* the list is, or there are more than HTTP_FIELDS_MAX fields */
};

/* What the fields say beside the head. */
struct http2_meaning {
    const char *error;         /* malformed: a sentence without a full stop; NULL: not malformed */
    int64_t content_length;    /* -1: there is none */
    struct slice scheme, path; /* of a request; empty for CONNECT */
    struct slice authority;    /* ":authority", or Host where that is absent */
    struct slice protocol;     /* ":protocol" (RFC 8441 §4); empty: none */
    bool takes_trailers;       /* "TE: trailers" */
};

/* Makes a request head. Its version is 20. The target is the path (the origin form), for CONNECT
 * the authority. It has exactly one Host, which equals the authority; the lines of Cookie are
 * joined (§8.2.3). `extended_connect`: we announced SETTINGS_ENABLE_CONNECT_PROTOCOL. A CONNECT
 * with ":protocol" becomes a GET, and meaning->protocol is what an Upgrade would name. */
enum http2_fields_result http2_fields_to_request(struct hpack_list *list, bool extended_connect,
                                                 struct http_head *head,
                                                 struct http2_meaning *meaning);
/* Makes the target of a good request absolute, "https://host/path"; that of CONNECT stays. The "*"
 * of OPTIONS becomes a URL without a path (RFC 9112 §3.2.4). False: the list has less room than
 * HPACK_LIST_TEXT, and it is full. */
bool http2_request_make_absolute(struct hpack_list *list, struct http_head *head,
                                 const struct http2_meaning *meaning);

/* Makes a response head, final or interim. The status is 100..999, but not 101 (§8.6). */
enum http2_fields_result http2_fields_to_response(const struct hpack_list *list,
                                                  struct http_head *head,
                                                  struct http2_meaning *meaning);

/* Makes a head of trailers: fields alone. */
enum http2_fields_result http2_fields_to_trailers(const struct hpack_list *list, bool of_response,
                                                  struct http_head *head,
                                                  struct http2_meaning *meaning);

#endif
