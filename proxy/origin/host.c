#include "origin/host.h"

#include "base/assert.h"
#include "net/secret_hash.h"

#include <stdio.h>

enum { BUCKETS = 64, TEXT_MAX = 300 };

struct origin_bucket {
    pthread_mutex_t lock;
    struct list_link hosts;
};

struct origin_hosts {
    unsigned magic;
#define ORIGIN_HOSTS_MAGIC 0x041991a5u
    struct origin_bucket buckets[BUCKETS];
};

struct origin_hosts *origin_hosts_new(void) {
    struct origin_hosts *hosts;
    ALLOC_OBJ(hosts, ORIGIN_HOSTS_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        pthread_mutex_init(&hosts->buckets[i].lock, NULL);
        list_init(&hosts->buckets[i].hosts);
    }
    return hosts;
}

void origin_hosts_free(struct origin_hosts **hostsp) {
    struct origin_hosts *hosts = *hostsp;
    *hostsp = NULL;
    if (hosts == NULL)
        return;
    CHECK_OBJ(hosts, ORIGIN_HOSTS_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        ASSERT(list_empty(&hosts->buckets[i].hosts));
        pthread_mutex_destroy(&hosts->buckets[i].lock);
    }
    FREE_OBJ(hosts);
}

static struct origin_host *origin_host_find(struct origin_bucket *bucket, const char *text) {
    LIST_FOR_EACH (link, &bucket->hosts) {
        struct origin_host *host = CONTAINER_OF(link, struct origin_host, link);
        if (strcmp(host->group->name, text) == 0)
            return host;
    }
    return NULL;
}

static void origin_host_set_rules(struct origins_rules *rules, const struct settings *settings) {
    rules->tries = 1;
    rules->max_connections = settings->origin.max_connections;
    rules->queue_max = settings->origin.queue_max;
    rules->queue_timeout = settings->origin.queue_timeout;
}

static struct origin_host *origin_host_make(struct origin_bucket *bucket, char *text,
                                            const struct settings *settings) {
    struct origin_host *host;
    struct origin_server_settings server = {.text = text, .weight = 1};
    struct origins_settings origins = {.name = text, .servers = &server, .server_count = 1};
    origin_host_set_rules(&origins.rules, settings);
    ALLOC_OBJ(host, ORIGIN_HOST_MAGIC);
    host->bucket = bucket;
    host->group = origin_group_new(&origins);
    list_append(&bucket->hosts, &host->link);
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
    uint64_t hash = secret_hash(slice_make(text, (size_t)length));
    struct origin_bucket *bucket = &hosts->buckets[hash % BUCKETS];
    pthread_mutex_lock(&bucket->lock);
    struct origin_host *host = origin_host_find(bucket, text);
    if (host != NULL)
        origin_host_renew(host, settings);
    else
        host = origin_host_make(bucket, text, settings);
    host->references++;
    pthread_mutex_unlock(&bucket->lock);
    return host;
}

void origin_host_leave(struct origin_host **hostp) {
    struct origin_host *host = *hostp;
    *hostp = NULL;
    if (host == NULL)
        return;
    CHECK_OBJ(host, ORIGIN_HOST_MAGIC);
    struct origin_bucket *bucket = host->bucket;
    pthread_mutex_lock(&bucket->lock);
    bool last = --host->references == 0;
    if (last)
        list_remove(&host->link);
    pthread_mutex_unlock(&bucket->lock);
    if (!last)
        return;
    origin_group_release(&host->group);
    FREE_OBJ(host);
}
