#include "base/assert.h"
#include "base/log.h"
#include "base/random.h"
#include "fleet/node_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The thread that appends to the stream: events from the outbox, and signs of life by which the node proves what it knows.
 */

/* BATCH: events in one step. LOOK_BACK: entries in which the newest event of this node is searched for. AGAIN: events that are
 * appended again when it is not among them. TABLE_EVERY, IDLE: milliseconds. */
enum {
    BATCH = 64,
    LOOK_BACK = 1000,
    AGAIN = 64,
    TABLE_EVERY = 1,
    TABLE_SOON = 50,
    TABLE_LATER = 25,
    IDLE = 200,
    URGENT_MIN = 50
};

struct teller {
    struct fleet_node *node;
    struct engine *engine;
    uint64_t alive_at;       /* nanoseconds: when the last sign of life was appended */
    uint64_t urgent;         /* milliseconds to the next one while the node is not proven */
    unsigned looks;          /* at the table of nodes, since somebody waits */
    bool knows_sent;         /* what the engine has of this node */
    bool may_tell;           /* the outbox goes on from what the engine has: it is no old copy */
    bool compared;           /* the outbox with what was read */
    bool looked;             /* a look back has found an event of this node */
    struct fleet_end newest; /* that event */
    struct fleet_end kept;   /* what the table of nodes says of this one */
};

static void node_lock(struct teller *teller) {
    pthread_mutex_lock(&teller->node->lock);
}

static void node_unlock(struct teller *teller) {
    pthread_mutex_unlock(&teller->node->lock);
}

/* ---- the outbox -------------------------------------------------------------------------------- */

/* False: there is none yet. */
static bool teller_take_outbox(struct teller *teller) {
    struct fleet_node *node = teller->node;
    struct fleet_outbox *outbox = NULL;
    char error[FLEET_ERROR] = "";
    const struct fleet_outbox_place place = {
        .directory = node->demand.directory,
        .node = node->demand.node,
        .key = node->demand.key,
        .most = FLEET_OUTBOX_BYTES,
    };
    node_lock(teller);
    bool retired = node->retired;
    if (retired)
        fleet_node_close_outbox(node);
    node_unlock(teller);
    if (retired)
        return false;
    if (node->outbox != NULL)
        return true;
    enum fleet_outbox_found found = fleet_outbox_open(&outbox, &place, error);
    if (found == FLEET_OUTBOX_FAILED)
        fleet_node_note(node, node->teller_trouble, "open its outbox", error);
    if (outbox == NULL)
        return false;
    node_lock(teller);
    node->outbox = outbox;
    node->outbox_is_new = found == FLEET_OUTBOX_NEW;
    teller->compared = teller->knows_sent = teller->may_tell = false;
    node->sent = node->copied = 0;
    pthread_cond_broadcast(&node->changed);
    node_unlock(teller);
    return true;
}

/* What the node has said of itself before its state directory was lost. */
static void teller_on_member(void *arg, const char *name, struct slice text) {
    struct teller *teller = arg;
    const char *epoch = "", *digest = "";
    json_int_t number = 0;
    if (strcmp(name, teller->node->demand.node) != 0)
        return;
    json_t *json = json_loadb(text.base, text.length, 0, NULL);
    if (json != NULL &&
        json_unpack(json, "{s:s, s:I, s:s}", "epoch", &epoch, "number", &number, "digest",
                    &digest) == 0 &&
        strlen(epoch) == 16 && number > 0 &&
        fleet_digest_read(&teller->kept.digest, slice_from(digest))) {
        teller->kept.known = true;
        teller->kept.epoch = strtoull(epoch, NULL, 16);
        teller->kept.number = (uint64_t)number;
    }
    json_decref(json);
}

