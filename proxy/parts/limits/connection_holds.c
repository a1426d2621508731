#include "limits/connection_holds.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

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
