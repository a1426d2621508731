#include "fleet/node.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/clocks.h"
#include "base/log.h"
#include "fleet/node_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ACKNOWLEDGED: milliseconds that an answer waits for the engine, also without patience. */
enum { ACKNOWLEDGED = 500, OUTBOX_PATIENCE = 3000 };

struct fleet_node *fleet_node_new(const struct fleet_demand *demand) {
    struct fleet_node *node;
    ALLOC_OBJ(node, FLEET_NODE_MAGIC);
    node->demand = *demand;
    node->demand.engine.stop = &node->stop;
    pthread_mutex_init(&node->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&node->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    fleet_place_init(&node->place, demand->node);
    return node;
}

/* The place where the node was, and whether the disk was there too. */
static bool node_take_place(struct fleet_node *node, char error[FLEET_ERROR]) {
    const struct fleet_world *world = &node->demand.world;
    const char *fleet = node->demand.key->fleet;
    const struct fleet_mark nowhere = {.id = ""};
    uint64_t kept = 0;
    enum fleet_place_load found =
        fleet_place_load(&node->place, node->demand.directory, node->demand.node, error);
    bool outlives = world->kept(world->arg, &kept);
    if (found == FLEET_PLACE_ALIEN)
        return false;
    if (found == FLEET_PLACE_BAD)
        log_warn("the fleet %s: %s; what is stored is asked for again once", fleet, error);
    /* Killed between both, the disk has the next one. */
    bool fits = kept == node->place.token || kept == node->place.token + 1;
    if (found == FLEET_PLACE_KNOWN && outlives && !fits)
        log_warn("the fleet %s: what is stored on disk, and %s/position, are not of one moment: "
                 "what is stored is asked for again once",
                 fleet, node->demand.directory);
    if (node->place.token < kept) /* a disk keeps the largest one */
        node->place.token = kept;
    if (!outlives ||
        !fits) /* nothing is stored that could have missed an event, or all is doubted */
        fleet_place_begin(&node->place, &nowhere);
    return true;
}

bool fleet_node_start(struct fleet_node *node, char error[FLEET_ERROR]) {
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    if (mkdir(node->demand.directory, 0700) != 0 && errno != EEXIST) {
        snprintf(error, FLEET_ERROR, "cannot make state_directory %.300s: %s",
                 node->demand.directory, strerror(errno));
        return false;
    }
    if (!node_take_place(node, error))
        return false;
    if (thread_start(&node->reader, fleet_reader_run, node, "rt-fleet-read") &&
        thread_start(&node->teller, fleet_teller_run, node, "rt-fleet-tell"))
        return true;
    snprintf(error, FLEET_ERROR, "no thread can be started");
    return false;
}

void fleet_node_close_outbox(struct fleet_node *node) {
    struct fleet_outbox *outbox = node->outbox;
    node->outbox = NULL;
    while (node->outbox_users > 0)
        pthread_cond_wait(&node->changed, &node->lock);
    fleet_outbox_close(&outbox);
}

void fleet_node_retire(struct fleet_node *node) {
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    pthread_mutex_lock(&node->lock);
    node->retired = true;
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
}

void fleet_node_stop(struct fleet_node *node) {
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    pthread_mutex_lock(&node->lock);
    atomic_store(&node->stop, true);
    pthread_cond_broadcast(&node->changed);
    pthread_mutex_unlock(&node->lock);
    thread_join(&node->teller);
    thread_join(&node->reader);
    pthread_mutex_lock(&node->lock);
    fleet_node_close_outbox(node);
    pthread_mutex_unlock(&node->lock);
}

void fleet_node_free(struct fleet_node **nodep) {
    struct fleet_node *node = *nodep;
    *nodep = NULL;
    if (node == NULL)
        return;
    fleet_node_stop(node);
    fleet_place_release(&node->place);
    free(node->members);
    pthread_mutex_destroy(&node->lock);
    pthread_cond_destroy(&node->changed);
    FREE_OBJ(node);
}

/* ---- for both threads -------------------------------------------------------------------------- */

void fleet_node_wait(struct fleet_node *node, uint64_t milliseconds) {
    if (!atomic_load(&node->stop))
        threads_wait(&node->changed, &node->lock, threads_in(milliseconds));
}

void fleet_node_note(struct fleet_node *node, char kept[FLEET_ERROR], const char *what,
                     const char *trouble) {
    pthread_mutex_lock(&node->lock);
    bool was = kept[0] != '\0', is_new = trouble != NULL && strcmp(kept, trouble) != 0;
    snprintf(kept, FLEET_ERROR, "%s", trouble != NULL ? trouble : "");
    pthread_mutex_unlock(&node->lock);
    if (is_new && !atomic_load(&node->stop))
        log_warn("the fleet %s: cannot %s: %s; it is tried again", node->demand.key->fleet, what,
                 trouble);
    else if (was && trouble == NULL)
        log_info("the fleet %s: can %s again", node->demand.key->fleet, what);
}

bool fleet_node_doubt(struct fleet_node *node, const char *why) {
    const struct fleet_world *world = &node->demand.world;
    log_warn("the fleet %s: %s; what is stored is asked for again once", node->demand.key->fleet,
             why);
    bool kept = world->doubt(world->arg);
    if (!kept)
        log_error("the fleet %s: a disk could not be written: what is stored there would be used "
                  "again after a restart; see the messages of the disk",
                  node->demand.key->fleet);
    pthread_mutex_lock(&node->lock);
    node->numbers.gaps++;
    pthread_mutex_unlock(&node->lock);
    return kept;
}

void fleet_node_pause(struct fleet_node *node, uint64_t *pause) {
    *pause = *pause == 0 ? FLEET_PAUSE_MIN : backoff_next(*pause, FLEET_PAUSE_MAX);
    uint64_t until = threads_in(*pause);
    pthread_mutex_lock(&node->lock);
    while (!atomic_load(&node->stop) && fleet_now() < until)
        threads_wait(&node->changed, &node->lock, until);
    pthread_mutex_unlock(&node->lock);
}

/* ---- what is told ------------------------------------------------------------------------------ */

void fleet_node_note_place(struct fleet_node *node, uint64_t epoch, uint64_t number,
                           const char *id) {
    node->noted[number % FLEET_NOTED].epoch = epoch;
    node->noted[number % FLEET_NOTED].number = number;
    snprintf(node->noted[number % FLEET_NOTED].id, FLEET_ID, "%s", id);
}

/* Where the event stands; NULL: the engine does not have it. */
static const char *node_position_of(const struct fleet_node *node, uint64_t number) {
    uint64_t epoch = node->outbox != NULL ? fleet_outbox_state(node->outbox).epoch : 0;
    size_t at = number % FLEET_NOTED;
    return node->noted[at].number == number && node->noted[at].epoch == epoch ? node->noted[at].id
                                                                              : NULL;
}

/* Counts the nodes that have read up to there. */
static void count_nodes(const struct fleet_node *node, const char *position,
                        struct fleet_answer *answer) {
    answer->nodes = answer->in_force = 1; /* this one */
    answer->missing_count = 0;
    for (size_t i = 0; i < node->member_count; i++) {
        const struct fleet_member *member = &node->members[i];
        if (strcmp(member->node, node->demand.node) == 0)
            continue;
        answer->nodes++;
        if (strcmp(member->generation, node->place.generation) == 0 &&
            fleet_id_reaches(member->position, position))
            answer->in_force++;
        else if (answer->missing_count < FLEET_MISSING_MOST)
            snprintf(answer->missing[answer->missing_count++], FLEET_NAME_MAX, "%s", member->node);
    }
}

/* The longest lease of all nodes: who has a longer one vouches for longer. */
static uint64_t longest_lease(const struct fleet_node *node) {
    uint64_t lease = node->demand.lease;
    LIST_FOR_EACH (link, &node->place.chains.list) {
        const struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        lease = chain->lease > lease ? chain->lease : lease;
    }
    return lease;
}

/* Others know this node, and await it when another engine serves, only when it has been proven for a while. */
static uint64_t all_by(const struct fleet_node *node) {
    uint64_t lease = longest_lease(node), now = fleet_now();
    if (node->proven_until < now || now < node->steady_since + lease * FLEET_MS)
        return 0;
    return clocks_nanoseconds(CLOCK_REALTIME) / FLEET_MS + lease;
}

/* Waits, under the lock, for what is asked for: the engine has it, and all nodes have read it. */
static void watch(struct fleet_node *node, uint64_t number, uint64_t patience,
                  struct fleet_answer *answer) {
    uint64_t now = fleet_now(), until = now + patience * FLEET_MS,
             first = now + ACKNOWLEDGED * FLEET_MS, seen = node->members_at;
    bool copied = false;
    node->watchers++;
    pthread_cond_broadcast(&node->changed);
    for (;;) {
        const char *position = node_position_of(node, number);
        now = fleet_now();
        if (position != NULL && node->copied >= number) {
            if (!copied) {
                snprintf(answer->position, sizeof answer->position, "%s", position);
                answer->all_by = all_by(node);
                copied = true;
            }
            count_nodes(node, position, answer);
            bool looked = node->members_at > seen + 1;
            if (looked && (answer->in_force == answer->nodes || now >= until))
                break;
        }
        if (atomic_load(&node->stop) || (now >= until && now >= first))
            break;
        threads_wait(&node->changed, &node->lock, now < until ? until : first);
    }
    node->watchers--;
}

/* Under the lock. The outbox, which is there as soon as the node has an epoch. NULL: it can't be had. */
static struct fleet_outbox *node_take_outbox(struct fleet_node *node, char error[FLEET_ERROR]) {
    uint64_t until = threads_in(OUTBOX_PATIENCE);
    while ((node->outbox == NULL || node->outbox_is_new) && !node->retired &&
           !atomic_load(&node->stop) && fleet_now() < until)
        threads_wait(&node->changed, &node->lock, until);
    if (node->outbox != NULL && !node->outbox_is_new && !node->retired) {
        node->outbox_users++;
        return node->outbox;
    }
    snprintf(error, FLEET_ERROR, "%s",
             node->retired || atomic_load(&node->stop)
                 ? "this process ends: repeat this when another one serves"
             : node->teller_trouble[0] != '\0'
                 ? node->teller_trouble
                 : "another process of this node has its state directory");
    return NULL;
}

bool fleet_node_tell(struct fleet_node *node, enum fleet_event_kind kind, struct slice body,
                     uint64_t patience, struct fleet_answer *answer, char error[FLEET_ERROR]) {
    uint64_t number;
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    if (answer != NULL)
        *answer = (struct fleet_answer){0};
    pthread_mutex_lock(&node->lock);
    struct fleet_outbox *outbox = node_take_outbox(node, error);
    pthread_mutex_unlock(&node->lock);
    if (outbox == NULL)
        return false;
    bool kept = fleet_outbox_add(outbox, kind, body, &number, error);
    pthread_mutex_lock(&node->lock);
    node->outbox_users--;
    pthread_cond_broadcast(&node->changed);
    if (!kept) {
        pthread_mutex_unlock(&node->lock);
        return false;
    }
    node->numbers.told++;
    if (answer != NULL) {
        count_nodes(node, "", answer);
        watch(node, number, patience, answer);
    } else {
        pthread_cond_broadcast(&node->changed);
    }
    pthread_mutex_unlock(&node->lock);
    return true;
}

/* ---- what is shown ----------------------------------------------------------------------------- */

void fleet_node_report(struct fleet_node *node, struct fleet_report *report) {
    CHECK_OBJ(node, FLEET_NODE_MAGIC);
    *report = (struct fleet_report){0};
    pthread_mutex_lock(&node->lock);
    uint64_t now = fleet_now();
    report->connected = node->reader_connected && node->teller_connected;
    report->proven = node->proven_until > now;
    report->proven_for = report->proven ? (node->proven_until - now) / FLEET_MS : 0;
    report->conflict = node->conflict_until > now;
    snprintf(report->generation, sizeof report->generation, "%s", node->place.generation);
    snprintf(report->position, sizeof report->position, "%s", node->place.read.id);
    snprintf(report->trouble, sizeof report->trouble, "%s",
             node->reader_trouble[0] != '\0' ? node->reader_trouble : node->teller_trouble);
    report->numbers = node->numbers;
    if (node->outbox != NULL) {
        struct fleet_outbox_state state = fleet_outbox_state(node->outbox);
        report->numbers.waiting = state.number > node->sent ? state.number - node->sent : 0;
    }
    pthread_mutex_unlock(&node->lock);
}