/* Begins an epoch where it is needed. */
static bool renew_outbox(struct teller *teller, char error[FLEET_ERROR]) {
    struct fleet_node *node = teller->node;
    node_lock(teller);
    bool is_new = node->outbox_is_new;
    struct fleet_end end = node->renew;
    node_unlock(teller);
    if (!is_new && !end.known)
        return true;
    if (is_new && !end.known) {
        teller->kept = (struct fleet_end){0};
        if (!engine_get(teller->engine, teller_on_member, teller, error))
            return false;
        end = teller->kept;
    }
    if (!fleet_outbox_begin(node->outbox, &end, error))
        return false;
    node_lock(teller);
    node->outbox_is_new = false;
    node->renew.known = false;
    node->sent = node->copied = 0;
    pthread_cond_broadcast(&node->changed);
    node_unlock(teller);
    teller->knows_sent = false;
    teller->may_tell = teller->compared = true; /* its numbers are new */
    return true;
}

/* The outbox is an old copy: its numbers are those of other events by now. Under the lock. */
static void renew_behind(struct teller *teller, const struct fleet_end *end) {
    struct fleet_node *node = teller->node;
    log_warn("the fleet %s: %s/outbox is an old copy; events of this node get new numbers",
             node->demand.key->fleet, node->demand.directory);
    node->renew = *end;
}

/* Does the outbox have that event, or one in front of it? Under the lock. */
static bool outbox_has(const struct fleet_node *node, const struct fleet_end *end) {
    const struct fleet_event event = {.epoch = end->epoch, .number = end->number};
    enum fleet_outbox_owner owner = fleet_outbox_owner(node->outbox, &event, &end->digest);
    return owner == FLEET_OUTBOX_MINE || owner == FLEET_OUTBOX_EARLIER;
}

/* The node has read all of its own that the stream has: has the outbox written it? Under the lock. */
static void compare_outbox(struct teller *teller) {
    struct fleet_node *node = teller->node;
    const struct fleet_chain *own = fleet_chains_find(&node->place.chains, node->demand.node);
    teller->compared = teller->may_tell = true;
    if (own == NULL || own->number == 0)
        return;
    const struct fleet_end end = {true, own->epoch, own->number, own->digest};
    if (!outbox_has(node, &end) && !fleet_outbox_follows(node->outbox, &end))
        renew_behind(teller, &end);
}

/* ---- what the engine has ----------------------------------------------------------------------- */

static void teller_on_entry(void *arg, const char *id, struct slice text) {
    struct teller *teller = arg;
    struct fleet_event event;
    (void)id;
    if (teller->looked || !fleet_event_read(&event, text, teller->node->demand.key) ||
        event.kind == FLEET_ALIVE || strcmp(event.node, teller->node->demand.node) != 0)
        return;
    teller->looked = true;
    teller->newest = (struct fleet_end){true, event.epoch, event.number, fleet_digest_of(text)};
}

/* Where to go on, when none of this node's events is among the newest entries: behind what this node has read of its own. */
static uint64_t sent_before(const struct fleet_node *node) {
    const struct fleet_chain *own = fleet_chains_find(&node->place.chains, node->demand.node);
    struct fleet_outbox_state state = fleet_outbox_state(node->outbox);
    uint64_t sent = state.number > AGAIN ? state.number - AGAIN : 0;
    if (own != NULL && own->epoch == state.epoch && own->number <= state.number)
        sent = own->number > AGAIN ? own->number - AGAIN : 0;
    return sent;
}

/* Goes on behind the newest event of this node that the engine has. */
static bool find_sent(struct teller *teller, char error[FLEET_ERROR]) {
    struct fleet_node *node = teller->node;
    teller->looked = false;
    if (!engine_look_back(teller->engine, LOOK_BACK, teller_on_entry, teller, error))
        return false;
    node_lock(teller);
    node->copied = 0;
    node->sent = 0;
    if (!teller->looked) {
        node->sent = sent_before(node);
    } else if (outbox_has(node, &teller->newest)) {
        node->sent = teller->newest.number;
        teller->may_tell = true;
    } else if (fleet_outbox_follows(node->outbox, &teller->newest)) {
        teller->may_tell = true;
    } else {
        renew_behind(teller, &teller->newest);
    }
    node_unlock(teller);
    teller->knows_sent = true;
    return true;
}

