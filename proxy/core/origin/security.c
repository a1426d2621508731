#include "origin/security.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/table.h"

#include <string.h>

/* A trust in use: it is made once for all clients that share it. */
struct origin_trust {
    unsigned magic;
#define ORIGIN_TRUST_MAGIC 0x04197245u
    struct list_link link;
    struct tls_trust *trust;
    char digest[TLS_TRUST_DIGEST];
};

struct origin_security {
    struct table_entry entry;
    unsigned magic;
#define ORIGIN_SECURITY_MAGIC 0x04195ec5u
    struct list_link link; /* in `recent` */
    struct tls_client *client;
    const struct origin_trust *trust;
    char bytes[];
};

struct origin_securities {
    unsigned magic;
#define ORIGIN_SECURITIES_MAGIC 0x04195ec7u
    struct net_context *net;
    struct table securities;
    struct list_link recent; /* the one used last is first */
    struct list_link trusts;
};

struct slice origin_security_key(char *out, struct slice place, struct slice name,
                                 const struct tls_trust_settings *trust,
                                 enum origin_protocols protocols) {
    char *at = protocols == ORIGIN_HTTP1 ? out : slice_put(out, SLICE("h2 "));
    if (trust == NULL) {
        at = slice_put(at, place);
        return slice_make(out, (size_t)(at - out));
    }
    at = slice_put(at, SLICE("https://"));
    at = slice_put(at, place);
    at = slice_put(at, SLICE(" "));
    at = slice_put(at, name);
    at = slice_put(at, SLICE(" "));
    at = slice_put(at, slice_from(trust->digest));
    return slice_make(out, (size_t)(at - out));
}

struct origin_securities *origin_securities_new(struct net_context *net) {
    struct origin_securities *table;
    ALLOC_OBJ(table, ORIGIN_SECURITIES_MAGIC);
    table->net = net;
    table_init(&table->securities);
    list_init(&table->recent);
    list_init(&table->trusts);
    return table;
}

static void security_forget(struct origin_securities *table, struct origin_security *security) {
    table_remove(&table->securities, &security->entry);
    list_remove(&security->link);
    tls_client_release(&security->client);
    FREE_OBJ(security);
}

static void trust_forget(struct origin_trust *trust) {
    list_remove(&trust->link);
    tls_trust_release(&trust->trust);
    FREE_OBJ(trust);
}

void origin_securities_free(struct origin_securities **tablep) {
    struct origin_securities *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    CHECK_OBJ(table, ORIGIN_SECURITIES_MAGIC);
    LIST_FOR_EACH_SAFE (link, next, &table->recent)
        security_forget(table, CONTAINER_OF(link, struct origin_security, link));
    LIST_FOR_EACH_SAFE (link, next, &table->trusts)
        trust_forget(CONTAINER_OF(link, struct origin_trust, link));
    table_release(&table->securities);
    FREE_OBJ(table);
}

static struct origin_trust *trust_of(struct origin_securities *table,
                                     const struct tls_trust_settings *settings) {
    struct origin_trust *trust;
    LIST_FOR_EACH (link, &table->trusts) {
        trust = CONTAINER_OF(link, struct origin_trust, link);
        if (strcmp(trust->digest, settings->digest) == 0)
            return trust;
    }
    ALLOC_OBJ(trust, ORIGIN_TRUST_MAGIC);
    trust->trust = tls_trust_new(settings);
    memcpy(trust->digest, settings->digest, sizeof trust->digest);
    list_prepend(&table->trusts, &trust->link);
    return trust;
}

static struct origin_security *security_make(struct origin_securities *table, struct slice key,
                                             struct slice name,
                                             const struct tls_trust_settings *settings,
                                             enum origin_protocols protocols) {
    struct origin_security *security = xcalloc(1, sizeof *security + key.length);
    security->magic = ORIGIN_SECURITY_MAGIC;
    security->trust = trust_of(table, settings);
    security->client = tls_client_of(security->trust->trust, name,
                                     protocols == ORIGIN_HTTP1 ? "http/1.1" : "h2,http/1.1");
    table_add(&table->securities, &security->entry, slice_copy(security->bytes, key));
    return security;
}

static void security_forget_oldest(struct origin_securities *table) {
    unsigned most = table->net->settings->origin.tls_hosts;
    while (table->securities.count > most) {
        struct list_link *oldest = table->recent.prev;
        table->net->counters.origin_tls_forgotten++;
        security_forget(table, CONTAINER_OF(oldest, struct origin_security, link));
    }
}

struct tls_client *origin_securities_find(struct origin_securities *table, struct slice key,
                                          struct slice name,
                                          const struct tls_trust_settings *settings,
                                          enum origin_protocols protocols) {
    CHECK_OBJ(table, ORIGIN_SECURITIES_MAGIC);
    struct table_entry *entry = table_find(&table->securities, key);
    struct origin_security *security;
    if (entry != NULL) {
        security = CONTAINER_OF(entry, struct origin_security, entry);
        list_remove(&security->link);
        list_prepend(&table->recent, &security->link);
        return security->client;
    }
    security = security_make(table, key, name, settings, protocols);
    list_prepend(&table->recent, &security->link);
    security_forget_oldest(table);
    return security->client;
}

static bool settings_have(const struct settings *settings, const struct origin_trust *trust) {
    bool have = strcmp(settings->origin.trust.digest, trust->digest) == 0;
    for (size_t i = 0; !have && i < settings->origins_group_count; i++)
        have = strcmp(settings->origins_groups[i].trust.digest, trust->digest) == 0;
    return have;
}

void origin_securities_retire(struct origin_securities *table, const struct settings *settings) {
    CHECK_OBJ(table, ORIGIN_SECURITIES_MAGIC);
    LIST_FOR_EACH_SAFE (link, next, &table->recent) {
        struct origin_security *security = CONTAINER_OF(link, struct origin_security, link);
        if (!settings_have(settings, security->trust))
            security_forget(table, security);
    }
    LIST_FOR_EACH_SAFE (link, next, &table->trusts) {
        struct origin_trust *trust = CONTAINER_OF(link, struct origin_trust, link);
        if (!settings_have(settings, trust))
            trust_forget(trust);
    }
}
