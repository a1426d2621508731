/*
 * Which action the operator's intercept sections say for a connection.
 *
 *     struct intercept_subject subject = {.host = SLICE("192.0.2.7"), .host_is_address = true,
 *                                         .port = 443, .name = SLICE("www.example.com"), ...};
 *     switch (intercept_rules_decide(settings, &subject, arena)) ...
 *
 * The name that the client asks for (SNI) decides. If the client connects to a host by name, and
 * the two names differ, the host is looked up too, and the more restrictive action of the two
 * applies: a client that names one host and asks for another (domain fronting) gains nothing. If
 * the client connects to an address, the host is looked up only when there is no name: nearly every
 * rule is about names, and an address would fall under the rule for the rest.
 *
 * Threads: any; memory of the arena.
 */
#ifndef RETORT_INTERCEPT_RULES_H
#define RETORT_INTERCEPT_RULES_H

#include "base/arena.h"
#include "intercept/settings.h"

struct intercept_subject {
    struct slice host; /* that the client connects to: lower case, without brackets */
    bool host_is_address;
    uint16_t port;
    struct slice name; /* SNI, lower case; empty: none that may be used */
    /* What is known of the CONNECT, or of the connection to a transparent listener: all but the
     * method, the host, the URL and the path is taken from here. */
    const struct class_subject *connection;
};

/* INTERCEPT_SPLICE when no section matches. */
enum intercept_action intercept_rules_decide(const struct interception_settings *settings,
                                             const struct intercept_subject *subject,
                                             struct arena *arena);

#endif
