/*
 * Control: the questions and orders of the admin plane to the server.
 *
 *     struct admin_calls calls = server_calls_of(&server);
 *     struct admin *admin = admin_start(server.settings, &calls, -1, error);
 *
 * Threads: the calls come from the threads of the admin plane. They reach workers by messages.
 */
#ifndef RETORT_ADMIN_SERVER_CALLS_H
#define RETORT_ADMIN_SERVER_CALLS_H

#include "admin/admin.h"
#include "server.h"

/* Call it after server_start. */
struct admin_calls server_calls_of(struct server *server);

#endif
