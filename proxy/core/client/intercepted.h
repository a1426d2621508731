/*
 * What is known of an intercepted connection: the requests inside it, their log lines and the
 * services that see them need it. Who opens the connection makes it, and the HTTP connection inside refers to
 * it (exchange->ends->intercepted).
 *
 *     struct intercepted_facts facts = {.name = SLICE("www.example.com"), .port = 443, ...};
 *     struct intercepted *intercepted = intercepted_new(&facts, &class);
 *     clients_adopt(clients, &(struct client_arrival){.intercepted = intercepted, ...});
 *     intercepted_release(&intercepted);
 *
 *     const struct intercepted *within = exchange->ends->intercepted;      NULL: not intercepted
 *     if (!intercepted_is_for(within, url.host, url.port)) ...             421
 *
 * The origin's certificate was verified for `name` at the place that the client itself named, so a
 * request inside may only be for `name` and `port`: anything else is answered with 421 (RFC 9110
 * §15.5.20).
 *
 * Threads: the worker's; the count of references is not atomic. Memory: its own.
 */
#ifndef RETORT_CLIENT_INTERCEPTED_H
#define RETORT_CLIENT_INTERCEPTED_H

#include "base/assert.h"
#include "base/slice.h"
#include "client/identity.h"

#include <stdint.h>

struct intercepted_facts {
    struct slice name; /* of the server that the requests are for: the SNI, or else the host or the
                          address that the client connects to; lower case, IPv6 without brackets */
    uint16_t port;
    /* Where the server is reached: the host or the address that the client connects to. It differs
     * from `name` when the client sends another SNI, and for connections to an address. */
    struct slice place;
    struct slice connect;      /* the CONNECT's target, or the destination: "host:port" */
    struct identity *identity; /* whose the CONNECT is; NULL: nobody is proved */
    struct slice credentials;  /* Proxy-Authorization of the CONNECT; empty: none */
    struct slice sni;          /* as the client sent it, lower case; empty: none */
    struct slice issuer;       /* of the origin's certificate; empty: not known */
    struct slice verification; /* "ok", or why the origin's certificate is not trusted */
    /* The answer to every request inside, when the connection is only there to show a page. */
    unsigned page_status;       /* 0: there is no such page */
    struct slice page_error;    /* the reason, for the proxy's own page; empty: the page below */
    struct slice page_name;     /* of the error_page section; empty: class and status choose it */
    struct slice page_location; /* a redirection in place of the page; empty: none */
    struct slice page_rule;     /* the class of the access section that decided; empty: none did */
    struct slice page_head;     /* a response head that a service made, as text */
    struct slice page_body;
};

struct bumped_class;

struct intercepted {
    unsigned magic;
#define INTERCEPTED_MAGIC 0x19e4ce97u
    unsigned references;
    const struct bumped_class *class; /* of who has opened the connection (transaction/bumped.h) */
    struct intercepted_facts facts;
    char text[]; /* what the facts point to */
};

/* Copies the facts, and takes a reference on the identity. The caller has the one reference. */
struct intercepted *intercepted_new(const struct intercepted_facts *facts,
                                    const struct bumped_class *class);
void intercepted_free(struct intercepted *intercepted);
/* May a request inside be for this host and port? The host has one spelling (http/url.h), without
 * brackets. */
bool intercepted_is_for(const struct intercepted *intercepted, struct slice host, uint16_t port);

static inline struct intercepted *intercepted_reference(struct intercepted *intercepted) {
    CHECK_OBJ(intercepted, INTERCEPTED_MAGIC);
    intercepted->references++;
    return intercepted;
}

static inline void intercepted_release(struct intercepted **interceptedp) {
    struct intercepted *intercepted = *interceptedp;
    *interceptedp = NULL;
    if (intercepted != NULL && --intercepted->references == 0)
        intercepted_free(intercepted);
}

#endif
