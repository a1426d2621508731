/* The connections of each client: how many there are, and how many are half-open. */
#include "base/assert.h"
#include "limits/limits.h"
#include "limits/settings.h"
#include "net/connection.h"

static struct limits *counter_limits(struct client_counter *counter) {
    struct limits *limits = CONTAINER_OF(counter, struct limits, counter);
    CHECK_OBJ(limits, LIMITS_MAGIC);
    return limits;
}

static bool counter_list_has(const struct network *networks, size_t count,
                             const struct address *client) {
    for (size_t i = 0; i < count; i++)
        if (network_contains(&networks[i], client))
            return true;
    return false;
}

/* A proxy in front has many clients. */
static bool is_uncounted(const struct client_connection *connection) {
    const struct limits_settings *settings = limits_settings_of(connection->clients->net->settings);
    const struct listen_settings *listen = connection->listen;
    const struct address *client = &connection->ends.client;
    size_t count = settings->uncounted_count;
    return count == 0 || counter_list_has(settings->uncounted, count, client) ||
           (listen != NULL &&
            counter_list_has(listen->trusted_proxies, listen->trusted_proxy_count, client));
}

/* Counts the connection under the section; at most `most`, or any number for 0. */
static struct limit_entry *count_for_client(struct limits *limits,
                                            struct client_connection *connection,
                                            struct limit_section *section, unsigned most) {
    const struct limits_settings *settings = limits_settings_of(connection->clients->net->settings);
    const struct limit_demand demand = {.most_active = most};
    struct limit_verdict verdict;
    char name[LIMIT_NAME];
    const struct limit_key key = {section, address_network_key(&connection->ends.client,
                                                               settings->ipv4_prefix,
                                                               settings->ipv6_prefix, name)};
    struct limit_entry *entry = limit_table_take(
        limits->table, &key, &demand, connection->clients->net->loop->now_nanoseconds, &verdict);
    if (entry == NULL)
        limit_section_refused(section, verdict.reason == LIMIT_TABLE_FULL
                                           ? LIMIT_COUNT_TABLE
                                           : LIMIT_COUNT_CONNECTIONS);
    return entry;
}

static bool counter_count(struct client_counter *counter, struct client_connection *connection) {
    struct limits *limits = counter_limits(counter);
    if (is_uncounted(connection))
        return true;
    connection->counted = count_for_client(
        limits, connection, limits->connections,
        limits_settings_of(connection->clients->net->settings)->max_connections_per_client);
    return connection->counted != NULL;
}

static bool counter_count_half_open(struct client_counter *counter,
                                    struct client_connection *connection) {
    struct limits *limits = counter_limits(counter);
    if (connection->counted == NULL)
        return true;
    connection->half_open =
        count_for_client(limits, connection, limits->half_open,
                         limits_settings_of(connection->clients->net->settings)->max_half_open);
    return connection->half_open != NULL;
}

static void counter_spoke(struct client_counter *counter, struct client_connection *connection) {
    limit_table_leave(counter_limits(counter)->table, &connection->half_open);
}

/* It is counted though there may be no room. */
static void counter_count_again(struct client_counter *counter,
                                struct client_connection *connection) {
    struct limits *limits = counter_limits(counter);
    if (!is_uncounted(connection))
        connection->counted = count_for_client(limits, connection, limits->connections, 0);
}

static void counter_forget(struct client_counter *counter, struct client_connection *connection) {
    struct limits *limits = counter_limits(counter);
    limit_table_leave(limits->table, &connection->half_open);
    limit_table_leave(limits->table, &connection->counted);
    connection_holds_release(&connection->ends.holds, limits);
}

const struct client_counter limits_counter = {
    .count = counter_count,
    .count_half_open = counter_count_half_open,
    .count_again = counter_count_again,
    .spoke = counter_spoke,
    .forget = counter_forget,
};
