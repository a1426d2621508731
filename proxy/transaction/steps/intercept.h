/*
 * INTERCEPT: answers a CONNECT, reads the client's ClientHello, and decides what becomes of the
 * connection: spliced, bumped or blocked. Services are asked after this step, so that they see the
 * name that the client asks for; what they say may only be more restrictive or less inspecting.
 *
 *     if (intercept_is_wanted(transaction->request.kind, transaction->settings))
 *         return STEP_INTERCEPT;
 *     ...
 *     if (transaction->intercept != NULL) ...     the client has been told that the tunnel is open
 *
 * From here on nothing can be answered in clear text any more. A page is shown inside TLS by the
 * step BUMP, or the connection is cut.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_INTERCEPT_H
#define RETORT_TRANSACTION_STEPS_INTERCEPT_H

#include "event/source.h"
#include "http/head.h"
#include "net/duplex.h"
#include "settings/interception.h"
#include "settings/settings.h"
#include "tls/client_hello.h"
#include "transaction/request.h"
#include "transaction/step.h"

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
    struct transaction *transaction;
    struct duplex *client;    /* owned; NULL: another step has it */
    struct net_buffer *bytes; /* read from the client; NULL: none, or another step has them */
    struct timer timer;
    bool timed_out;
    bool decided;
    bool is_tls; /* the bytes begin with a whole ClientHello, which is `hello` */
    struct client_hello hello;
    enum intercept_action action;
    struct slice name;   /* of the server: the SNI, or the host of the CONNECT; without brackets */
    struct slice place;  /* "name:port" */
    struct slice server; /* the same, with the host of the CONNECT if that is another one */
    struct intercept_page page;
};

struct transaction;

/* Is the ClientHello of the connection to be read, to open the connection, or only because the name
 * in it decides who may go there? `kind` is the request's. */
static inline bool intercept_is_wanted(enum request_kind kind, const struct settings *settings) {
    return kind == REQUEST_CONNECT &&
           (settings->intercept_count > 0 || settings->access_names_servers);
}
/* The name that the client asks for; empty: none that may be used, or there is no interception. */
struct slice intercept_sni(const struct transaction *transaction);
/* A service has changed the CONNECT: takes its field X-Intercept. */
void intercept_narrow(struct transaction *transaction, const struct http_head *head);
/* A service answers the CONNECT itself. Takes the body. */
enum step intercept_answer(struct transaction *transaction, struct http_head *answer,
                           struct source **bodyp);
/* The CONNECT fails: BUMP will show why, or the connection is cut. `reason` is for the log, `name`
 * that of an error_page section, or NULL. */
enum step intercept_fail(struct transaction *transaction, unsigned status, const char *reason,
                         struct slice sentence, const char *name);
/* Is the step to show why access refuses this CONNECT? It then leaves access->refusal. Where false,
 * the answer is in clear text. */
bool intercept_shows_refusals(struct transaction *transaction);
/* The step that follows when services have been asked. */
enum step intercept_next(struct transaction *transaction);
/* Gives the client's side and what was read from it to the caller. */
struct duplex *intercept_take_client(struct transaction *transaction, struct net_buffer **bytesp);
/* Reads the body of the answer; the transaction's task runs when there may be more. */
enum source_status intercept_read_page(struct transaction *transaction, char *buffer,
                                       size_t capacity, size_t *got);
/* The connection is spliced after all. */
void intercept_splice(struct transaction *transaction);
/* Ends what is under way. It may be called again. */
void intercept_end(struct transaction *transaction);

#endif
