#include "base/assert.h"
#include "base/log.h"
#include "fleet/node_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The thread that reads the stream and does what stands in it.
 */

/* Milliseconds: how long a read waits, how often the place is saved and the state told when nothing happens. */
enum { READ_WAIT = 500, SAVE_EVERY = 500, TELL_EVERY = 1000, DOUBT_EVERY = 200, KEEP_AGAIN = 1000 };

struct reader {
    struct fleet_node *node;
    struct engine *engine;
    bool took;            /* something that other nodes count on was read in this batch */
    uint64_t saved, told; /* nanoseconds */
    bool changed;         /* the place, since it was saved */
    char
        why[FLEET_ERROR]; /* all that is stored is doubted at the end of the batch; "": it is not */
    uint64_t doubted;     /* nanoseconds */
    bool
        unkept; /* a disk could not write what was told, or a doubt: until one is written, the place is not saved */
    char nonce
        [FLEET_NONCE]; /* of a sign of life of this node's own in this batch; "": there was none */
    struct fleet_mark alive; /* that event */
    struct fleet_mark last;  /* of a look back */
};

static const char *fleet_of(const struct reader *reader) {
    return reader->node->demand.key->fleet;
}

/* ---- events ------------------------------------------------------------------------------------ */

/* The body of "alive": a number by which its writer knows it again, the engine that lacks nothing of its writer's, and its lease. */
struct alive {
    char nonce[FLEET_NONCE], generation[FLEET_GENERATION];
    uint64_t lease;
};

static bool read_alive(struct slice body, struct alive *alive) {
    const char *nonce = NULL, *generation = NULL;
    json_int_t lease = 0;
    json_t *json = json_loadb(body.base, body.length, 0, NULL);
    bool good = json != NULL &&
                json_unpack(json, "{s:s, s:s, s:I}", "nonce", &nonce, "generation", &generation,
                            "lease", &lease) == 0 &&
                strlen(nonce) < FLEET_NONCE && strlen(generation) < FLEET_GENERATION && lease > 0;
    if (good) {
        snprintf(alive->nonce, sizeof alive->nonce, "%s", nonce);
        snprintf(alive->generation, sizeof alive->generation, "%s", generation);
        alive->lease = (uint64_t)lease;
    }
    json_decref(json);
    return good;
}

static void doubt_later(struct reader *reader, const char *format, const char *node) {
    snprintf(reader->why, sizeof reader->why, format, node);
}

/* Nobody with the outbox has written it: another node has this one's name. Under the lock. */
static bool is_foreign(const struct fleet_node *node, const struct fleet_event *event,
                       enum fleet_outbox_owner owner) {
    const struct fleet_chain *chain = fleet_chains_find(&node->place.chains, event->node);
    if (node->outbox == NULL || node->outbox_is_new || node->joined == 0)
        return false;
    return owner == FLEET_OUTBOX_FORKED ||
           (owner == FLEET_OUTBOX_OTHER &&
            (chain == NULL || !fleet_chain_has(chain, event->epoch)));
}

static void note_conflict(struct reader *reader) {
    struct fleet_node *node = reader->node;
    if (node->conflict_until < fleet_now()) {
        log_error("the fleet %s: another node uses the name %s: give each node a name and a state "
                  "directory of its own; this one tells the fleet nothing meanwhile",
                  fleet_of(reader), node->demand.node);
        doubt_later(reader, "what another node has told under the name %s is not known",
                    node->demand.node);
    }
    node->numbers.conflicts++;
    node->conflict_until = fleet_now() + 2 * node->demand.lease * FLEET_MS;
}

static void note_own(struct reader *reader, const struct fleet_event *event, const char *id,
                     const struct fleet_digest *digest) {
    struct fleet_node *node = reader->node;
    if (event->kind == FLEET_ALIVE)
        return;
    fleet_node_note_place(node, event->epoch, event->number, id);
    if (node->outbox != NULL)
        fleet_outbox_confirm(node->outbox, event, digest);
}

/* Whose an event with this node's name is: "alive" stands for the event that it names. */
static enum fleet_outbox_owner owner_of(const struct fleet_node *node,
                                        const struct fleet_event *event,
                                        const struct fleet_digest *digest) {
    if (node->outbox == NULL)
        return FLEET_OUTBOX_EARLIER;
    return fleet_outbox_owner(node->outbox, event,
                              event->kind == FLEET_ALIVE ? &event->before : digest);
}

