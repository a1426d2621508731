/*
 * A line of an access log: what it says of a transaction, and how each format says it. Bytes of the
 * client's that could forge or break a line are escaped.
 *
 *     char line[ACCESS_LINE_MAX];
 *     struct access_line_time time = {.length = 0};
 *     size_t length = access_line_write(line, ACCESS_LOG_JSON, &entry, &time);
 *
 *     (write the first `length` bytes: a line with its line break)
 *
 * Called by transaction/access_log.h for each log, when a request has ended.
 *
 * Units: bytes; microseconds; the time is the wall clock's. Threads: pure functions on values.
 * Ownership: an entry only points, to what lives until the call returns. Errors: none.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LINE_H
#define RETORT_TRANSACTION_ACCESS_LINE_H

#include "adapt/chain.h"
#include "settings/settings.h"
#include "transaction/outcome.h"

/* Bytes that a line may have. */
enum { ACCESS_LINE_MAX = 81920 };

enum { ACCESS_CHAINS = 5 }; /* of services: one a point, and what is remembered */

struct access_entry {
    struct timespec time; /* wall clock, at the end; milliseconds count */
    uint64_t duration;    /* microseconds */
    uint64_t number;      /* shown in hexadecimal digits: the transaction's id */
    struct slice client, method, url, content_type, origin;
    struct slice destination; /* that a client in transparent mode connected to; empty: none */
    bool unproven;            /* which is not one of the addresses of the request's host */
    const struct http_head *request; /* for its User-Agent and Referer; NULL: it was unreadable */
    struct slice version;            /* of the client's HTTP: "1.1" */
    unsigned status;
    uint64_t bytes;      /* sent to the client, heads included */
    uint64_t body_bytes; /* without them */
    enum cache_result result;
    const char *step;
    const char *error; /* NULL: none */
    bool aborted;      /* the client did not get all of it */
    /* What follows is empty or NULL where it is not known; the JSON format shows it. */
    struct slice access, access_log_only; /* classes of the access sections that decided, and that
                                             would have decided */
    const char *limit; /* the limit section that refused the request or cut the reply */
    struct slice user; /* proved, or else as the Proxy-Authorization of the request or its CONNECT
                          claims */
    bool user_proved;  /* then all formats show it */
    const struct tls_facts *tls;       /* of the client's connection */
    const char *intercept;             /* of a CONNECT: "splice", "bump", "block" */
    struct slice sni, connect;         /* of the connection around the request, or of the CONNECT */
    struct slice issuer, verification; /* of the origin's certificate */
    unsigned chain_count;
    const struct adapt_chain *chains[ACCESS_CHAINS];
};

/* The text of a time, for the lines of the same moment. Zeroed at first; for one format. */
struct access_line_time {
    struct timespec time;
    size_t length;
    char text[32];
};

/* Writes the line with its end; returns its length. There is room for ACCESS_LINE_MAX bytes. */
size_t access_line_write(char *out, enum access_log_format format, const struct access_entry *entry,
                         struct access_line_time *time_text);

#endif
