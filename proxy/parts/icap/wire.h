/*
 * ICAP on the wire (RFC 3507 §4.3 and §4.4): the head of a response, and what its Encapsulated
 * header says.
 *
 *     ssize_t used = icap_head_parse(&head, bytes, length);       0: read more; below 0: not ICAP
 *
 *     struct icap_encapsulated parts;
 *     if (!icap_encapsulated_parse(&parts, value, most)) ...      the response can't be trusted
 *
 *     "req-hdr=0, req-body=412"        parts.has_request, parts.body_at == 412
 *
 * Called for each answer of a service, when its ICAP head has come. Offsets are bytes behind that head.
 *
 * Threads: pure functions on values; fuzzed (tests/fuzz/fuzz_icap.c). Errors: false, whatever is wrong.
 */
#ifndef RETORT_ICAP_WIRE_H
#define RETORT_ICAP_WIRE_H

#include "http/head.h"

#include <sys/types.h>

/* Like http_head_parse_icap_response, but a field may have several lines, as c-icap's scanners send
 * X-Violations-Found: ICAP messages have the generic form of RFC 2822 (RFC 3507 §4.3). The ends of such
 * lines become spaces in `bytes`, so no value has a CR or LF in it. */
ssize_t icap_head_parse(struct http_head *head, char *bytes, size_t length);

struct icap_encapsulated {
    bool has_request, has_response; /* a head of that kind */
    bool has_body;                  /* req-body or res-body; else null-body */
    bool body_is_request;           /* req-body */
    size_t request_at, response_at; /* offsets */
    size_t body_at;                 /* where the heads end */
};

/* Of an answer to REQMOD or RESPMOD, where an opt-body has no place (RFC 3507 §4.4.1). Strict:
 * known names, each once, req-hdr before res-hdr before one body, offsets that begin at 0 and never
 * fall, no more than `most` bytes of heads. */
bool icap_encapsulated_parse(struct icap_encapsulated *parts, struct slice value, size_t most);

#endif
