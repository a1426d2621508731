#include "part.h"

#include "access/purge_orders.h"
#include "access/settings.h"
#include "access/state.h"
#include "server.h"

static void access_open(struct server *server) {
    server->parts[PART_ACCESS] = purge_orders_new(server->parts);
}

static void access_stop(struct server *server) {
    if (server->parts[PART_ACCESS] != NULL)
        purge_orders_stop(server->parts[PART_ACCESS]);
}

static void access_close(struct server *server) {
    struct purge_orders *orders = server->parts[PART_ACCESS];
    server->parts[PART_ACCESS] = NULL;
    purge_orders_free(&orders);
}

static void access_join(struct transaction_host *host, void *state) {
    host->parts[PART_ACCESS] = state;
}

const struct part part_access = {
    .settings = &access_part_settings,
    .process =
        {
            .open = access_open,
            .write_out = access_stop,
            .stop = access_stop,
            .close = access_close,
        },
    .worker = {.join = access_join},
    .steps = (const struct step_row *const[]){&access_step, &purge_step, &recheck_step, NULL},
};
