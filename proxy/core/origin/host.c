#include "origin/host.h"

#include "base/assert.h"

#include <stdio.h>

enum { TEXT_MAX = 300 };

struct origin_hosts {
    unsigned magic;
#define ORIGIN_HOSTS_MAGIC 0x041991a5u
    struct shared_table *table;
};

static void origin_host_on_removal(struct shared_entry *entry) {
    struct origin_host *host = CONTAINER_OF(entry, struct origin_host, entry);
    CHECK_OBJ(host, ORIGIN_HOST_MAGIC);
    ASSERT(host->references == 0);
    origin_group_release(&host->group);
    FREE_OBJ(host);
}

struct origin_hosts *origin_hosts_new(void) {
    struct origin_hosts *hosts;
    ALLOC_OBJ(hosts, ORIGIN_HOSTS_MAGIC);
    hosts->table = shared_table_new(SHARED_TABLE_ANY, origin_host_on_removal);
    return hosts;
}

void origin_hosts_free(struct origin_hosts **hostsp) {
    struct origin_hosts *hosts = *hostsp;
    *hostsp = NULL;
    if (hosts == NULL)
        return;
    CHECK_OBJ(hosts, ORIGIN_HOSTS_MAGIC);
    shared_table_free(&hosts->table);
    FREE_OBJ(hosts);
}

static void origin_host_set_rules(struct origins_rules *rules, const struct settings *settings) {
    rules->tries = 1;
    rules->max_connections = settings->origin.max_connections;
    rules->queue_max = settings->origin.queue_max;
    rules->queue_timeout = settings->origin.queue_timeout;
}

static struct origin_host *origin_host_make(struct origin_hosts *hosts, char *text,
                                            const struct settings *settings) {
    struct origin_host *host;
    struct origin_server_settings server = {.text = text, .weight = 1};
    struct origins_settings origins = {.name = text, .servers = &server, .server_count = 1};
    origin_host_set_rules(&origins.rules, settings);
    ALLOC_OBJ(host, ORIGIN_HOST_MAGIC);
    host->hosts = hosts;
    host->group = origin_group_new(&origins);
    return host;
}

/* It may come from before a reload. */
static void origin_host_renew(struct origin_host *host, const struct settings *settings) {
    pthread_mutex_lock(&host->group->lock);
    origin_host_set_rules(&host->group->rules, settings);
    pthread_mutex_unlock(&host->group->lock);
}

struct origin_host *origin_host_enter(struct origin_hosts *hosts, const struct url *url,
                                      const struct settings *settings) {
    char text[TEXT_MAX];
    CHECK_OBJ(hosts, ORIGIN_HOSTS_MAGIC);
    int length = snprintf(text, sizeof text, "%s://%s%.*s%s:%u",
                          url_is_https(url) ? "https" : "http", url->host_is_ipv6 ? "[" : "",
                          SLICE_PRINT(url->host), url->host_is_ipv6 ? "]" : "", url->port);
    if (length >= TEXT_MAX)
        return NULL; /* no host name is so long, so it will not be found */
    struct shared_part *part = shared_table_lock(hosts->table, slice_make(text, (size_t)length), 0);
    struct shared_entry *entry = shared_part_find(part);
    struct origin_host *host;
    if (entry != NULL) {
        host = CONTAINER_OF(entry, struct origin_host, entry);
        origin_host_renew(host, settings);
    } else {
        host = origin_host_make(hosts, text, settings);
        shared_part_put(part, &host->entry, slice_from(host->group->name), 1);
    }
    host->references++;
    shared_part_unlock(part);
    return host;
}

void origin_host_leave(struct origin_host **hostp) {
    struct origin_host *host = *hostp;
    *hostp = NULL;
    if (host == NULL)
        return;
    CHECK_OBJ(host, ORIGIN_HOST_MAGIC);
    struct shared_part *part = shared_table_lock_of(host->hosts->table, &host->entry);
    if (--host->references == 0)
        shared_part_remove(part, &host->entry);
    shared_part_unlock(part);
}
