/*
 * Control: the questions and orders of the admin plane to the server.
 *
 *     struct admin_calls calls = control_calls(&server);
 *     struct admin *admin = admin_start(server.settings, &calls, -1, error);
 *
 * Threads: the calls come from the threads of the admin plane. They reach workers by messages.
 */
#ifndef RETORT_CONTROL_H
#define RETORT_CONTROL_H

#include "admin/admin.h"
#include "server.h"

/* Call it after server_start. */
struct admin_calls control_calls(struct server *server);

#endif
