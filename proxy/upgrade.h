/*
 * Upgrade: what the server and the admin plane do when another process takes over.
 *
 *     struct upgrade upgrade = {&server, admin};
 *     const struct handover_calls calls = upgrade_calls(&upgrade);
 *     handover = handover_open(&calls, settings, inherited, error);      takeover/handover.h
 *
 * Threads: the calls come from the thread of the handover. They reach workers by messages.
 */
#ifndef RETORT_UPGRADE_H
#define RETORT_UPGRADE_H

#include "admin/admin.h"
#include "server.h"
#include "takeover/handover.h"

struct upgrade {
    struct server *server;
    struct admin *admin;
};

/* Call it after server_open. The upgrade must outlive the handover. */
struct handover_calls upgrade_calls(struct upgrade *upgrade);

#endif
