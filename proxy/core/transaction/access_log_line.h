/*
 * A line of an access log: what it says of a transaction, and how each format says it. Bytes of the
 * client's that could forge or break a line are escaped.
 *
 *     char line[LOG_LINE_MAX];
 *     struct access_log_line_time time = {.length = 0};
 *     size_t length = access_log_line_write(line, &settings->access_logs[0], &entry, &time);
 *
 *     (write the first `length` bytes: a line with its line break)
 *
 * Called by transaction/access_log.h for each log, when a request has ended.
 *
 * Units: bytes; microseconds; the time is the wall clock's. Threads: pure functions on values.
 * Ownership: an entry only points, to what lives until the call returns. Errors: none.
 */
#ifndef RETORT_TRANSACTION_ACCESS_LOG_LINE_H
#define RETORT_TRANSACTION_ACCESS_LOG_LINE_H

#include "adapt/chain.h"
#include "client/exchange.h"
#include "log/line.h"
#include "settings/settings.h"
#include "transaction/outcome.h"
#include "transaction/step.h"

/* A call of a service, for a line of an icap_log. */
struct access_call {
    const struct adapt_record *record;
    const struct adapter_call *call;
    bool reqmod;
};

struct access_entry {
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
    unsigned chain_count;
    const struct adapt_chain *chains[STEP_CHAINS];
    const struct class_subject *subject; /* what classes are compared with; NULL: none match */
    const struct access_call *call;      /* that the line is about; NULL: it is about the request */
};

/* The text of a time, for the lines of the same moment. Zeroed at first; for one format. */
struct access_log_line_time {
    struct timespec time;
    size_t length;
    char text[32];
};

/* Writes the line with its end; returns its length. There is room for LOG_LINE_MAX bytes. */
size_t access_log_line_write(char *out, const struct log_settings *log,
                             const struct access_entry *entry,
                             struct access_log_line_time *time_text);

/* Values as the formats of Squid and Apache have them. */
/* The status; that of nginx for a client that left before there was one. */
unsigned access_log_line_status(const struct access_entry *entry);
/* The URL, or Squid's words in its place where no request could be read. */
struct slice access_log_line_squid_url(const struct access_entry *entry);
/* "text/html", of "text/html; charset=utf-8". */
struct slice access_log_line_media_type(const struct access_entry *entry);
/* A name that nobody has proved is not shown where readers take it for a user's; empty: none. */
struct slice access_log_line_user(const struct access_entry *entry);
/* "gray:MODIFIED:12,gzip:UNMODIFIED:3", or "-". */
void access_log_line_put_services(struct log_line *line, const struct access_entry *entry);

#endif
