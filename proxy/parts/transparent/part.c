#include "part.h"

#include "server.h"
#include "transaction/transaction.h"
#include "transparent/connection.h"
#include "transparent/own_connections.h"
#include "transparent/settings.h"

/* The part transparent: listeners that a firewall redirects connections to. */

static void transparent_open(struct server *server) {
    server->parts[PART_TRANSPARENT] = own_connections_new();
}

static void transparent_close(struct server *server) {
    struct own_connections *own = server->parts[PART_TRANSPARENT];
    server->parts[PART_TRANSPARENT] = NULL;
    own_connections_free(&own);
}

static void transparent_join(struct transaction_host *host, void *state) {
    host->net->own_connections = state;
}

static const struct step_row *const steps[] = {&destination_step, NULL};

const struct part part_transparent = {
    .settings = &transparent_part_settings,
    .process = {.open = transparent_open, .close = transparent_close},
    .worker = {.join = transparent_join, .accept_redirected = transparent_accept},
    .steps = steps,
};
