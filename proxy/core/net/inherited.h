/*
 * Inherited sockets: listening sockets that another process opened. systemd passes them as
 * LISTEN_FDS (sd_listen_fds(3)); a retort that is taken over passes its own (takeover/takeover.h).
 *
 *     struct inherited *inherited = inherited_new();
 *     inherited_read_environment(inherited);
 *     unsigned count = inherited_take(inherited, &address, fds, most);     the sockets listen there
 *     inherited_free(&inherited);                                        closes what nobody took
 *
 * A socket is found by the address at which it listens. Several descriptors of one socket count as
 * one. The name in LISTEN_FDNAMES does not matter.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_NET_INHERITED_H
#define RETORT_NET_INHERITED_H

#include "net/address.h"

struct inherited;

struct inherited *inherited_new(void);
/* Takes what LISTEN_PID and LISTEN_FDS say is for this process, and removes both from the
 * environment, since processes that it starts are not meant. */
void inherited_read_environment(struct inherited *inherited);
/* The descriptor now belongs to `inherited`. It is closed if it is no listening socket. */
void inherited_add(struct inherited *inherited, int fd);
/* Moves the sockets at the address into `fds`, and returns their number. NULL: there are none. */
unsigned inherited_take(struct inherited *inherited, const struct address *address, int *fds,
                        unsigned most);
/* Is there a socket for this port that nobody has taken? */
bool inherited_has_port(const struct inherited *inherited, uint16_t port);
/* Removes the files of Unix sockets that nobody has taken: their process has given them away. */
void inherited_drop(const struct inherited *inherited);
/* Logs a warning for each socket that nobody has taken, and has the service manager forget it. */
void inherited_discard(const struct inherited *inherited);
void inherited_free(struct inherited **inheritedp);

#endif
