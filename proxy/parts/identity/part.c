#include "part.h"

#include "identity/authentication.h"
#include "identity/settings.h"
#include "server.h"
#include "transaction/transaction.h"

/* The part identity: what all workers share to prove who clients are. The settings say who is asked (settings.c), and
 * ACCESS asks (settings.c). */

static void identity_open(struct server *server) {
    const struct settings *settings = server->settings;
    server->parts[PART_IDENTITY] =
        authentication_new(&identity_settings(settings)->authentication, settings->workers);
}

static void identity_change(struct server *server, struct settings *settings) {
    authentication_configure(server->parts[PART_IDENTITY],
                             &identity_settings(settings)->authentication);
}

/* The threads send messages to workers, whose mailboxes are still there. */
static void identity_stop(struct server *server) {
    authentication_stop(server->parts[PART_IDENTITY]);
}

static void identity_close(struct server *server) {
    struct authentication *authentication = server->parts[PART_IDENTITY];
    server->parts[PART_IDENTITY] = NULL;
    authentication_free(&authentication);
}

static void identity_join(struct transaction_host *host, void *state) {
    host->parts[PART_IDENTITY] = state;
}

const struct part part_identity = {
    .settings = &identity_part_settings,
    .process =
        {
            .open = identity_open,
            .change = identity_change,
            .stop = identity_stop,
            .close = identity_close,
        },
    .worker = {.join = identity_join},
};
