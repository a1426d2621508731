/*
 * RESPMOD: asks services that change responses before the cache stores them. Such a response is
 * adapted once and served many times.
 *
 *     respmod_give_result(transaction, &head, &body);                  the waiting page
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ADAPT_RESPMOD_H
#define RETORT_ADAPT_RESPMOD_H

#include "adapt/chain.h"
#include "adapt/chain_tags.h"
#include "transaction/step.h"

struct object;
struct object_provenance;

/* Written by respmod.c. */
struct respmod {
    struct adapt_chain chain;
    struct adapt_message message;
    struct chain_tags mark;  /* the services that the response has passed */
    bool by_who;             /* which services are asked depends on who asks */
    int64_t expected_length; /* of the body before it is adapted; -1: not known */
};

/* Gives the message that the services have made, once it is there. */
void respmod_give_result(struct transaction *transaction, struct http_head **headp,
                         struct source **bodyp);
/* See transaction/adapting.h. */
bool respmod_is_outdated(struct transaction *transaction, const struct object *object);
void respmod_note_seen(const struct transaction *transaction, struct object_provenance *provenance);
/* Nothing of the body trickles to the client; the client is told in another way. */
void respmod_keep_quiet(struct transaction *transaction);

#endif
