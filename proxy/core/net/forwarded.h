/*
 * X-Forwarded-For and Forwarded (RFC 7239): what proxies in front say of the client.
 *
 *     const struct forwarded_trust trust = {FORWARDED_BY_X, listen->trusted_proxies, count};
 *     if (forwarded_client(&head, &trust, &peer, &client))
 *         ... `client` is the client, `peer` a proxy of ours ...
 *
 *     char element[FORWARDED_ELEMENT];
 *     size_t length = forwarded_write(element, &client, "https");    for="[2001:db8::1]";proto=https
 *
 * Each proxy adds the address that it got the request from at the end. So the lists are read from
 * the right, and only as long as a trusted proxy has written: the first address that is not a
 * trusted proxy's is the client's. What stands before it was chosen by the client. A list that a
 * client has begun to confuse this reading, by quotation marks for example, changes nothing on its
 * right side.
 *
 * An element that names no address ("unknown", "_hidden", or nonsense) ends the reading, too: the
 * client is then the proxy that has written it.
 *
 * Threads: pure functions.
 */
#ifndef RETORT_NET_FORWARDED_H
#define RETORT_NET_FORWARDED_H

#include "http/head.h"
#include "net/address.h"

/* Which field tells the client's address. */
enum forwarded_field { FORWARDED_BY_X, FORWARDED_BY_RFC };

struct forwarded_trust {
    enum forwarded_field field;
    const struct network *proxies;
    size_t proxy_count;
};

/* Proxies that a request may have passed; what stands before is not read. */
enum { FORWARDED_HOPS = 64 };

bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct address *address);
/* Finds the client of a request from `peer`. False: it is the peer itself, because the peer is not
 * trusted or does not tell of another. The port is 0 when none was told. */
bool forwarded_client(const struct http_head *head, const struct forwarded_trust *trust,
                      const struct address *peer, struct address *client);

/* Takes the last element off the end of a list, without blanks around it; it may be empty. False:
 * the list is over. Commas in quotation marks separate nothing. */
bool forwarded_take_last(struct slice *list, struct slice *element);
/* The address in an element of X-Forwarded-For: "192.0.2.1", "192.0.2.1:4711", "2001:db8::1",
 * "[2001:db8::1]:4711". */
bool forwarded_parse_x(struct slice element, struct address *address);
/* The address in the parameter "for" of an element of Forwarded. */
bool forwarded_parse(struct slice element, struct address *address);

enum { FORWARDED_ELEMENT = 96 };
/* Writes an element of Forwarded about a client and the scheme of its request. */
size_t forwarded_write(char out[FORWARDED_ELEMENT], const struct address *client,
                       struct slice scheme);

#endif
