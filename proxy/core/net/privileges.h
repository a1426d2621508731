/*
 * Privileges of sockets: what Linux allows only with CAP_NET_ADMIN, and what transparent mode needs.
 *
 *     if (!privileges_set_foreign(fd, &address, true))       before bind, or on a listening socket
 *         fprintf(stderr, "%s%s", strerror(errno), privileges_advice(errno));
 *     if (!privileges_set_mark(fd, 7)) ...
 *     int missing = privileges_missing(true, 7);             what retort -t asks
 *
 * Threads: any.
 */
#ifndef RETORT_NET_PRIVILEGES_H
#define RETORT_NET_PRIVILEGES_H

#include "net/address.h"

/* Lets the socket be bound to addresses of other machines, and take connections to them
 * (IP_TRANSPARENT, IPV6_TRANSPARENT). `address` says of which family it is. False: errno is set. */
bool privileges_set_foreign(int fd, const struct address *address, bool on);
/* Sets the mark that rules of the firewall see on the packets of the socket (SO_MARK). False: errno
 * is set. */
bool privileges_set_mark(int fd, unsigned mark);
/* Tries both on a new socket; mark 0: no mark is wanted. Returns 0, or the error. */
int privileges_missing(bool foreign, unsigned mark);
/* Says what the operator can do about the error: "; ...", or nothing. */
const char *privileges_advice(int error);

#endif
