#include "fleet/chains.h"

#include "base/assert.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

void fleet_chains_init(struct fleet_chains *chains) {
    list_init(&chains->list);
    chains->count = 0;
}

void fleet_chains_release(struct fleet_chains *chains) {
    LIST_FOR_EACH_SAFE (link, following, &chains->list) {
        list_remove(link);
        free(CONTAINER_OF(link, struct fleet_chain, link));
    }
    chains->count = 0;
}

struct fleet_chain *fleet_chains_find(const struct fleet_chains *chains, const char *node) {
    LIST_FOR_EACH (link, &chains->list) {
        struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        if (strcmp(chain->node, node) == 0)
            return chain;
    }
    return NULL;
}

void fleet_chains_forget(struct fleet_chains *chains, const char *but) {
    LIST_FOR_EACH_SAFE (link, following, &chains->list) {
        struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        if (strcmp(chain->node, but) == 0)
            continue;
        list_remove(link);
        free(chain);
        chains->count--;
    }
}

/* The one that was not heard for longest. */
static struct fleet_chain *chains_oldest(struct fleet_chains *chains) {
    struct fleet_chain *oldest = NULL;
    LIST_FOR_EACH (link, &chains->list) {
        struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        if (oldest == NULL || chain->heard < oldest->heard)
            oldest = chain;
    }
    return oldest;
}

struct fleet_chain *fleet_chains_of(struct fleet_chains *chains, const char *node) {
    struct fleet_chain *chain = fleet_chains_find(chains, node);
    if (chain != NULL)
        return chain;
    if (chains->count == FLEET_NODES_MOST) {
        chain = chains_oldest(chains);
        list_remove(&chain->link);
        free(chain);
        chains->count--;
    }
    chain = xcalloc(1, sizeof *chain);
    snprintf(chain->node, sizeof chain->node, "%s", node);
    list_append(&chains->list, &chain->link);
    chains->count++;
    return chain;
}

bool fleet_chain_has(const struct fleet_chain *chain, uint64_t epoch) {
    bool has = chain->epoch == epoch;
    for (unsigned i = 0; i < FLEET_PAST; i++)
        has = has || (chain->past[i] != 0 && chain->past[i] == epoch);
    return has;
}

/* ---- the end of an epoch ----------------------------------------------------------------------- */

struct slice fleet_end_write(const struct fleet_end *end, char text[FLEET_END_TEXT]) {
    char digest[FLEET_DIGEST_TEXT];
    if (!end->known)
        return SLICE("{}");
    fleet_digest_write(&end->digest, digest);
    int length = snprintf(text, FLEET_END_TEXT,
                          "{\"epoch\":\"%016" PRIx64 "\",\"number\":%" PRIu64 ",\"digest\":\"%s\"}",
                          end->epoch, end->number, digest);
    return slice_make(text, (size_t)length);
}

bool fleet_end_read(struct fleet_end *end, struct slice body) {
    const char *epoch = NULL, *digest = NULL;
    json_int_t number = 0;
    json_t *json = json_loadb(body.base, body.length, 0, NULL);
    *end = (struct fleet_end){0};
    bool good = json != NULL && json_is_object(json);
    if (good && json_object_size(json) > 0) {
        char *rest;
        good = json_unpack(json, "{s:s, s:I, s:s}", "epoch", &epoch, "number", &number, "digest",
                           &digest) == 0 &&
               strlen(epoch) == 16 && number >= 0 &&
               fleet_digest_read(&end->digest, slice_from(digest));
        if (good) {
            end->known = true;
            end->epoch = strtoull(epoch, &rest, 16);
            end->number = (uint64_t)number;
            good = *rest == '\0';
        }
    }
    json_decref(json);
    return good;
}

/* ---- what is missing --------------------------------------------------------------------------- */

static enum fleet_chain_verdict chains_judge_alive(const struct fleet_chain *chain,
                                                   const struct fleet_event *event) {
    if (event->epoch != chain->epoch || event->number > chain->number)
        return FLEET_CHAIN_GAP;
    if (event->number < chain->number)
        return FLEET_CHAIN_OLD;
    return fleet_digest_equal(&event->before, &chain->digest) ? FLEET_CHAIN_OLD : FLEET_CHAIN_GAP;
}

static enum fleet_chain_verdict chains_judge_start(const struct fleet_chain *chain,
                                                   const struct fleet_event *event) {
    struct fleet_end end;
    bool follows = fleet_end_read(&end, event->body) && end.known && end.epoch == chain->epoch &&
                   end.number == chain->number && fleet_digest_equal(&end.digest, &chain->digest);
    return follows ? FLEET_CHAIN_NEXT : FLEET_CHAIN_GAP;
}

static enum fleet_chain_verdict chains_judge(const struct fleet_chain *chain,
                                             const struct fleet_event *event,
                                             const struct fleet_digest *digest) {
    if (event->epoch != chain->epoch && fleet_chain_has(chain, event->epoch))
        return FLEET_CHAIN_OLD;
    if (event->kind == FLEET_ALIVE)
        return chains_judge_alive(chain, event);
    if (event->kind == FLEET_START && event->epoch != chain->epoch)
        return chains_judge_start(chain, event);
    if (event->epoch != chain->epoch || event->number > chain->number + 1)
        return FLEET_CHAIN_GAP;
    if (event->number < chain->number)
        return FLEET_CHAIN_OLD;
    if (event->number == chain->number)
        return fleet_digest_equal(digest, &chain->digest) ? FLEET_CHAIN_OLD : FLEET_CHAIN_GAP;
    return fleet_digest_equal(&event->before, &chain->digest) ? FLEET_CHAIN_NEXT : FLEET_CHAIN_GAP;
}

static void go_on_from(struct fleet_chain *chain, const struct fleet_event *event,
                       const struct fleet_digest *digest) {
    if (chain->epoch != event->epoch && chain->epoch != 0) {
        memmove(chain->past + 1, chain->past, sizeof chain->past - sizeof *chain->past);
        chain->past[0] = chain->epoch;
    }
    chain->epoch = event->epoch;
    chain->number = event->number;
    chain->digest = event->kind == FLEET_ALIVE ? event->before : *digest;
}

enum fleet_chain_verdict fleet_chains_take(struct fleet_chains *chains,
                                           const struct fleet_event *event,
                                           const struct fleet_digest *digest) {
    struct fleet_chain *chain = fleet_chains_find(chains, event->node);
    bool is_new = chain == NULL;
    if (is_new)
        chain = fleet_chains_of(chains, event->node);
    enum fleet_chain_verdict verdict =
        is_new ? FLEET_CHAIN_NEXT : chains_judge(chain, event, digest);
    if (verdict != FLEET_CHAIN_OLD)
        go_on_from(chain, event, digest);
    return verdict;
}