static void apply(struct reader *reader, const struct fleet_event *event) {
    struct fleet_node *node = reader->node;
    const struct fleet_world *world = &node->demand.world;
    if (!world->apply(world->arg, event)) {
        reader->unkept = true;
        log_error("the fleet %s: what the node %s has told is in force, but a disk could not be "
                  "written, so that a restart would undo it",
                  fleet_of(reader), event->node);
    }
    pthread_mutex_lock(&node->lock);
    node->numbers.applied++;
    pthread_mutex_unlock(&node->lock);
}

/* What "alive" says of its node. Under the lock. */
static void note_alive(struct fleet_chain *chain, const struct alive *alive) {
    chain->heard = fleet_now();
    if (alive == NULL)
        return;
    chain->lease = alive->lease;
    if (alive->generation[0] != '\0')
        memcpy(chain->generation, alive->generation, sizeof chain->generation);
}

static void reader_take_event(struct reader *reader, const struct fleet_event *event,
                              const char *id, const struct fleet_digest *digest) {
    struct fleet_node *node = reader->node;
    struct alive alive = {.nonce = ""};
    bool is_alive = event->kind == FLEET_ALIVE;
    if (is_alive && !read_alive(event->body, &alive))
        return;
    bool own = strcmp(event->node, node->demand.node) == 0;
    pthread_mutex_lock(&node->lock);
    enum fleet_outbox_owner owner = own ? owner_of(node, event, digest) : FLEET_OUTBOX_OTHER;
    bool foreign = own && is_foreign(node, event, owner);
    enum fleet_chain_verdict verdict =
        foreign ? FLEET_CHAIN_NEXT : fleet_chains_take(&node->place.chains, event, digest);
    struct fleet_chain *chain = fleet_chains_find(&node->place.chains, event->node);
    if (chain != NULL && !foreign)
        note_alive(chain, is_alive ? &alive : NULL);
    if (foreign)
        note_conflict(reader);
    else if (own)
        note_own(reader, event, id, digest);
    pthread_mutex_unlock(&node->lock);
    if (own && is_alive) {
        memcpy(reader->nonce, alive.nonce, sizeof reader->nonce);
        reader->alive = (struct fleet_mark){.digest = *digest};
        snprintf(reader->alive.id, sizeof reader->alive.id, "%s", id);
    }
    reader->took = reader->took || !is_alive;
    /* Behind a gap it may be an old event that somebody has appended again: the doubt is for all of them. */
    if (verdict == FLEET_CHAIN_GAP && !own)
        doubt_later(reader, "events of the node %s are missing", event->node);
    else if (verdict == FLEET_CHAIN_NEXT && event->kind == FLEET_PURGE &&
             owner != FLEET_OUTBOX_MINE)
        apply(reader, event);
}

static void reader_on_entry(void *arg, const char *id, struct slice text) {
    struct reader *reader = arg;
    struct fleet_node *node = reader->node;
    struct fleet_event event;
    struct fleet_digest digest = fleet_digest_of(text);
    if (fleet_event_read(&event, text, node->demand.key)) {
        reader_take_event(reader, &event, id, &digest);
    } else {
        pthread_mutex_lock(&node->lock);
        if (node->numbers.rejected++ == 0)
            log_warn(
                "the fleet %s: the stream has an entry that no node with our key has written "
                "(%s): see who may write to the engine, and whether all nodes have one key_file",
                fleet_of(reader), id);
        pthread_mutex_unlock(&node->lock);
    }
    pthread_mutex_lock(&node->lock);
    fleet_place_move(&node->place, id, &digest);
    pthread_mutex_unlock(&node->lock);
    reader->changed = true;
}

/* ---- doubt ------------------------------------------------------------------------------------- */

static bool reader_is_due(uint64_t last, uint64_t milliseconds) {
    return fleet_now() >= last + milliseconds * FLEET_MS;
}

static void reader_doubt(struct reader *reader, const char *why) {
    reader->doubted = fleet_now();
    reader->unkept = !fleet_node_doubt(reader->node, why);
}

/* Once for all of a batch, and seldom, whatever the stream has: a doubt is written to the disk. */
static void settle_doubt(struct reader *reader) {
    uint64_t pause = 0;
    if (reader->why[0] != '\0') {
        if (!reader_is_due(reader->doubted, DOUBT_EVERY))
            fleet_node_pause(reader->node, &pause);
        reader_doubt(reader, reader->why);
        reader->why[0] = '\0';
    } else if (reader->unkept && reader_is_due(reader->doubted, KEEP_AGAIN)) {
        reader_doubt(reader, "a disk could not write what was told");
    }
}

