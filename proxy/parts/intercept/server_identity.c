#include "intercept/server_identity.h"

#include "base/assert.h"
#include "base/shared_table.h"

#include <stdio.h>

struct known_server {
    struct shared_entry entry;
    unsigned magic;
#define KNOWN_SERVER_MAGIC 0x1de47175u
    struct server_identity identity;             /* UNKNOWN: nothing is known */
    time_t until;                                /* when the identity ends */
    const struct server_identity_turn *verifier; /* the turn that verifies it; NULL: none */
    struct list_link waiting;                    /* waiters of the others */
    char key[];
};

struct server_identities {
    unsigned magic;
#define IDENTITIES_MAGIC 0x1de47170u
    struct shared_table *table;
    _Atomic uint64_t evicted;
};

/* Whoever waits for it asks again, and verifies the server. */
static void known_server_on_removal(struct shared_entry *entry) {
    struct known_server *server = CONTAINER_OF(entry, struct known_server, entry);
    CHECK_OBJ(server, KNOWN_SERVER_MAGIC);
    waiters_wake(&server->waiting, NULL);
    FREE_OBJ(server);
}

struct server_identities *server_identities_new(size_t limit) {
    struct server_identities *identities;
    ALLOC_OBJ(identities, IDENTITIES_MAGIC);
    identities->table = shared_table_new(limit, known_server_on_removal);
    return identities;
}

void server_identities_free(struct server_identities **identitiesp) {
    struct server_identities *identities = *identitiesp;
    *identitiesp = NULL;
    if (identities == NULL)
        return;
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    shared_table_free(&identities->table);
    FREE_OBJ(identities);
}

void server_identities_set_limit(struct server_identities *identities, size_t limit) {
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    shared_table_set_limit(identities->table, limit);
}

size_t server_identities_clear(struct server_identities *identities) {
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    return shared_table_remove(identities->table, NULL, NULL);
}

size_t server_identities_count(struct server_identities *identities) {
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    return shared_table_count(identities->table);
}

uint64_t server_identities_evicted(const struct server_identities *identities) {
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    return identities->evicted;
}

/* "TRUST ADDRESS:PORT NAME"; none of the parts before the name contains a space. Empty: the name is
 * longer than any that can be remembered. */
static struct slice server_identity_key_text(char room[IDENTITY_KEY_ROOM],
                                             const struct server_identity_key *key) {
    char destination[ADDRESS_IP_TEXT] = "-";
    if (key->destination != NULL)
        address_format_ip(key->destination, destination);
    int length = snprintf(room, IDENTITY_KEY_ROOM, "%.64s %s:%u %.*s", key->trust, destination,
                          key->port, SLICE_PRINT(key->name));
    ASSERT(length > 0);
    return slice_make(room, length < IDENTITY_KEY_ROOM ? (size_t)length : 0);
}

static struct known_server *find_known_server(struct shared_part *part) {
    struct shared_entry *entry = shared_part_find(part);
    if (entry == NULL)
        return NULL;
    struct known_server *server = CONTAINER_OF(entry, struct known_server, entry);
    CHECK_OBJ(server, KNOWN_SERVER_MAGIC);
    return server;
}

static struct known_server *find_or_add_server(struct server_identities *identities,
                                               struct shared_part *part, struct slice key) {
    struct known_server *server = find_known_server(part);
    if (server != NULL)
        return server;
    server = xcalloc(1, sizeof *server + key.length);
    server->magic = KNOWN_SERVER_MAGIC;
    list_init(&server->waiting);
    identities->evicted += shared_part_put(part, &server->entry, slice_copy(server->key, key), 1);
    return server;
}

static enum server_identity_state read_known_server(const struct known_server *server, time_t now,
                                                    struct server_identity *identity) {
    if (server == NULL || server->identity.state == SERVER_IDENTITY_UNKNOWN || server->until <= now)
        return SERVER_IDENTITY_UNKNOWN;
    *identity = server->identity;
    return identity->state;
}

