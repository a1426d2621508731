#include "part.h"

#include "base/assert.h"
#include "content/account.h"
#include "server.h"
#include "settings/settings.h"
#include "transaction/transaction.h"

/* The part content: services manage what is stored, and operators store responses that nobody has fetched. */

/* ---- services: any thread, but open and close by the one that starts services --------------------- */

/* NULL: there is none, as when a configuration is only tested. */
static struct content_executor *the_room;

static struct content_account *content_open(const struct service_settings *settings,
                                            struct content_numbers *numbers) {
    struct content_limits limits = {
        .operations = settings->content_operations,
        .object = settings->content_object,
        .memory = settings->content_memory,
        .timeout = settings->content_timeout,
    };
    address_parse_ip(&limits.as, slice_from(settings->fetch_as), 0);
    if (settings->fetch_via != NULL)
        address_parse(&limits.via, slice_from(settings->fetch_via), 0);
    return the_room == NULL ? NULL
                            : content_account_open(the_room, settings->name, &limits, numbers);
}

static const struct content_class the_content_class = {
    .open = content_open,
    .start = content_account_start,
    .close = content_account_close,
};

static struct settings *content_settings(void *server) {
    return server_settings(server);
}

static void content_begin(struct server *server) {
    the_room = content_executor_new(server->cache, &server->second_level, content_settings, server);
}

static void content_add_worker(struct worker *worker) {
    content_executor_add_worker(the_room, worker_host(worker)->clients);
}

static void content_drain(struct server *server) {
    (void)server;
    content_executor_end(the_room);
}

static void content_stop(struct server *server) {
    (void)server;
    if (the_room != NULL)
        content_executor_stop(the_room);
}

static void content_close(struct server *server) {
    (void)server;
    struct content_executor *room = the_room;
    the_room = NULL;
    content_executor_free(&room);
}

const struct part part_content = {
    .process =
        {
            .open = content_begin,
            .add_worker = content_add_worker,
            .drain = content_drain,
            .stop = content_stop,
            .close = content_close,
        },
    .content = &the_content_class,
};
