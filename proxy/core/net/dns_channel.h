/*
 * A channel to the name servers: questions and answers, by c-ares on the worker's loop. What c-ares
 * does: servers, tries, UDP and TCP, the match of question and answer. What it leaves: names,
 * search domains and memory are the resolver's (net/resolver.h).
 *
 *     struct dns_channel *channel = dns_channel_new(net, &terms);
 *     dns_channel_ask(channel, "www.example.com", DNS_TYPE_A, on_answer, asking);
 *
 *     static void on_answer(void *arg, const unsigned char *bytes, size_t length, const char *error)
 *                                           length 0: error says why there is no answer
 *
 * on_answer runs exactly once for each question, maybe before dns_channel_ask returns, and at the
 * latest when the channel is freed (error DNS_CHANNEL_CLOSED).
 *
 * Threads: a channel belongs to one worker.
 */
#ifndef RETORT_NET_DNS_CHANNEL_H
#define RETORT_NET_DNS_CHANNEL_H

#include "net/context.h"

struct dns_channel;

struct dns_terms {
    char *const *servers; /* IP addresses, maybe with ports; end with NULL; NULL or "system": those
                             of /etc/resolv.conf */
    uint64_t timeout;     /* milliseconds, for all tries */
    unsigned tries;       /* of each server */
};

typedef void dns_answer_fn(void *arg, const unsigned char *bytes, size_t length, const char *error);

extern const char dns_channel_closed[];

/* NULL: it can't be made; the log says why. */
struct dns_channel *dns_channel_new(struct net_context *net, const struct dns_terms *terms);
void dns_channel_free(struct dns_channel **channelp);
void dns_channel_ask(struct dns_channel *channel, const char *name, int type,
                     dns_answer_fn *on_answer, void *arg);
/* The search domains of /etc/resolv.conf, ended by NULL, and how many dots make a name complete. */
char *const *dns_channel_domains(const struct dns_channel *channel);
unsigned dns_channel_dots(const struct dns_channel *channel);

#endif
