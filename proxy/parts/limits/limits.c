#include "limits/limits.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct limits *limits_new(size_t room) {
    struct limits *limits;
    ALLOC_OBJ(limits, LIMITS_MAGIC);
    pthread_mutex_init(&limits->lock, NULL);
    limits->table = limit_table_new(room);
    limits->counter = limits_counter;
    limits->half_open = limits_section(limits, "client.max_half_open");
    limits->connections = limits_section(limits, "client.max_connections_per_client");
    return limits;
}

void limits_free(struct limits **limitsp) {
    struct limits *limits = *limitsp;
    *limitsp = NULL;
    if (limits == NULL)
        return;
    CHECK_OBJ(limits, LIMITS_MAGIC);
    limit_table_free(&limits->table);
    for (struct limit_section *section = limits->sections, *next; section != NULL; section = next) {
        next = section->next;
        FREE_OBJ(section);
    }
    pthread_mutex_destroy(&limits->lock);
    FREE_OBJ(limits);
}

void limits_begin_change(struct limits *limits) {
    CHECK_OBJ(limits, LIMITS_MAGIC);
    pthread_mutex_lock(&limits->lock);
    for (struct limit_section *section = limits->sections; section != NULL; section = section->next)
        if (section != limits->connections && section != limits->half_open)
            atomic_store(&section->current, false);
    pthread_mutex_unlock(&limits->lock);
}

static struct limit_section *find_section(struct limits *limits, const char *name) {
    struct limit_section *section = limits->sections;
    while (section != NULL && strcmp(section->name, name) != 0)
        section = section->next;
    return section;
}

struct limit_section *limits_section(struct limits *limits, const char *name) {
    CHECK_OBJ(limits, LIMITS_MAGIC);
    pthread_mutex_lock(&limits->lock);
    struct limit_section *section = find_section(limits, name);
    if (section == NULL) {
        section = xcalloc(1, sizeof *section + strlen(name) + 1);
        section->magic = LIMIT_SECTION_MAGIC;
        strcpy(section->name, name);
        section->next = limits->sections;
        limits->sections = section;
    }
    atomic_store(&section->current, true);
    pthread_mutex_unlock(&limits->lock);
    return section;
}

const struct limit_section *limits_first(struct limits *limits) {
    CHECK_OBJ(limits, LIMITS_MAGIC);
    pthread_mutex_lock(&limits->lock);
    const struct limit_section *first = limits->sections;
    pthread_mutex_unlock(&limits->lock);
    return first;
}

struct limit_section *limits_find(struct limits *limits, const char *name) {
    CHECK_OBJ(limits, LIMITS_MAGIC);
    pthread_mutex_lock(&limits->lock);
    struct limit_section *section = find_section(limits, name);
    pthread_mutex_unlock(&limits->lock);
    return section;
}

const char *limit_count_name(enum limit_count count) {
    static const char *const names[] = {
        [LIMIT_COUNT_RATE] = "rate",
        [LIMIT_COUNT_CONCURRENT] = "concurrent",
        [LIMIT_COUNT_CONNECTIONS] = "connections",
        [LIMIT_COUNT_REQUEST_SIZE] = "request_size",
        [LIMIT_COUNT_RESPONSE_SIZE] = "response_size",
        [LIMIT_COUNT_TABLE] = "table_full",
    };
    return names[count];
}

struct connection_hold {
    struct connection_hold *next;
    struct limit_entry *entry;
    const void *section;
    size_t length;
    char name[];
};

static bool holds_key(const struct connection_hold *hold, const struct limit_key *key) {
    return hold->section == key->section && hold->length == key->name.length &&
           memcmp(hold->name, key->name.base, hold->length) == 0;
}

static void hold_free(struct connection_hold *hold, struct limits *limits) {
    limit_table_leave(limits->table, &hold->entry);
    free(hold);
}

/* The newest hold comes first. */
static void drop_oldest(struct connection_hold **holdsp, struct limits *limits,
                        const void *section) {
    struct connection_hold **oldest = NULL;
    unsigned count = 0;
    for (struct connection_hold **at = holdsp; *at != NULL; at = &(*at)->next)
        if ((*at)->section == section) {
            oldest = at;
            count++;
        }
    if (count <= CONNECTION_HOLDS_MAX)
        return;
    struct connection_hold *hold = *oldest;
    *oldest = hold->next;
    hold_free(hold, limits);
}

bool connection_holds_take(struct connection_hold **holdsp, struct limits *limits,
                           const struct limit_key *key, const struct limit_demand *demand,
                           uint64_t now, struct limit_verdict *verdict) {
    for (const struct connection_hold *hold = *holdsp; hold != NULL; hold = hold->next)
        if (holds_key(hold, key))
            return true;
    struct limit_entry *entry = limit_table_take(limits->table, key, demand, now, verdict);
    if (entry == NULL)
        return false;
    struct connection_hold *hold = xcalloc(1, sizeof *hold + key->name.length);
    hold->entry = entry;
    hold->section = key->section;
    hold->length = key->name.length;
    memcpy(hold->name, key->name.base, key->name.length);
    hold->next = *holdsp;
    *holdsp = hold;
    drop_oldest(holdsp, limits, key->section);
    return true;
}

void connection_holds_release(struct connection_hold **holdsp, struct limits *limits) {
    while (*holdsp != NULL) {
        struct connection_hold *hold = *holdsp;
        *holdsp = hold->next;
        hold_free(hold, limits);
    }
}
