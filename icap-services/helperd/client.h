/*
 * A client of retort-helperd: a connection to its socket. It brings jobs, one at a time
 * (helper_protocol.h), or commands in JSON (control.h); a packet that begins with "{" is a command.
 * When it hangs up, its job is cancelled.
 */
#ifndef RETORT_HELPERD_CLIENT_H
#define RETORT_HELPERD_CLIENT_H

#include "helperd/supervisor.h"

struct client;

/* Takes over the descriptor. */
void client_create(struct supervisor *supervisor, int fd);
void client_close_all(struct supervisor *supervisor);

#endif
