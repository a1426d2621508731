/*
 * The journal of a transaction: what its steps have come to, gathered once when it ends, for all who tell of it: the
 * access logs and icap_logs, the event stream, and services that hear of log lines. What lines say of it, and in which
 * codes and members, is one table: log/fields.def.
 *
 *     journal_show(transaction, took);                  LOG: to the logs, and to who watches (watcher.h)
 *
 * When each step began is noted only while somebody looks at the steps, by debug lines, spans or a step_watcher: struct
 * step_times.
 *
 * Threads: the worker's. Units: bytes; microseconds; the time is the wall clock's. Ownership: a journal only points, to
 * what lives until the readers return.
 */
#ifndef RETORT_TRANSACTION_JOURNAL_H
#define RETORT_TRANSACTION_JOURNAL_H

#include "client/exchange.h"
#include "http/trace_context.h"
#include "settings/settings.h"
#include "transaction/asked.h"
#include "transaction/outcome.h"
#include "transaction/step.h"

#include <string.h>

struct transaction;

struct journal {
    struct timespec time;              /* wall clock, at the end; milliseconds count */
    uint64_t duration;                 /* microseconds */
    uint64_t number;                   /* shown in hexadecimal digits: the transaction's id */
    const struct trace_context *trace; /* NULL: it is not traced */
    struct slice client, method, url, content_type, origin;
    struct slice host; /* of the URL: lower case, without a port; empty: it is not known */
    const struct address *client_address; /* that `client` shows */
    bool hides_port;                      /* the address is not whole */
    const struct listen_settings *listen; /* NULL: a reload has removed it */
    struct slice destination; /* that a client in transparent mode connected to; empty: none */
    bool unproven;            /* which is not one of the addresses of the request's host */
    const struct http_head *request; /* for its User-Agent and Referer; NULL: it was unreadable */
    const struct reply *reply;       /* what the client was sent; NULL: nothing */
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
    unsigned asked_count;
    const struct asked_service *asked;   /* the services, in their order */
    const struct class_subject *subject; /* what classes are compared with; NULL: none match */
    const struct asked_service
        *call; /* that a line of an icap_log is about; NULL: it is about the request */
};

/* What log formats show in other words than the members. */

/* The status; that of nginx for a client that left before there was one. */
static inline unsigned journal_status(const struct journal *journal) {
    enum { CLIENT_LEFT = 499 };
    return journal->status > 0 ? journal->status : CLIENT_LEFT;
}

/* The URL, or Squid's words in its place where no request could be read. */
static inline struct slice journal_squid_url(const struct journal *journal) {
    if (journal->url.length > 0)
        return journal->url;
    return journal->status == 408 ? SLICE("error:transaction-end-before-headers")
                                  : SLICE("error:invalid-request");
}

/* "text/html", of "text/html; charset=utf-8". */
static inline struct slice journal_media_type(const struct journal *journal) {
    struct slice type = journal->content_type;
    const char *parameters = type.length > 0 ? memchr(type.base, ';', type.length) : NULL;
    if (parameters == NULL)
        return type;
    return slice_trim(slice_make(type.base, (size_t)(parameters - type.base)));
}

/* A name that nobody has proved is not shown where readers take it for a user's; empty: none. */
static inline struct slice journal_user(const struct journal *journal) {
    if (!journal->user_proved)
        return slice_make("", 0);
    return slice_equal(journal->user, SLICE("-")) ? SLICE("%2D") : journal->user;
}

/* Of the request, if there was one that could be read. */
static inline struct slice journal_request_field(const struct journal *journal, enum http_name id) {
    return journal->request != NULL ? http_head_value(journal->request, id) : slice_make("", 0);
}

/* The client's version of HTTP where it is not 1; otherwise empty. */
static inline struct slice journal_http2(const struct journal *journal) {
    bool is_2 = journal->version.length > 0 && journal->version.base[0] == '2';
    return is_2 ? journal->version : slice_make("", 0);
}

/* Nanoseconds of the monotonic clock. Written by transaction.c. */
struct step_times {
    uint64_t begun[STEP_DONE +
                   1]; /* where one begins, the one before it ends; 0: it did not come to it */
    uint64_t now;      /* the present step has run */
    uint64_t waits;    /* when it first had to wait; 0: it has not */
};

void journal_show(struct transaction *transaction, uint64_t took);

#endif
