#include "identity/remembered.h"

#include "base/assert.h"
#include "base/secret_hash.h"
#include "identity/digest_rows.h"

#include <string.h>

/* A user with more text than that in his groups is proved anew each time. */
enum { TEXT_MAX = 16384 };

/* An identity as it is kept, which belongs to no worker. */
struct kept_identity {
    const char *method;
    size_t group_count, name, authenticator; /* lengths */
    size_t text_length;
    uint32_t lengths[]; /* of the groups; then the texts */
};

struct remembered_entry {
    unsigned char key[SECRET_DIGEST];
    uint64_t client;        /* a hash: only to be fair */
    uint64_t made, expires; /* expires 0: the entry is free */
    int64_t until;
    struct kept_identity *identity; /* NULL: the credentials were refused */
};

struct remembered {
    unsigned magic;
#define REMEMBERED_MAGIC 0x4e3e3be4u
    struct digest_rows good, bad; /* of struct remembered_entry */
};

static void table_release(struct digest_rows *table) {
    const struct remembered_entry *entry;
    for (size_t i = 0; (entry = digest_rows_entry(table, i)) != NULL; i++)
        free(entry->identity);
    digest_rows_release(table);
}

struct remembered *remembered_new(size_t entries) {
    struct remembered *remembered;
    ALLOC_OBJ(remembered, REMEMBERED_MAGIC);
    digest_rows_init(&remembered->good, entries - entries / 4, sizeof(struct remembered_entry));
    digest_rows_init(&remembered->bad, entries / 4, sizeof(struct remembered_entry));
    return remembered;
}

void remembered_free(struct remembered **rememberedp) {
    struct remembered *remembered = *rememberedp;
    *rememberedp = NULL;
    if (remembered == NULL)
        return;
    CHECK_OBJ(remembered, REMEMBERED_MAGIC);
    table_release(&remembered->good);
    table_release(&remembered->bad);
    FREE_OBJ(remembered);
}

/* NULL: it has more text than is kept. */
static struct kept_identity *keep_identity(const struct identity *identity) {
    size_t length = identity->name.length + identity->authenticator.length;
    for (size_t i = 0; i < identity->group_count; i++)
        length += identity->groups[i].length;
    if (length > TEXT_MAX)
        return NULL;
    size_t lengths = identity->group_count * sizeof(uint32_t);
    struct kept_identity *kept = xmalloc(sizeof *kept + lengths + length);
    *kept = (struct kept_identity){
        .method = identity->method,
        .group_count = identity->group_count,
        .name = identity->name.length,
        .authenticator = identity->authenticator.length,
        .text_length = length,
    };
    char *at = (char *)(kept->lengths + kept->group_count);
    at = slice_put(slice_put(at, identity->name), identity->authenticator);
    for (size_t i = 0; i < identity->group_count; i++) {
        kept->lengths[i] = (uint32_t)identity->groups[i].length;
        at = slice_put(at, identity->groups[i]);
    }
    return kept;
}

static struct identity *identity_of_kept(const struct kept_identity *kept) {
    struct slice groups[IDENTITY_GROUPS_MAX];
    const char *text = (const char *)(kept->lengths + kept->group_count);
    const char *at = text + kept->name + kept->authenticator;
    for (size_t i = 0; i < kept->group_count; i++) {
        groups[i] = slice_make(at, kept->lengths[i]);
        at += kept->lengths[i];
    }
    return identity_new(&(struct identity_facts){
        .name = slice_make(text, kept->name),
        .authenticator = slice_make(text + kept->name, kept->authenticator),
        .groups = groups,
        .group_count = kept->group_count,
        .method = kept->method,
    });
}

static void entry_clear(struct remembered_entry *entry) {
    free(entry->identity);
    *entry = (struct remembered_entry){.expires = 0};
}

/* The entry of the key in its row; NULL: there is none. */
static struct remembered_entry *entry_find(struct remembered_entry *row, const unsigned char *key,
                                           uint64_t now) {
    for (size_t i = 0; i < DIGEST_ROW; i++)
        if (row[i].expires > now && secret_digest_equal(row[i].key, key))
            return &row[i];
    return NULL;
}

