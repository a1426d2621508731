#include "intercept/refusals.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { REFUSAL_CLIENT_TEXT = ADDRESS_IP_TEXT + 4 };

struct refusing_client {
    struct table_entry entry; /* of `clients`, by its text */
    struct list_link entries; /* the one refused last is the first */
    unsigned count;
    char text[REFUSAL_CLIENT_TEXT];
};

struct refusal {
    struct table_entry entry; /* of `table`, by its place; the hash is that of the client, too */
    struct list_link age;     /* in refusals->ages */
    struct list_link of_client;
    struct refusing_client *client;
    unsigned count;
    time_t last;
    char place[];
};

struct refusals {
    unsigned magic;
#define REFUSALS_MAGIC 0x4ef05a15u
    pthread_mutex_t lock;
    _Atomic unsigned count; /* entries; read without the lock by those who only look */
    struct list_link ages;  /* the entry refused last is the first */
    struct table table, clients;
};

struct refusals *refusals_new(void) {
    struct refusals *refusals;
    ALLOC_OBJ(refusals, REFUSALS_MAGIC);
    pthread_mutex_init(&refusals->lock, NULL);
    list_init(&refusals->ages);
    table_init(&refusals->table);
    table_init(&refusals->clients);
    return refusals;
}

static void refusal_remove(struct refusals *refusals, struct refusal *refusal) {
    struct refusing_client *client = refusal->client;
    table_remove(&refusals->table, &refusal->entry);
    list_remove(&refusal->age);
    list_remove(&refusal->of_client);
    free(refusal);
    refusals->count--;
    if (--client->count > 0)
        return;
    table_remove(&refusals->clients, &client->entry);
    free(client);
}

static struct refusal *refusal_oldest(struct list_link *ages) {
    return list_empty(ages) ? NULL : CONTAINER_OF(ages->prev, struct refusal, age);
}

void refusals_free(struct refusals **refusalsp) {
    struct refusals *refusals = *refusalsp;
    struct refusal *refusal;
    *refusalsp = NULL;
    if (refusals == NULL)
        return;
    CHECK_OBJ(refusals, REFUSALS_MAGIC);
    while ((refusal = refusal_oldest(&refusals->ages)) != NULL)
        refusal_remove(refusals, refusal);
    table_release(&refusals->table);
    table_release(&refusals->clients);
    pthread_mutex_destroy(&refusals->lock);
    FREE_OBJ(refusals);
}

/* The address itself, or of IPv6 the network: a client may have all addresses in there. */
static struct slice write_client(const struct address *address, char text[REFUSAL_CLIENT_TEXT]) {
    if (address == NULL)
        return slice_make("", 0);
    struct address first = *address;
    bool v6 = address->any.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr);
    if (v6)
        memset((char *)&first.v6.sin6_addr + 8, 0, 8);
    size_t length = address_format_ip(&first, text);
    if (v6)
        length += (size_t)sprintf(text + length, "/64");
    return slice_make(text, length);
}

static struct refusing_client *find_client(struct refusals *refusals, struct slice text) {
    struct table_entry *entry = table_find(&refusals->clients, text);
    return entry == NULL ? NULL : CONTAINER_OF(entry, struct refusing_client, entry);
}

static struct refusing_client *make_client(struct refusals *refusals, struct slice text) {
    struct refusing_client *client = xcalloc(1, sizeof *client);
    list_init(&client->entries);
    table_add(&refusals->clients, &client->entry, slice_copy(client->text, text));
    return client;
}

static uint64_t refusal_hash(const struct refusing_client *client, struct slice place) {
    return secret_hash(place) ^ client->entry.hash;
}

static struct refusal *find_refusal(struct refusals *refusals, struct slice client_text,
                                    struct slice place) {
    const struct refusing_client *client = find_client(refusals, client_text);
    if (client == NULL)
        return NULL;
    struct table_entry *entry =
        table_find_hashed(&refusals->table, place, refusal_hash(client, place));
    for (; entry != NULL; entry = table_find_next(entry)) {
        struct refusal *refusal = CONTAINER_OF(entry, struct refusal, entry);
        if (refusal->client == client)
            return refusal;
    }
    return NULL;
}

/* Removes entries until there is room for one more. The client's last entry goes with the client
 * itself, so it is looked up behind this. */
static bool make_room(struct refusals *refusals, const struct refusal_rules *rules,
                      struct slice client_text) {
    bool evicted = false;
    struct refusing_client *client = find_client(refusals, client_text);
    if (client != NULL && client->count >= rules->share) {
        refusal_remove(refusals, CONTAINER_OF(client->entries.prev, struct refusal, of_client));
        evicted = true;
    }
    while (refusals->count >= rules->entries) {
        refusal_remove(refusals, refusal_oldest(&refusals->ages));
        evicted = true;
    }
    return evicted;
}