/* ---- appending --------------------------------------------------------------------------------- */

static void note_copied(struct teller *teller, const struct engine_appended *appended) {
    if (!appended->copied)
        return;
    teller->node->copied = teller->node->sent;
    pthread_cond_broadcast(&teller->node->changed);
}

/* The last event of this node that stands in front of this one: what is in the outbox alone comes behind it. */
static void set_last(struct teller *teller, struct fleet_event *event) {
    struct fleet_node *node = teller->node;
    const struct fleet_chain *own = fleet_chains_find(&node->place.chains, node->demand.node);
    struct fleet_end last = teller->kept;
    if (node->outbox != NULL && !node->outbox_is_new)
        last = fleet_outbox_end(node->outbox, node->sent);
    /* Of another epoch, or of an outbox that is an old copy. */
    if (own != NULL && own->number > 0 && (own->epoch != last.epoch || own->number > last.number))
        last = (struct fleet_end){true, own->epoch, own->number, own->digest};
    if (last.number == 0 && teller->kept.known)
        last = teller->kept;
    event->epoch = last.epoch;
    event->number = last.number;
    event->before = last.digest;
}

/* "alive": what the node has told last, and which engine has all that it has told: "" until the outbox is told to its end, because
 * others prove what they know when they have read it. */
static char *write_alive(struct teller *teller, const struct fleet_proof *proof) {
    struct fleet_node *node = teller->node;
    char body[256];
    struct fleet_event event = {.kind = FLEET_ALIVE};
    snprintf(event.node, sizeof event.node, "%s", node->demand.node);
    node_lock(teller);
    set_last(teller, &event);
    bool told = node->outbox != NULL && !node->outbox_is_new && !node->renew.known &&
                teller->knows_sent && teller->may_tell &&
                node->sent == fleet_outbox_state(node->outbox).number;
    node_unlock(teller);
    int length = snprintf(body, sizeof body,
                          "{\"nonce\":\"%s\",\"generation\":\"%s\",\"lease\":%" PRIu64 "}",
                          proof->nonce, told ? proof->generation : "", node->demand.lease);
    event.body = slice_make(body, (size_t)length);
    return fleet_event_write(&event, node->demand.key);
}

static bool show_life(struct teller *teller, char error[FLEET_ERROR]) {
    struct fleet_node *node = teller->node;
    struct fleet_proof proof = {.at = 0};
    struct engine_appended appended;
    uint64_t random;
    random_fill(&random, sizeof random);
    snprintf(proof.nonce, sizeof proof.nonce, "%016" PRIx64, random);
    snprintf(proof.generation, sizeof proof.generation, "%s", engine_generation(teller->engine));
    char *text = write_alive(teller, &proof);
    node_lock(teller);
    const struct fleet_mark *mark = fleet_place_mark(&node->place, 0);
    if (mark != NULL)
        proof.behind = *mark;
    proof.at = teller->alive_at = fleet_now();
    teller->urgent = teller->urgent == 0 ? URGENT_MIN : 2 * teller->urgent;
    node->proof = proof;
    node_unlock(teller);
    bool good = engine_append(teller->engine, mark != NULL ? &proof.behind : NULL,
                              &(struct slice){text, strlen(text)}, 1, &appended, error);
    free(text);
    if (!good)
        return false;
    node_lock(teller);
    if (!appended.follows)
        atomic_store(&node->astray, true);
    if (strcmp(node->proof.nonce, proof.nonce) == 0) {
        if (appended.follows && appended.copied)
            node->proof.follows = true;
        else
            node->proof.nonce[0] = '\0';
    }
    note_copied(teller, &appended);
    node_unlock(teller);
    return true;
}

static size_t take_batch(struct teller *teller, struct slice texts[BATCH],
                         uint64_t numbers[BATCH]) {
    struct fleet_outbox_entry entry;
    size_t count = 0;
    uint64_t after = teller->node->sent;
    while (count < BATCH && fleet_outbox_next(teller->node->outbox, after, &entry)) {
        texts[count] = entry.text;
        numbers[count++] = after = entry.number;
    }
    return count;
}

