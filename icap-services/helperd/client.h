/*
 * A client of retort-helperd: a connection to its socket. A client sends jobs, one at a time
 * (helper_protocol.h), or commands in JSON (control.h). A packet that begins with "{" is a command.
 * When a client hangs up, its job is cancelled. Threads: one.
 */
#ifndef RETORT_HELPERD_CLIENT_H
#define RETORT_HELPERD_CLIENT_H

#include "helperd/supervisor.h"

struct client;

/* Takes over the descriptor. */
void client_create(struct supervisor *supervisor, int fd);
void client_close_all(struct supervisor *supervisor);

#endif