/* A sign of life has been read, with all that stood in front of it. */
static void settle_proof(struct reader *reader) {
    struct fleet_node *node = reader->node;
    pthread_mutex_lock(&node->lock);
    if (reader->nonce[0] != '\0' && strcmp(reader->nonce, node->proof.nonce) == 0) {
        node->proof.read = true;
        node->proof.mark = reader->alive;
        pthread_cond_broadcast(&node->changed);
    }
    pthread_mutex_unlock(&node->lock);
    reader->nonce[0] = '\0';
}

/* ---- where to go on ---------------------------------------------------------------------------- */

static void reader_on_last(void *arg, const char *id, struct slice text) {
    struct reader *reader = arg;
    snprintf(reader->last.id, sizeof reader->last.id, "%s", id);
    reader->last.digest = fleet_digest_of(text);
}

/* Begins behind the newest entry. What was stored before is not known to be what it should be. */
static bool reader_begin_anew(struct reader *reader, const char *why, char error[FLEET_ERROR]) {
    struct fleet_node *node = reader->node;
    reader->last = (struct fleet_mark){.id = ""};
    if (!engine_look_back(reader->engine, 1, reader_on_last, reader, error))
        return false;
    /* In an empty stream the first sign of life of its own is the beginning (teller.c). */
    if (reader->last.id[0] != '\0')
        reader_doubt(reader, why);
    pthread_mutex_lock(&node->lock);
    fleet_place_begin(&node->place, &reader->last);
    pthread_mutex_unlock(&node->lock);
    return true;
}

/* Another engine serves, or the same one has been started again: who was alive at the last proof has to say that it has lost
 * nothing. Without a proof that is still good, nodes may have come that are not known here. Under the lock; true: all that is
 * stored is to be doubted. */
static bool change_generation(struct fleet_node *node, const char *generation) {
    uint64_t now = fleet_now(), lease = node->demand.lease * FLEET_MS;
    bool proven = node->proven_until > now, known = node->place.generation[0] != '\0';
    node->awaits = false;
    LIST_FOR_EACH (link, &node->place.chains.list) {
        struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        uint64_t longest = chain->lease * FLEET_MS > lease ? chain->lease * FLEET_MS : lease;
        chain->awaited = proven && strcmp(chain->node, node->demand.node) != 0 &&
                         chain->heard + 3 * longest >= now;
        node->awaits = node->awaits || chain->awaited;
    }
    snprintf(node->place.generation, sizeof node->place.generation, "%s", generation);
    node->generation_since = now;
    return known && !proven;
}

/* Goes on where it stopped, if the engine has all that came behind the newest mark, and else behind the newest mark that it has.
 * *found: false: it has none. */
static bool reader_find_place(struct reader *reader, bool *found, char error[FLEET_ERROR]) {
    struct fleet_place *place = &reader->node->place;
    const struct fleet_mark *mark;
    unsigned back = 0;
    *found = false;
    while (!*found && (mark = fleet_place_mark(place, back)) != NULL) {
        if (!engine_has(reader->engine, mark, found, error))
            return false;
        back += !*found;
    }
    bool has_last = false;
    if (*found && back == 0 && !engine_has(reader->engine, &place->read, &has_last, error))
        return false;
    pthread_mutex_lock(&reader->node->lock);
    if (*found && !has_last)
        fleet_place_go_back(place, back);
    pthread_mutex_unlock(&reader->node->lock);
    return true;
}

static bool take_up(struct reader *reader, char error[FLEET_ERROR]) {
    struct fleet_node *node = reader->node;
    bool found, was = node->place.read.id[0] != '\0';
    if (!reader_find_place(reader, &found, error))
        return false;
    if (!found && !reader_begin_anew(reader,
                                     was ? "the stream does not have any more what was read last"
                                         : "this node begins to read",
                                     error))
        return false;
    pthread_mutex_lock(&node->lock);
    bool is_new = strcmp(node->place.generation, engine_generation(reader->engine)) != 0;
    bool doubtful = is_new && change_generation(node, engine_generation(reader->engine)) && found;
    pthread_mutex_unlock(&node->lock);
    if (doubtful)
        reader_doubt(reader,
                     "another server serves the stream, and may lack what was told meanwhile");
    pthread_mutex_lock(&node->lock);
    node->placed = true;
    atomic_store(&node->astray, false);
    node->proof.nonce[0] = '\0';
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    return true;
}

/* ---- what others see of this node -------------------------------------------------------------- */

