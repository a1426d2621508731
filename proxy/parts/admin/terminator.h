/*
 * The terminator: it ends the TLS of connections to the admin plane. It accepts them, makes the
 * handshakes, and hands libmicrohttpd the clear end: one socket of a pair, whose other socket it
 * relays. Bytes go both ways as fast as the slower side takes them (transaction/relay.h). What a
 * client has shown in the handshake is known of its connection (admin/connections.h), never from
 * bytes that it sends.
 *
 *     struct terminator *terminator = terminator_start(daemon, &calls, &address, socket);
 *     terminator_quiet(terminator);                   it accepts no more connections
 *     terminator_detach(terminator);                  libmicrohttpd gets no more
 *     MHD_stop_daemon(daemon);
 *     terminator_stop(&terminator, 500);              what was answered meanwhile gets out
 *
 * TERMINATOR_PATIENCE limits a handshake from accept to end, and the time that a client takes
 * nothing of the rest of an answer. All else libmicrohttpd limits, as it does in clear text: it
 * sees that the pair is full. The number of connections has its bound there as well.
 *
 * A client that begins with a capital letter speaks HTTP without TLS, and gets a 400 that says so.
 * After a failure the connection stays for a moment, so that the client can read the alert.
 *
 * Threads: it has one of its own. The functions are for the thread that starts it.
 */
#ifndef RETORT_ADMIN_TERMINATOR_H
#define RETORT_ADMIN_TERMINATOR_H

#include "admin/admin.h"

struct MHD_Daemon;
struct terminator;

enum { TERMINATOR_PATIENCE = 15000 /* milliseconds */ };

/* `connections`, `guard` and `settings` of the calls are used from its thread. `socket` listens at
 * the address, and stays the caller's. NULL: errno says why. */
struct terminator *terminator_start(struct MHD_Daemon *daemon, const struct admin_calls *calls,
                                    const struct address *address, int socket);
/* Only once. It is quiet a moment later. */
void terminator_quiet(struct terminator *terminator);
bool terminator_is_quiet(const struct terminator *terminator);
/* Behind this the daemon is not used any more. */
void terminator_detach(struct terminator *terminator);
/* When libmicrohttpd has stopped. `patience`: milliseconds for clients to take what they were
 * answered. */
void terminator_stop(struct terminator **terminatorp, unsigned patience);

#endif
