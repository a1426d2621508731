/*
 * What a resolver remembers, for people.
 *
 *     struct resolver_wish wish = {.name = "www.example.com"};          an empty name: all
 *     if (resolver_report_ask(worker, &wish, &report, 1000)) ...        filled in the worker's thread
 *     ... report.names[i] ...
 *     resolver_report_release(&report);
 *
 * Threads: a value; it is filled in the worker's thread and read in another one.
 */
#ifndef RETORT_ADMIN_RESOLVER_REPORT_H
#define RETORT_ADMIN_RESOLVER_REPORT_H

#include "net/dns_message.h"
#include "net/resolver.h"

enum { RESOLVER_REPORT_MOST = 1000 }; /* names in a report; the ones used last */

struct worker;

struct resolver_wish {
    char name[RESOLVER_NAME_MAX + 1];
    bool forget; /* the names, instead of reporting them */
};

struct resolver_name {
    char *name;
    const char *error;   /* static text; NULL: there are addresses, or nothing is known yet */
    uint64_t expires_in; /* milliseconds */
    uint64_t stale_for;  /* how long the addresses may serve while name servers fail */
    bool kept;           /* the configuration has the name */
    bool failing;        /* the last look-up failed, and old addresses serve */
    bool asking;         /* a look-up is under way */
    unsigned count[2];   /* of IPv4, of IPv6 */
    unsigned char ips[2][DNS_ANSWER_IPS][DNS_IP_SIZE];
};

struct resolver_report {
    unsigned found; /* names that the wish is for */
    unsigned count; /* of them in `names` */
    struct resolver_name *names;
};

/* As worker_ask; the resolver may be told to forget. */
bool resolver_report_ask(struct worker *worker, const struct resolver_wish *wish,
                         struct resolver_report *report, unsigned patience);
void resolver_report_release(struct resolver_report *report);

#endif
