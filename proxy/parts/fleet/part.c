#include "part.h"

#include "base/assert.h"
#include "base/log.h"
#include "cache/second_level.h"
#include "cache/vouching.h"
#include "config.h"
#include "fleet/node.h"
#include "fleet/purge_event.h"
#include "fleet/settings.h"
#include "fleet/state.h"
#include "server.h"
#include "transaction/transaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The part fleet: what it does in the server and in a worker. */

/* By which second_level_keep_generation knows it: services have hashes of their names. */
static const uint64_t fleet_service = UINT64_C(0xf1ee7000f1ee7000);

/* ---- what a node does to the cache ------------------------------------------------------------- */

static bool world_apply(void *arg, const struct fleet_event *event) {
    struct server *server = arg;
    return purge_event_apply(event->body, server->cache, server->second_level);
}

static bool world_doubt(void *arg) {
    struct server *server = arg;
    struct removal_found found;
    const struct object_filter all = {.tag = slice_make("", 0)};
    return removal_of_all(server->cache, server->second_level, &all, PURGE_DOUBT, &found);
}

static void world_vouch(void *arg, uint64_t until) {
    struct server *server = arg;
    struct fleet_state *state = server->parts[PART_FLEET];
    if (state->settings->on_isolation != FLEET_SERVE)
        vouching_set(&state->vouching, until);
}

static bool world_keep(void *arg, uint64_t token) {
    struct server *server = arg;
    return second_level_keep_generation(server->second_level, fleet_service, token);
}

static bool world_kept(void *arg, uint64_t *token) {
    struct server *server = arg;
    *token = second_level_kept_generation(server->second_level, fleet_service);
    return server->second_level != NULL;
}

/* ---- the server -------------------------------------------------------------------------------- */

static struct fleet_node *make_node(struct server *server, const struct fleet_settings *fleet) {
    const struct fleet_demand demand = {
        .node = fleet->node,
        .directory = fleet->directory,
        .key = &fleet->key,
        .engine =
            {
                .fleet = fleet->name,
                .servers = fleet->servers,
                .sentinel = fleet->sentinel,
                .user = fleet->user,
                .password = fleet->password,
                .sentinel_password = fleet->sentinel_password,
                .trust = fleet->tls ? &fleet->trust : NULL,
                .copies = fleet->copies,
                .timeout = fleet->timeout,
                .keep = fleet->keep,
            },
        .lease = fleet->lease,
        .version = PACKAGE_VERSION,
        .world =
            {
                .arg = server,
                .apply = world_apply,
                .doubt = world_doubt,
                .vouch = world_vouch,
                .keep = world_keep,
                .kept = world_kept,
            },
    };
    return fleet_node_new(&demand);
}

static void fleet_open(struct server *server) {
    const struct fleet_settings *fleet = fleet_settings_of(server->settings);
    if (fleet == NULL)
        return;
    struct fleet_state *state = xcalloc(1, sizeof *state);
    state->of = settings_reference(server->settings);
    state->settings = fleet;
    vouching_init(&state->vouching, fleet->on_isolation == FLEET_REFUSE);
    if (fleet->on_isolation != FLEET_SERVE)
        vouching_set(&state->vouching, 0);
    server->parts[PART_FLEET] = state;
    state->node = make_node(server, fleet);
}

static void fleet_is_possible(const struct settings *settings, struct findings *findings) {
    const struct fleet_settings *fleet = fleet_settings_of(settings);
    char text[600];
    if (fleet == NULL || access(fleet->directory, F_OK) != 0 ||
        access(fleet->directory, W_OK | X_OK) == 0)
        return;
    snprintf(text, sizeof text,
             "fleet: cannot write into state_directory %.400s: let this user write",
             fleet->directory);
    findings_add(findings, "%s", text);
}

static bool fleet_begin(struct server *server, struct inherited *inherited, char *error) {
    struct fleet_state *state = server->parts[PART_FLEET];
    char why[FLEET_ERROR];
    (void)inherited;
    if (state == NULL || fleet_node_start(state->node, why))
        return true;
    snprintf(error, SETTINGS_ERROR, "fleet: %s", why);
    return false;
}

static void fleet_drain(struct server *server) {
    struct fleet_state *state = server->parts[PART_FLEET];
    if (state != NULL)
        fleet_node_retire(state->node);
}

static void fleet_end(struct server *server) {
    struct fleet_state *state = server->parts[PART_FLEET];
    if (state != NULL)
        fleet_node_stop(state->node);
}

static void fleet_close(struct server *server) {
    struct fleet_state *state = server->parts[PART_FLEET];
    server->parts[PART_FLEET] = NULL;
    if (state == NULL)
        return;
    fleet_node_free(&state->node);
    settings_release(&state->of);
    free(state);
}

static void fleet_spread(void *of, const struct removal_order *order, uint64_t wait,
                         struct removal_spread *spread) {
    struct fleet_state *state = of;
    struct fleet_answer answer;
    if (state == NULL)
        return;
    char *body = purge_event_write(order);
    if (body == NULL) {
        snprintf(spread->error, sizeof spread->error,
                 "it is not UTF-8, which a fleet can tell alone");
        return;
    }
    spread->told = fleet_node_tell(state->node, FLEET_PURGE, slice_from(body), wait,
                                   order->in_passing ? NULL : &answer, spread->error);
    free(body);
    if (!spread->told || order->in_passing)
        return;
    snprintf(spread->position, sizeof spread->position, "%s", answer.position);
    spread->nodes = answer.nodes;
    spread->in_force = answer.in_force;
    spread->all_by = answer.all_by;
    spread->missing_count = answer.missing_count;
    for (unsigned i = 0; i < answer.missing_count; i++)
        snprintf(spread->missing[i], sizeof spread->missing[i], "%s", answer.missing[i]);
}

/* ---- a worker ---------------------------------------------------------------------------------- */

static void fleet_join(struct transaction_host *host, void *of) {
    struct fleet_state *state = of;
    if (state != NULL)
        host->vouching = &state->vouching;
}

const struct part part_fleet = {
    .settings = &fleet_part_settings,
    .process =
        {
            .open = fleet_open,
            .is_possible = fleet_is_possible,
            .drain = fleet_drain,
            .close = fleet_close,
        },
    .worker = {.join = fleet_join},
    .socket = {.open = fleet_begin, .close = fleet_end},
    .spread = fleet_spread,
};
