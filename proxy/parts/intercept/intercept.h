/*
 * INTERCEPT: answers a CONNECT, reads the client's ClientHello, and decides what becomes of the
 * connection: spliced, bumped or blocked. Services are asked after this step, so that they see the
 * name that the client asks for; what they say may only be more restrictive or less inspecting.
 *
 *     if (intercept_of(transaction) != NULL) ...     the client has been told that the tunnel is open
 *
 * From here on nothing can be answered in clear text any more. A page is shown inside TLS by the
 * step BUMP, or the connection is cut.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_INTERCEPT_INTERCEPT_H
#define RETORT_INTERCEPT_INTERCEPT_H

#include "intercept/interception.h"
#include "intercept/settings.h"
#include "tls/client_hello.h"
#include "transaction/early_tunnel.h"
#include "transaction/transaction.h"

/* What the client is shown instead of the origin's answers. */
struct intercept_page {
    unsigned status;       /* 0: there is no page */
    struct slice error;    /* the reason, for a page of the proxy's own; empty: the answer below */
    const char *name;      /* of its error_page section; NULL: class and status choose it */
    struct slice location; /* a redirection in place of the page; empty: none */
    struct http_head *answer; /* of a service */
    struct source *body;      /* owned; NULL: none */
};

/* Written by intercept.c. */
struct intercept {
    struct early_tunnel base; /* with the SNI */
    struct transaction *transaction;
    struct duplex *client;    /* owned; NULL: another step has it */
    struct net_buffer *bytes; /* read from the client; NULL: none, or another step has them */
    struct timer timer;
    bool timed_out;
    bool is_tls; /* the bytes begin with a whole ClientHello, which is `hello` */
    struct client_hello hello;
    enum intercept_action action;
    struct slice name;   /* of the server: the SNI, or the host of the CONNECT; without brackets */
    struct slice place;  /* "name:port" */
    struct slice server; /* the same, with the host of the CONNECT if that is another one */
    struct intercept_page page;
    struct bump *bump; /* BUMP's; NULL: the connection is not opened */
};

extern const struct step_row intercept_step, bump_step;

/* What the part keeps for a worker. */
struct intercept_host {
    struct interception *shared;
    struct tls_server *inside,
        *inside_http1; /* toward clients; without HTTP/2, where the listener says so */
};

static inline const struct interception_settings *
intercept_settings(const struct transaction *transaction) {
    return interception_settings_of(transaction->settings);
}

static inline struct intercept_host *intercept_host_of(const struct transaction *transaction) {
    return transaction->host->parts[PART_INTERCEPT];
}

static inline struct interception *interception_of(const struct transaction *transaction) {
    return intercept_host_of(transaction)->shared;
}

/* NULL: nobody looks into this CONNECT. */
static inline struct intercept *intercept_of(const struct transaction *transaction) {
    return transaction->parts[PART_INTERCEPT];
}

/* Are ClientHellos to be read, to open connections, or only because the name in one decides who may go
 * there? */
bool intercept_is_needed(const struct settings *settings);
/* The CONNECT fails: BUMP will show why, or the connection is cut. `reason` is for the log, `name`
 * that of an error_page section, or NULL. */
enum step intercept_fail(struct transaction *transaction, unsigned status, const char *reason,
                         struct slice sentence, const char *name);
/* Does BUMP open the connection, once services have been asked? If not, it is spliced. Asked once. */
bool intercept_opens(struct transaction *transaction);
/* Gives the client's side and what was read from it to the caller. */
struct duplex *intercept_take_client(struct transaction *transaction, struct net_buffer **bytesp);
/* Reads the body of the answer; the transaction's task runs when there may be more. */
enum source_status intercept_read_page(struct transaction *transaction, char *buffer,
                                       size_t capacity, size_t *got);
/* The connection is spliced, which is counted. */
void intercept_splice(struct transaction *transaction);

#endif
