/*
 * Handover: passes the listening sockets, the admin socket and the volumes of this process to
 * another one, usually a newer program, which takes over (takeover.h; takeover_wire.h has the
 * messages).
 *
 *     struct handover *handover = handover_start(server, &admin, inherited, error);
 *     ...
 *     if (handover_is_done(handover)) ...      another process serves; drain and end
 *     handover_stop(&handover);
 *
 * The other process must belong to the same user. It first checks everything that can fail. Then
 * this one gives up its volumes and goes on to serve from memory. When the other one says that it
 * serves, this process retires: each connection gets an answer to the request that is under way or
 * the next one. When the other process ends before, this one takes its volumes back and goes on.
 *
 * Threads: one of its own; the calls from the main thread.
 */
#ifndef RETORT_HANDOVER_H
#define RETORT_HANDOVER_H

#include "admin/admin.h"
#include "server.h"

struct handover;

/* Listens at the socket of the settings, or at the inherited one. Returns NULL with a message when
 * that is not possible; an empty message: the settings have no such socket. */
struct handover *handover_start(struct server *server, struct admin *admin,
                                struct inherited *inherited, char error[SETTINGS_ERROR]);
/* Has another process taken over? Then SIGTERM was sent to this process. */
bool handover_is_done(const struct handover *handover);
/* Ends the thread, and a handover under way. */
void handover_stop(struct handover **handoverp);

#endif
