/*
 * ICAP on the wire (RFC 3507 §4.4): what an Encapsulated header says.
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

#include "base/slice.h"

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