enum server_identity_state server_identity_find(struct server_identities *identities,
                                                const struct server_identity_key *key, time_t now,
                                                struct server_identity *identity) {
    char room[IDENTITY_KEY_ROOM];
    struct slice text = server_identity_key_text(room, key);
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    if (text.length == 0)
        return SERVER_IDENTITY_UNKNOWN;
    struct shared_part *part = shared_table_lock(identities->table, text, 0);
    enum server_identity_state state = read_known_server(find_known_server(part), now, identity);
    shared_part_unlock(part);
    return state;
}

/* Under the lock: the turn verifies the server, or waits for the one that does. */
static enum server_identity_state take_identity_turn(struct known_server *server,
                                                     struct server_identity_turn *turn,
                                                     struct mailbox *mailbox, struct task *task) {
    if (server->verifier != NULL && !turn->has_waited) {
        waiter_add(&server->waiting, &turn->waiter, mailbox, task);
        turn->has_waited = true;
        return SERVER_IDENTITY_WAITING;
    }
    server->verifier = turn;
    return SERVER_IDENTITY_UNKNOWN;
}

enum server_identity_state server_identity_ask(struct server_identities *identities,
                                               const struct server_identity_key *key, time_t now,
                                               struct server_identity *identity,
                                               struct server_identity_turn *turn,
                                               struct mailbox *mailbox, struct task *task) {
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    server_identity_turn_end(turn);
    struct slice text = server_identity_key_text(turn->key, key);
    turn->key_length = text.length;
    if (text.length == 0)
        return SERVER_IDENTITY_UNKNOWN;
    struct shared_part *part = shared_table_lock(identities->table, text, 0);
    struct known_server *server = find_or_add_server(identities, part, text);
    enum server_identity_state state = read_known_server(server, now, identity);
    if (state == SERVER_IDENTITY_UNKNOWN) {
        state = take_identity_turn(server, turn, mailbox, task);
        turn->identities = identities;
    }
    shared_part_unlock(part);
    return state;
}

/* Under the lock: nobody verifies the server any more. */
static void end_verification(struct known_server *server) {
    server->verifier = NULL;
    waiters_wake(&server->waiting, NULL);
}

void server_identity_note(struct server_identities *identities,
                          const struct server_identity_key *key,
                          const struct server_identity *identity, time_t lifetime, time_t now) {
    char room[IDENTITY_KEY_ROOM];
    struct slice text = server_identity_key_text(room, key);
    int64_t left = identity->not_after - time(NULL);
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    ASSERT(identity->state == SERVER_IDENTITY_GOOD || identity->state == SERVER_IDENTITY_BAD);
    if (identity->state == SERVER_IDENTITY_GOOD && identity->not_after > 0 && left < lifetime)
        lifetime = left;
    if (text.length == 0)
        return;
    struct shared_part *part = shared_table_lock(identities->table, text, 0);
    struct known_server *server = find_or_add_server(identities, part, text);
    server->identity = *identity;
    server->until = now + lifetime;
    end_verification(server);
    shared_part_unlock(part);
}

void server_identity_forget(struct server_identities *identities,
                            const struct server_identity_key *key) {
    char room[IDENTITY_KEY_ROOM];
    struct slice text = server_identity_key_text(room, key);
    CHECK_OBJ(identities, IDENTITIES_MAGIC);
    if (text.length == 0)
        return;
    struct shared_part *part = shared_table_lock(identities->table, text, 0);
    struct known_server *server = find_known_server(part);
    if (server != NULL)
        shared_part_remove(part, &server->entry);
    shared_part_unlock(part);
}

/* A turn that has been woken, or has noted a result, ends without effect. */
void server_identity_turn_end(struct server_identity_turn *turn) {
    struct server_identities *identities = turn->identities;
    if (identities == NULL)
        return;
    turn->identities = NULL;
    struct slice text = slice_make(turn->key, turn->key_length);
    struct shared_part *part = shared_table_lock(identities->table, text, 0);
    struct known_server *server = find_known_server(part);
    if (server != NULL && server->verifier == turn) /* it leaves without a result */
        shared_part_remove(part, &server->entry);
    shared_part_unlock(part);
    waiter_cancel(&turn->waiter, shared_part_mutex(part));
}
