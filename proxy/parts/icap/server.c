#include "icap/server.h"

#include "base/assert.h"
#include "base/list.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct icap_server {
    unsigned magic;
#define ICAP_SERVER_MAGIC 0x1ca95e7eu
    struct list_link link;
    unsigned references; /* under servers_lock */
    char *uri;
    pthread_mutex_t lock; /* of what follows */
    uint64_t asked_next;
    struct server_report report;
};

static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_link servers = {&servers, &servers};

static struct icap_server *server_find(const char *uri) {
    LIST_FOR_EACH (link, &servers) {
        struct icap_server *server = CONTAINER_OF(link, struct icap_server, link);
        if (strcmp(server->uri, uri) == 0)
            return server;
    }
    return NULL;
}

static struct icap_server *server_new(const char *uri) {
    struct icap_server *server;
    ALLOC_OBJ(server, ICAP_SERVER_MAGIC);
    server->uri = xstrdup(uri);
    server->report.asked = true;
    pthread_mutex_init(&server->lock, NULL);
    list_append(&servers, &server->link);
    return server;
}

struct icap_server *icap_server_get(const struct service_settings *settings, unsigned endpoint) {
    const struct url *at = &settings->endpoints[endpoint];
    char *uri;
    if (settings->info == NULL)
        return NULL;
    int length = asprintf(&uri, "%.*s://%s%.*s%s:%u/%s?view=text", SLICE_PRINT(at->scheme),
                          at->host_is_ipv6 ? "[" : "", SLICE_PRINT(at->host),
                          at->host_is_ipv6 ? "]" : "", at->port, settings->info);
    ASSERT(length > 0);
    pthread_mutex_lock(&servers_lock);
    struct icap_server *server = server_find(uri);
    if (server == NULL)
        server = server_new(uri);
    server->references++;
    pthread_mutex_unlock(&servers_lock);
    free(uri);
    return server;
}

void icap_server_release(struct icap_server **serverp) {
    struct icap_server *server = *serverp;
    *serverp = NULL;
    if (server == NULL)
        return;
    CHECK_OBJ(server, ICAP_SERVER_MAGIC);
    pthread_mutex_lock(&servers_lock);
    bool last = --server->references == 0;
    if (last)
        list_remove(&server->link);
    pthread_mutex_unlock(&servers_lock);
    if (!last)
        return;
    pthread_mutex_destroy(&server->lock);
    free(server->uri);
    FREE_OBJ(server);
}

const char *icap_server_uri(const struct icap_server *server) {
    CHECK_OBJ(server, ICAP_SERVER_MAGIC);
    return server->uri;
}

bool icap_server_claim(struct icap_server *server, uint64_t now) {
    CHECK_OBJ(server, ICAP_SERVER_MAGIC);
    pthread_mutex_lock(&server->lock);
    bool due = now >= server->asked_next;
    if (due)
        server->asked_next = now + ICAP_SERVER_EVERY;
    pthread_mutex_unlock(&server->lock);
    return due;
}

void icap_server_answered(struct icap_server *server, const struct server_numbers *numbers) {
    CHECK_OBJ(server, ICAP_SERVER_MAGIC);
    pthread_mutex_lock(&server->lock);
    server->report.answered = server->report.up = true;
    server->report.numbers = *numbers;
    pthread_mutex_unlock(&server->lock);
}

void icap_server_failed(struct icap_server *server) {
    CHECK_OBJ(server, ICAP_SERVER_MAGIC);
    pthread_mutex_lock(&server->lock);
    server->report.up = false;
    server->report.failures++;
    pthread_mutex_unlock(&server->lock);
}

void icap_server_report(struct icap_server *server, struct server_report *report) {
    *report = (struct server_report){.asked = false};
    if (server == NULL)
        return;
    CHECK_OBJ(server, ICAP_SERVER_MAGIC);
    pthread_mutex_lock(&server->lock);
    *report = server->report;
    pthread_mutex_unlock(&server->lock);
}