enum remembered_state remembered_find(struct remembered *remembered,
                                      const unsigned char key[SECRET_DIGEST], uint64_t now,
                                      int64_t wall, struct identity **identity) {
    CHECK_OBJ(remembered, REMEMBERED_MAGIC);
    *identity = NULL;
    struct remembered_entry *entry = entry_find(digest_rows_lock(&remembered->good, key), key, now);
    if (entry != NULL && entry->until != 0 && wall >= entry->until)
        entry_clear(entry);
    else if (entry != NULL)
        *identity = identity_of_kept(entry->identity);
    digest_rows_unlock(&remembered->good, key);
    if (*identity != NULL)
        return REMEMBERED_PROVEN;
    bool failed = entry_find(digest_rows_lock(&remembered->bad, key), key, now) != NULL;
    digest_rows_unlock(&remembered->bad, key);
    return failed ? REMEMBERED_FAILED : REMEMBERED_NOTHING;
}

static unsigned entries_of(const struct remembered_entry *row, uint64_t client) {
    unsigned count = 0;
    for (size_t i = 0; i < DIGEST_ROW; i++)
        count += row[i].client == client;
    return count;
}

/* The place for a new entry: that of the same key, a free one, or the oldest of the client that has
 * most. */
static struct remembered_entry *remembered_place(struct remembered_entry *row,
                                                 const unsigned char *key, uint64_t now) {
    struct remembered_entry *place = entry_find(row, key, now);
    if (place != NULL)
        return place;
    place = row;
    for (size_t i = 0; i < DIGEST_ROW; i++)
        if (row[i].expires <= now)
            return &row[i];
    for (size_t i = 1; i < DIGEST_ROW; i++) {
        unsigned count = entries_of(row, row[i].client), most = entries_of(row, place->client);
        if (count > most || (count == most && row[i].made < place->made))
            place = &row[i];
    }
    return place;
}

static bool entry_put(struct digest_rows *table, const struct remembered_entry *entry,
                      uint64_t now) {
    struct remembered_entry *row = digest_rows_lock(table, entry->key);
    struct remembered_entry *place = remembered_place(row, entry->key, now);
    bool evicts = place->expires > now && !secret_digest_equal(place->key, entry->key);
    entry_clear(place);
    *place = *entry;
    digest_rows_unlock(table, entry->key);
    return evicts;
}

static void entry_forget(struct digest_rows *table, const unsigned char *key, uint64_t now) {
    struct remembered_entry *entry = entry_find(digest_rows_lock(table, key), key, now);
    if (entry != NULL)
        entry_clear(entry);
    digest_rows_unlock(table, key);
}

bool remembered_note_proven(struct remembered *remembered, const unsigned char key[SECRET_DIGEST],
                            struct slice client, const struct identity *identity, uint64_t now,
                            uint64_t expires, int64_t until) {
    CHECK_OBJ(remembered, REMEMBERED_MAGIC);
    struct remembered_entry entry = {
        .client = secret_hash(client), .made = now, .expires = expires, .until = until};
    entry_forget(&remembered->bad, key, now);
    entry.identity = expires > now ? keep_identity(identity) : NULL;
    if (entry.identity == NULL)
        return false;
    memcpy(entry.key, key, sizeof entry.key);
    return entry_put(&remembered->good, &entry, now);
}

bool remembered_note_failed(struct remembered *remembered, const unsigned char key[SECRET_DIGEST],
                            struct slice client, uint64_t now, uint64_t expires) {
    CHECK_OBJ(remembered, REMEMBERED_MAGIC);
    struct remembered_entry entry = {
        .client = secret_hash(client), .made = now, .expires = expires};
    entry_forget(&remembered->good, key, now);
    if (expires <= now)
        return false;
    memcpy(entry.key, key, sizeof entry.key);
    return entry_put(&remembered->bad, &entry, now);
}