static bool send_batch(struct teller *teller, bool *more, char error[FLEET_ERROR]) {
    struct fleet_node *node = teller->node;
    struct slice texts[BATCH];
    uint64_t numbers[BATCH];
    struct engine_appended appended;
    uint64_t epoch = fleet_outbox_state(node->outbox).epoch;
    size_t count = take_batch(teller, texts, numbers);
    *more = count == BATCH;
    if (count == 0)
        return true;
    bool good = engine_append(teller->engine, NULL, texts, count, &appended, error);
    for (size_t i = 0; i < count; i++)
        free((char *)texts[i].base);
    if (!good)
        return false;
    node_lock(teller);
    for (size_t i = 0; i < count; i++) {
        fleet_node_note_place(node, epoch, numbers[i], appended.id);
    }
    node->sent = numbers[count - 1];
    note_copied(teller, &appended);
    node_unlock(teller);
    return true;
}

/* ---- proof ------------------------------------------------------------------------------------- */

/* Have all nodes that were alive said the new generation? Under the lock. */
static bool is_awaiting(struct fleet_node *node) {
    bool awaits = false;
    LIST_FOR_EACH (link, &node->place.chains.list) {
        struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        if (chain->awaited && strcmp(chain->generation, node->place.generation) == 0)
            chain->awaited = false;
        awaits = awaits || chain->awaited;
    }
    return node->awaits = awaits;
}

/* For a lease nobody has said anything: what such a node has told before is nothing to what is stored later. */
static void await_no_more(struct fleet_node *node) {
    LIST_FOR_EACH (link, &node->place.chains.list)
        CONTAINER_OF(link, struct fleet_chain, link)->awaited = false;
    node->awaits = false;
}

static void accept_proof(struct fleet_node *node, const struct fleet_proof *proof) {
    uint64_t lease = node->demand.lease * FLEET_MS, now = fleet_now();
    if (node->proven_until < now)
        node->steady_since = now;
    node->numbers.proofs++;
    fleet_place_prove(&node->place, &proof->mark);
    memcpy(node->place.proven, node->place.generation, sizeof node->place.proven);
    node->proven_until = proof->at + lease - lease / 20; /* clocks do not run alike */
    if (node->joined == 0)
        node->joined = now;
    node->demand.world.vouch(node->demand.world.arg, node->proven_until);
    pthread_cond_broadcast(&node->changed);
}

/* Takes a proof that is complete but for the last question. False: there is none. */
static bool take_proof(struct teller *teller, struct fleet_proof *proof) {
    struct fleet_node *node = teller->node;
    node_lock(teller);
    *proof = node->proof;
    bool complete = proof->nonce[0] != '\0' && proof->read && proof->follows;
    if (complete)
        node->proof.nonce[0] = '\0';
    complete = complete && strcmp(proof->generation, node->place.generation) == 0;
    node_unlock(teller);
    return complete && strcmp(proof->generation, engine_generation(teller->engine)) == 0;
}

/* The stream was empty, so nothing could show that it has stayed whole: this event is the first mark. Proofs come from here on. */
static void begin_mark(struct teller *teller, const struct fleet_proof *proof) {
    struct fleet_node *node = teller->node;
    node_lock(teller);
    if (node->placed)
        fleet_place_prove(&node->place, &proof->mark);
    node_unlock(teller);
    fleet_node_doubt(node, "this node begins to read");
}

/* Is the newest mark there still? Then nothing between it and the event was removed. */
static bool judge_proof(struct teller *teller, char error[FLEET_ERROR]) {
    struct fleet_node *node = teller->node;
    struct fleet_proof proof;
    bool there;
    if (!take_proof(teller, &proof))
        return true;
    if (proof.behind.id[0] == '\0') {
        begin_mark(teller, &proof);
        return true;
    }
    if (!engine_has(teller->engine, &proof.behind, &there, error))
        return false;
    if (!there) {
        atomic_store(&node->astray, true);
        return true;
    }
    node_lock(teller);
    bool awaits = is_awaiting(node),
         late = awaits && fleet_now() > node->generation_since + node->demand.lease * FLEET_MS;
    if (!awaits && node->placed)
        accept_proof(node, &proof);
    node_unlock(teller);
    if (!late)
        return true;
    /* The next proof is one about what is stored from now on. */
    fleet_node_doubt(node, "another server has begun to serve the stream, and a node that may have "
                           "told something does not answer");
    node_lock(teller);
    await_no_more(node);
    node_unlock(teller);
    return true;
}