static bool tell_state(struct reader *reader, char error[FLEET_ERROR]) {
    struct fleet_node *node = reader->node;
    char digest[FLEET_DIGEST_TEXT] = "", epoch[17] = "";
    pthread_mutex_lock(&node->lock);
    const char *position = node->place.read.id;
    const struct fleet_chain *own = fleet_chains_find(&node->place.chains, node->demand.node);
    if (own != NULL) {
        fleet_digest_write(&own->digest, digest);
        slice_put_hex(epoch, own->epoch)[0] = '\0';
    }
    json_t *json =
        json_pack("{s:s, s:s, s:b, s:s, s:I, s:s, s:I, s:s}", "generation", node->place.generation,
                  "read", position[0] != '\0' ? position : "0-0", "proven",
                  (int)(node->proven_until > fleet_now()), "version", node->demand.version, "at",
                  (json_int_t)(clocks_nanoseconds(CLOCK_REALTIME) / FLEET_MS), "epoch", epoch,
                  "number", (json_int_t)(own != NULL ? own->number : 0), "digest", digest);
    pthread_mutex_unlock(&node->lock);
    char *text = json_dumps(json, JSON_COMPACT);
    bool good = engine_set(reader->engine, node->demand.node, slice_from(text), error);
    free(text);
    json_decref(json);
    reader->told = fleet_now();
    return good;
}

static void save_place(struct reader *reader) {
    struct fleet_node *node = reader->node;
    const struct fleet_world *world = &node->demand.world;
    char error[FLEET_ERROR];
    reader->saved = fleet_now();
    reader->changed = false;
    pthread_mutex_lock(&node->lock);
    /* Without the outbox, another process of the node may save its place. */
    char *text = node->outbox == NULL || reader->unkept ? NULL : fleet_place_write(&node->place);
    uint64_t token = node->place.token;
    pthread_mutex_unlock(&node->lock);
    /* The disk first: behind a kill it has the same number, or the next one. */
    bool good = text == NULL || !world->keep(world->arg, token) ||
                fleet_place_save(text, node->demand.directory, error);
    fleet_node_note(node, node->place_trouble, "keep how far it has read", good ? NULL : error);
    free(text);
}

/* ---- the thread -------------------------------------------------------------------------------- */

/* A place without one is no place to go on from. */
static bool has_mark(struct fleet_node *node) {
    pthread_mutex_lock(&node->lock);
    bool has = node->place.count > 0;
    pthread_mutex_unlock(&node->lock);
    return has;
}

static bool read_batch(struct reader *reader, char error[FLEET_ERROR]) {
    struct fleet_node *node = reader->node;
    const char *after = node->place.read.id[0] != '\0' ? node->place.read.id : "0-0";
    reader->took = false;
    uint64_t begun = fleet_now(), pause = 0;
    bool before = reader->changed;
    reader->changed = false;
    bool good = engine_read(reader->engine, after, READ_WAIT, reader_on_entry, reader, error);
    bool any = reader->changed;
    reader->changed = before || any;
    settle_doubt(reader);
    if (!good)
        return false;
    settle_proof(reader);
    if (!any && !reader_is_due(begun, READ_WAIT / 2)) /* it does not wait as it should */
        fleet_node_pause(reader->node, &pause);
    if ((reader->took || reader_is_due(reader->told, TELL_EVERY)) && !tell_state(reader, error))
        return false;
    if (reader->changed && reader_is_due(reader->saved, SAVE_EVERY) && has_mark(node))
        save_place(reader);
    return true;
}

static void read_on(struct reader *reader, char error[FLEET_ERROR]) {
    struct fleet_node *node = reader->node;
    while (!atomic_load(&node->stop) && !atomic_load(&node->astray) && read_batch(reader, error))
        continue;
    pthread_mutex_lock(&node->lock);
    node->placed = false;
    atomic_store(&node->astray, false);
    pthread_mutex_unlock(&node->lock);
}

static void set_connected(struct fleet_node *node, bool connected) {
    pthread_mutex_lock(&node->lock);
    node->reader_connected = connected;
    pthread_mutex_unlock(&node->lock);
}

void fleet_reader_run(void *arg) {
    struct fleet_node *node = arg;
    struct reader reader = {.node = node};
    char error[FLEET_ERROR];
    uint64_t pause = 0;
    while (!atomic_load(&node->stop)) {
        error[0] = '\0';
        reader.engine = engine_open(&node->demand.engine, error);
        if (reader.engine != NULL && take_up(&reader, error)) {
            fleet_node_note(node, node->reader_trouble, "read its stream", NULL);
            set_connected(node, true);
            pause = 0;
            read_on(&reader, error);
            set_connected(node, false);
        }
        engine_close(&reader.engine);
        if (error[0] != '\0')
            fleet_node_note(node, node->reader_trouble, "read its stream", error);
        if (!atomic_load(&node->stop))
            fleet_node_pause(node, &pause);
    }
    if (reader.changed)
        save_place(&reader);
}
