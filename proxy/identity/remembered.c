#include "identity/remembered.h"

#include "base/assert.h"
#include "net/secret_hash.h"

#include <pthread.h>
#include <string.h>

/* A user with more text than that in his groups is proved anew each time. */
enum { ROW = 8, LOCKS = 64, TEXT_MAX = 16384 };

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

struct remembered_table {
    struct remembered_entry *entries;
    size_t rows;
    pthread_mutex_t locks[LOCKS];
};

struct remembered {
    unsigned magic;
#define REMEMBERED_MAGIC 0x4e3e3be4u
    struct remembered_table good, bad;
};

static void remembered_table_init(struct remembered_table *table, size_t entries) {
    table->rows = entries / ROW + 1;
    table->entries = xcalloc(table->rows * ROW, sizeof *table->entries);
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_init(&table->locks[i], NULL);
}

static void remembered_table_release(struct remembered_table *table) {
    for (size_t i = 0; i < table->rows * ROW; i++)
        free(table->entries[i].identity);
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_destroy(&table->locks[i]);
    free(table->entries);
}

struct remembered *remembered_new(size_t entries) {
    struct remembered *remembered;
    ALLOC_OBJ(remembered, REMEMBERED_MAGIC);
    remembered_table_init(&remembered->good, entries - entries / 4);
    remembered_table_init(&remembered->bad, entries / 4);
    return remembered;
}

void remembered_free(struct remembered **rememberedp) {
    struct remembered *remembered = *rememberedp;
    *rememberedp = NULL;
    if (remembered == NULL)
        return;
    CHECK_OBJ(remembered, REMEMBERED_MAGIC);
    remembered_table_release(&remembered->good);
    remembered_table_release(&remembered->bad);
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

static size_t remembered_row(const struct remembered_table *table, const unsigned char *key) {
    uint64_t number;
    memcpy(&number, key, sizeof number);
    return number % table->rows;
}

static pthread_mutex_t *remembered_lock(struct remembered_table *table, const unsigned char *key) {
    pthread_mutex_t *lock = &table->locks[remembered_row(table, key) % LOCKS];
    pthread_mutex_lock(lock);
    return lock;
}

static void entry_clear(struct remembered_entry *entry) {
    free(entry->identity);
    *entry = (struct remembered_entry){.expires = 0};
}

/* The entry of the key, under the lock of its row; NULL: there is none. */
static struct remembered_entry *entry_find(struct remembered_table *table, const unsigned char *key,
                                           uint64_t now) {
    struct remembered_entry *row = table->entries + remembered_row(table, key) * ROW;
    for (size_t i = 0; i < ROW; i++)
        if (row[i].expires > now && secret_digest_equal(row[i].key, key))
            return &row[i];
    return NULL;
}

enum remembered_state remembered_find(struct remembered *remembered,
                                      const unsigned char key[SECRET_DIGEST], uint64_t now,
                                      int64_t wall, struct identity **identity) {
    CHECK_OBJ(remembered, REMEMBERED_MAGIC);
    *identity = NULL;
    pthread_mutex_t *lock = remembered_lock(&remembered->good, key);
    struct remembered_entry *entry = entry_find(&remembered->good, key, now);
    if (entry != NULL && entry->until != 0 && wall >= entry->until)
        entry_clear(entry);
    else if (entry != NULL)
        *identity = identity_of_kept(entry->identity);
    pthread_mutex_unlock(lock);
    if (*identity != NULL)
        return REMEMBERED_PROVEN;
    lock = remembered_lock(&remembered->bad, key);
    bool failed = entry_find(&remembered->bad, key, now) != NULL;
    pthread_mutex_unlock(lock);
    return failed ? REMEMBERED_FAILED : REMEMBERED_NOTHING;
}

static unsigned entries_of(const struct remembered_entry *row, uint64_t client) {
    unsigned count = 0;
    for (size_t i = 0; i < ROW; i++)
        count += row[i].client == client;
    return count;
}

/* The place for a new entry: that of the same key, a free one, or the oldest of the client that has
 * most. */
static struct remembered_entry *remembered_place(struct remembered_entry *row,
                                                 const unsigned char *key, uint64_t now) {
    struct remembered_entry *place = row;
    for (size_t i = 0; i < ROW; i++)
        if (row[i].expires > now && secret_digest_equal(row[i].key, key))
            return &row[i];
    for (size_t i = 0; i < ROW; i++)
        if (row[i].expires <= now)
            return &row[i];
    for (size_t i = 1; i < ROW; i++) {
        unsigned count = entries_of(row, row[i].client), most = entries_of(row, place->client);
        if (count > most || (count == most && row[i].made < place->made))
            place = &row[i];
    }
    return place;
}

static bool entry_put(struct remembered_table *table, const struct remembered_entry *entry,
                      uint64_t now) {
    pthread_mutex_t *lock = remembered_lock(table, entry->key);
    struct remembered_entry *row = table->entries + remembered_row(table, entry->key) * ROW;
    struct remembered_entry *place = remembered_place(row, entry->key, now);
    bool evicts = place->expires > now && !secret_digest_equal(place->key, entry->key);
    entry_clear(place);
    *place = *entry;
    pthread_mutex_unlock(lock);
    return evicts;
}

static void entry_forget(struct remembered_table *table, const unsigned char *key, uint64_t now) {
    pthread_mutex_t *lock = remembered_lock(table, key);
    struct remembered_entry *entry = entry_find(table, key, now);
    if (entry != NULL)
        entry_clear(entry);
    pthread_mutex_unlock(lock);
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
