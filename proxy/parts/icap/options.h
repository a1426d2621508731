/*
 * What an ICAP service says of itself in the answer to OPTIONS (RFC 3507 §4.10).
 *
 *     struct icap_options options;
 *     if (!icap_options_parse(&options, &head, &error)) ...
 *     if (icap_options_transfer(&options, path) == ICAP_TRANSFER_IGNORE) ...
 *
 * Threads: values; strings are copied into the struct.
 */
#ifndef RETORT_ICAP_OPTIONS_H
#define RETORT_ICAP_OPTIONS_H

#include "adapt/service_report.h"
#include "http/head.h"

enum { ICAP_TRANSFER_SPACE = 8192 };

enum icap_transfer { ICAP_TRANSFER_PREVIEW, ICAP_TRANSFER_IGNORE, ICAP_TRANSFER_COMPLETE };

/* What it has to say to whoever runs the proxy: X-Operator-Notice, which is Retort's own. As it
 * came, so not to be shown before control characters are out of it. */
struct icap_notice {
    uint64_t since;                   /* loop time when it was told */
    char text[SERVICE_REPORT_NOTICE]; /* empty: nothing */
};

struct icap_options {
    bool reqmod, respmod;
    bool preview_given;
    size_t preview;
    bool allow_204, allow_206;
    unsigned max_connections; /* 0: not stated */
    uint64_t answers_within;  /* milliseconds; 0: not stated */
    int64_t ttl;              /* seconds; -1: for ever */
    unsigned client_fields;   /* enum client_field: X-Include asks for them */
    char istag[SERVICE_TEXT];
    char service[SERVICE_TEXT]; /* the name it has: Service-ID */
    char product[SERVICE_TEXT]; /* what it is: Service */
    /* Transfer-Preview, -Ignore and -Complete, each of all its field lines (RFC 9110 §5.3), one
     * behind the other, with a NUL behind each. */
    char transfer[ICAP_TRANSFER_SPACE];
    uint16_t ignore_at, complete_at;
    bool lists_too_long; /* for that: then everything is sent whole */
    struct icap_notice notice;
};

/* X-Answers-Within is Retort's own: for so long a service may let a transaction wait for its
 * helpers, so a client that waits for less takes a slow picture for a service that failed. */
/* False with a reason: it can't be used so. An ISTag is never cut, as others might begin alike; RFC
 * 3507 §4.7 has 32 bytes for it, ICAP_TAG - 1 are taken. */
bool icap_options_parse(struct icap_options *options, const struct http_head *head,
                        const char **error);
/* By the file extension of the path, without the query, case-insensitively (RFC 3507 §4.10.2). */
enum icap_transfer icap_options_transfer(const struct icap_options *options, struct slice path);

#endif
