#include "part.h"

#include "base/clocks.h"
#include "limits/limits.h"
#include "limits/step.h"
#include "server.h"
#include "settings/part_settings.h"

/* The part limits: how much a client may use in a time. What was counted stays counted over a reload. */

/* Entries of the table: what the file says, and one for each connection and each half-open one. */
static size_t limits_room(const struct settings *settings) {
    return limits_settings_of(settings)->entries + 2 * (size_t)settings->client.max_connections;
}

/* Before the settings are at work: finds what was counted for their limit sections before. */
static void limits_change(struct server *server, struct settings *settings) {
    struct limits *limits = server->parts[PART_LIMITS];
    struct limits_settings *mine = limits_settings_of(settings);
    limits_begin_change(limits);
    limit_table_set_room(limits->table, limits_room(settings),
                         clocks_milliseconds(CLOCK_MONOTONIC) * 1000000);
    for (size_t i = 0; i < mine->count; i++)
        mine->list[i].section = limits_section(limits, mine->list[i].name);
}

static void limits_open(struct server *server) {
    struct limits *limits = limits_new(limits_room(server->settings));
    server->parts[PART_LIMITS] = limits;
    server->clients.counter = &limits->counter;
    limits_change(server, server->settings);
}

static void limits_close(struct server *server) {
    struct limits *limits = server->parts[PART_LIMITS];
    server->parts[PART_LIMITS] = NULL;
    server->clients.counter = NULL;
    limits_free(&limits);
}

static void limits_join(struct transaction_host *host, void *state) {
    host->parts[PART_LIMITS] = state;
}

const struct part part_limits = {
    .settings = &limits_part_settings,
    .steps = (const struct step_row *const[]){&limit_step, NULL},
    .process = {.open = limits_open, .change = limits_change, .close = limits_close},
    .worker = {.join = limits_join},
};