/* ---- the table of nodes ------------------------------------------------------------------------ */

struct member_list {
    struct fleet_member *members;
    size_t count;
};

static void teller_add_member(void *arg, const char *name, struct slice text) {
    struct member_list *list = arg;
    const char *generation, *read, *version;
    int proven;
    json_int_t at;
    json_t *json = json_loadb(text.base, text.length, 0, NULL);
    if (list->count < FLEET_NODES_MOST && json != NULL &&
        json_unpack(json, "{s:s, s:s, s:b, s:s, s:I}", "generation", &generation, "read", &read,
                    "proven", &proven, "version", &version, "at", &at) == 0) {
        list->members = xrealloc(list->members, (list->count + 1) * sizeof *list->members);
        struct fleet_member *member = &list->members[list->count++];
        *member = (struct fleet_member){.proven = proven != 0, .at = (uint64_t)at};
        snprintf(member->node, sizeof member->node, "%s", name);
        snprintf(member->position, sizeof member->position, "%s", read);
        snprintf(member->generation, sizeof member->generation, "%s", generation);
        snprintf(member->version, sizeof member->version, "%s", version);
    }
    json_decref(json);
}

static bool teller_read_table(struct teller *teller, char error[FLEET_ERROR]) {
    struct fleet_node *node = teller->node;
    struct member_list list = {NULL, 0};
    if (!engine_get(teller->engine, teller_add_member, &list, error)) {
        free(list.members);
        return false;
    }
    node_lock(teller);
    free(node->members);
    node->members = list.members;
    node->member_count = list.count;
    node->members_at++;
    pthread_cond_broadcast(&node->changed);
    node_unlock(teller);
    return true;
}

bool fleet_node_members(struct fleet_node *node, struct fleet_member **members, size_t *count,
                        char error[FLEET_ERROR]) {
    struct member_list list = {NULL, 0};
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    struct engine *engine = engine_open(&node->demand.engine, error);
    bool good = engine != NULL && engine_get(engine, teller_add_member, &list, error);
    engine_close(&engine);
    *members = list.members;
    *count = list.count;
    return good;
}

bool fleet_node_forget(struct fleet_node *node, const char *name, char error[FLEET_ERROR]) {
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    struct engine *engine = engine_open(&node->demand.engine, error);
    bool good = engine != NULL && engine_set(engine, name, slice_make(NULL, 0), error);
    engine_close(&engine);
    return good;
}

/* ---- the thread -------------------------------------------------------------------------------- */

/* Milliseconds between two signs of life: a third of the lease; sooner while the node is not proven, and then less and less often.
 * Under the lock. */
static uint64_t life_every(struct teller *teller) {
    const struct fleet_node *node = teller->node;
    uint64_t usual = node->demand.lease / 3;
    if (node->proven_until > fleet_now() && !node->awaits) {
        teller->urgent = 0;
        return usual;
    }
    uint64_t soon = teller->urgent < URGENT_MIN ? URGENT_MIN : teller->urgent;
    return soon < usual ? soon : usual;
}

/* What a round goes by. */
struct round {
    bool same;   /* both threads are with one engine, and the reader knows where it is */
    bool silent; /* another node uses the name */
    bool joined, has_outbox, watched;
    bool more; /* events are left for the next one */
};