static struct refusal *add_refusal(struct refusals *refusals, struct slice client_text,
                                   struct slice place) {
    struct refusing_client *client = find_client(refusals, client_text);
    if (client == NULL)
        client = make_client(refusals, client_text);
    struct refusal *refusal = xcalloc(1, sizeof *refusal + place.length + 1);
    table_add_hashed(&refusals->table, &refusal->entry, slice_copy(refusal->place, place),
                     refusal_hash(client, place));
    refusal->client = client;
    client->count++;
    refusals->count++;
    list_prepend(&client->entries, &refusal->of_client);
    list_prepend(&refusals->ages, &refusal->age);
    return refusal;
}

static bool refusal_is_over(const struct refusal *refusal, const struct refusal_rules *rules,
                            time_t now) {
    return now - refusal->last >= rules->lifetime;
}

unsigned refusals_note(struct refusals *refusals, const struct refusal_rules *rules,
                       const struct address *client, struct slice place, time_t now,
                       bool *evicted) {
    char text[REFUSAL_CLIENT_TEXT];
    struct slice client_text = write_client(client, text);
    CHECK_OBJ(refusals, REFUSALS_MAGIC);
    *evicted = false;
    pthread_mutex_lock(&refusals->lock);
    struct refusal *refusal = find_refusal(refusals, client_text, place);
    if (refusal == NULL) {
        *evicted = make_room(refusals, rules, client_text);
        refusal = add_refusal(refusals, client_text, place);
    } else if (refusal_is_over(refusal, rules, now)) {
        refusal->count = 0;
    }
    refusal->last = now;
    unsigned count = ++refusal->count;
    list_remove(&refusal->age);
    list_prepend(&refusals->ages, &refusal->age);
    list_remove(&refusal->of_client);
    list_prepend(&refusal->client->entries, &refusal->of_client);
    pthread_mutex_unlock(&refusals->lock);
    return count;
}

bool refusals_hold(struct refusals *refusals, const struct refusal_rules *rules,
                   const struct address *client, struct slice place, time_t now) {
    char text[REFUSAL_CLIENT_TEXT];
    CHECK_OBJ(refusals, REFUSALS_MAGIC);
    if (rules->limit == 0 || atomic_load_explicit(&refusals->count, memory_order_relaxed) == 0)
        return false;
    struct slice client_text = write_client(client, text);
    pthread_mutex_lock(&refusals->lock);
    const struct refusal *refusal = find_refusal(refusals, client_text, place);
    bool held =
        refusal != NULL && refusal->count >= rules->limit && !refusal_is_over(refusal, rules, now);
    pthread_mutex_unlock(&refusals->lock);
    return held;
}

void refusals_forget(struct refusals *refusals, const struct address *client, struct slice place) {
    char text[REFUSAL_CLIENT_TEXT];
    CHECK_OBJ(refusals, REFUSALS_MAGIC);
    if (atomic_load_explicit(&refusals->count, memory_order_relaxed) == 0)
        return;
    struct slice client_text = write_client(client, text);
    pthread_mutex_lock(&refusals->lock);
    struct refusal *refusal = find_refusal(refusals, client_text, place);
    if (refusal != NULL)
        refusal_remove(refusals, refusal);
    pthread_mutex_unlock(&refusals->lock);
}

void refusals_each(struct refusals *refusals,
                   void (*each)(void *arg, const struct refusal_report *report), void *arg) {
    CHECK_OBJ(refusals, REFUSALS_MAGIC);
    pthread_mutex_lock(&refusals->lock);
    LIST_FOR_EACH (link, &refusals->ages) {
        const struct refusal *refusal = CONTAINER_OF(link, struct refusal, age);
        each(arg, &(struct refusal_report){.client = refusal->client->text,
                                           .place = refusal->place,
                                           .count = refusal->count,
                                           .last = refusal->last});
    }
    pthread_mutex_unlock(&refusals->lock);
}

/* `host` with or without the port: "app.example" or "app.example:443". In a place, " at " and an
 * address may follow. */
static bool refusal_is_at(const struct refusal *refusal, struct slice host) {
    struct slice place = slice_from(refusal->place);
    const char *at = strstr(place.base, " at ");
    if (at != NULL)
        place.length = (size_t)(at - place.base);
    const char *colon = place.length > 0 ? memrchr(place.base, ':', place.length) : NULL;
    return host.length == 0 || slice_equal_nocase(place, host) ||
           (colon != NULL &&
            slice_equal_nocase(slice_make(place.base, (size_t)(colon - place.base)), host));
}

unsigned refusals_clear(struct refusals *refusals, struct slice client, struct slice host) {
    unsigned cleared = 0;
    CHECK_OBJ(refusals, REFUSALS_MAGIC);
    pthread_mutex_lock(&refusals->lock);
    LIST_FOR_EACH_SAFE (link, next, &refusals->ages) {
        struct refusal *refusal = CONTAINER_OF(link, struct refusal, age);
        if (!refusal_is_at(refusal, host) ||
            (client.length > 0 && !slice_equal(slice_from(refusal->client->text), client)))
            continue;
        refusal_remove(refusals, refusal);
        cleared++;
    }
    pthread_mutex_unlock(&refusals->lock);
    return cleared;
}