static struct round teller_begin_round(struct teller *teller) {
    struct fleet_node *node = teller->node;
    struct round round = {.has_outbox = teller_take_outbox(teller)};
    node_lock(teller);
    round.silent = node->conflict_until > fleet_now();
    round.same =
        node->placed && strcmp(node->place.generation, engine_generation(teller->engine)) == 0;
    round.joined = node->joined != 0;
    round.watched = node->watchers > 0;
    if (round.has_outbox && round.joined && !teller->compared && !node->outbox_is_new)
        compare_outbox(teller);
    node_unlock(teller);
    return round;
}

/* Only who knows what the stream has of its own goes on with its numbers. */
static bool tell_events(struct teller *teller, struct round *round, char error[FLEET_ERROR]) {
    return renew_outbox(teller, error) && (teller->knows_sent || find_sent(teller, error)) &&
           renew_outbox(teller, error) && (teller->knows_sent || find_sent(teller, error)) &&
           (!teller->may_tell || send_batch(teller, &round->more, error));
}

static bool is_life_due(struct teller *teller) {
    node_lock(teller);
    bool due = fleet_now() >= teller->alive_at + life_every(teller) * FLEET_MS;
    node_unlock(teller);
    return due;
}

/* The reader is with another engine, or on its way. */
static bool look_for_reader(struct teller *teller, char error[FLEET_ERROR]) {
    if (!engine_is_same(teller->engine, error))
        return false;
    node_lock(teller);
    if (teller->node->placed &&
        strcmp(teller->node->place.generation, engine_generation(teller->engine)) != 0)
        atomic_store(&teller->node->astray, true);
    node_unlock(teller);
    return true;
}

static void teller_end_round(struct teller *teller, const struct round *round) {
    struct fleet_node *node = teller->node;
    uint64_t wait = IDLE;
    node_lock(teller);
    if (node->watchers == 0)
        teller->looks = 0;
    if (!round->same)
        wait = URGENT_MIN;
    else if (round->has_outbox && !round->silent &&
             fleet_outbox_state(node->outbox).number > node->sent)
        wait = teller->may_tell ? 0 : URGENT_MIN;
    else if (node->watchers > 0)
        wait = ++teller->looks < TABLE_SOON ? TABLE_EVERY : TABLE_LATER;
    else if (node->proof.read && node->proof.follows && node->proof.nonce[0] != '\0')
        wait = 0;
    else if (life_every(teller) < wait)
        wait = life_every(teller);
    if (wait > 0 && !round->more)
        fleet_node_wait(node, wait);
    node_unlock(teller);
}

/* False: the connection is of no use any more. */
static bool tell_round(struct teller *teller, char error[FLEET_ERROR]) {
    struct round round = teller_begin_round(teller);
    if (!round.same && !look_for_reader(teller, error))
        return false;
    if (round.same && !round.silent) {
        if (round.has_outbox && !tell_events(teller, &round, error))
            return false;
        if (!judge_proof(teller, error) || (is_life_due(teller) && !show_life(teller, error)))
            return false;
    }
    if (round.watched && !teller_read_table(teller, error))
        return false;
    teller_end_round(teller, &round);
    return true;
}

static void teller_set_connected(struct teller *teller, bool connected) {
    node_lock(teller);
    teller->node->teller_connected = connected;
    node_unlock(teller);
    teller->knows_sent = false; /* another server may lack what the last one had */
}

void fleet_teller_run(void *arg) {
    struct fleet_node *node = arg;
    struct teller teller = {.node = node};
    char error[FLEET_ERROR];
    uint64_t pause = 0;
    while (!atomic_load(&node->stop)) {
        error[0] = '\0';
        teller_take_outbox(&teller);
        teller.engine = engine_open(&node->demand.engine, error);
        if (teller.engine != NULL) {
            teller_set_connected(&teller, true);
            fleet_node_note(node, node->teller_trouble, "tell what happens here", NULL);
            pause = 0;
            while (!atomic_load(&node->stop) && tell_round(&teller, error))
                continue;
            teller_set_connected(&teller, false);
        }
        engine_close(&teller.engine);
        if (error[0] != '\0')
            fleet_node_note(node, node->teller_trouble, "tell what happens here", error);
        if (!atomic_load(&node->stop))
            fleet_node_pause(node, &pause);
    }
}
