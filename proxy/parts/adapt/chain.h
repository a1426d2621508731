/*
 * A chain of services at one vectoring point: each adapts what the one before it returned.
 *
 *     adapt_chain_start(&chain, set, services, count, &message, arena, net, &transaction->task);
 *     ... the task runs until chain.state is no longer ADAPT_RUNNING ...
 *     ADAPT_DONE       message->request or ->response and message->body are the adapted ones
 *     ADAPT_SATISFIED  REQMOD: message->response and ->body are the answer to the client
 *     ADAPT_FAILED     chain.error, chain.failed_service; nothing of the message may be used
 *     adapt_chain_close(&chain);      ends what is still under way, the body's source included
 *
 * A body streams through all services at once: the second service starts on the output of the first
 * one. As long as nothing of the adapted message has been given out, a service with bypass may
 * fail: then the message goes on to the next service as it was before. A service with `routing` may
 * name the services that follow (X-Next-Services). If the verdict of a service on an equal request
 * is remembered, the service is not asked (adapt/recall.h).
 *
 * In front of the first service with `decode` the content codings of a response are undone, once
 * (adapt/decoding.h). If no service from there on changes the response, the original goes on. If a
 * body can't be decoded, each service with `decode` counts as failed. At the end the head is made
 * to fit a body that has changed (adapt/representation.h).
 *
 * The last service of a chain may let the body trickle to the client (patience/trickle.h) while it has
 * not decided. Then the chain is done before the service is: ADAPT_DONE, with a head, and with a
 * body that may yet fail. Such a response must not be stored: adapt_chain_is_storable.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_CHAIN_H
#define RETORT_ADAPT_CHAIN_H

#include "adapt/adapter_call.h"
#include "adapt/decoding.h"
#include "adapt/message.h"
#include "adapt/recall.h"
#include "adapt/representation.h"
#include "adapt/set.h"
#include "base/arena.h"

struct adapt_chain;
struct trickle;

enum adapt_state { ADAPT_IDLE, ADAPT_RUNNING, ADAPT_DONE, ADAPT_SATISFIED, ADAPT_FAILED };

/* What became of the message at one service (transaction/asked.h). */
struct adapt_record {
    const char *service, *verdict;
    unsigned milliseconds; /* to the verdict */
    const char *error;     /* of what failed; else NULL */
    bool changed;          /* it is another message since */
    uint64_t started;      /* nanoseconds */
    uint64_t span;         /* of the trace that the message belongs to; 0: none */
};

/* The body trickles to the client while the last service thinks (parts/patience/trickle.h). */
struct trickle_class {
    /* The head that the last service was asked about goes to the client now. */
    void (*begin)(struct adapt_chain *chain);
    void (*take_late_verdict)(struct adapt_chain *chain, struct adapter_call *call);
    void (*close)(struct trickle *trickle);
};

struct adapt_chain {
    unsigned magic;
#define ADAPT_CHAIN_MAGIC 0xada9c4a1u
    enum adapt_state state;
    const char *error, *failed_service;
    bool modified; /* some service has changed the message, or it stays decoded */
    bool bypassed; /* some service failed, and the message went on without it */
    bool unable;   /* some service has answered that it could not adapt the message */
    bool left_out; /* some service was not asked, because its module has opted out */
    bool reqmod;
    unsigned
        told; /* enum client_field: what those that changed the message may know of the client */
    struct adapter *services[ADAPT_CHAIN_MAX];
    struct adapter_call *calls[ADAPT_CHAIN_MAX];
    struct adapt_record records[ADAPT_CHAIN_MAX];
    struct http_head *saved[ADAPT_CHAIN_MAX]; /* the head before that service; NULL: unchanged */
    unsigned count, at;
    const struct adapt_set *set;
    enum adapt_point point;
    uint64_t stage_started; /* nanoseconds */
    struct adapt_message *message;
    struct source *result; /* what it left in message->body */
    struct http_head *adapted;
    struct representation before;       /* what the body was when it came, or once decoded */
    struct representation before_codes; /* when it came, where it was decoded */
    struct decoding *decoding;          /* NULL: none */
    struct recall *recall; /* of the service that is asked now; NULL: nothing is remembered */
    unsigned decoded_at;   /* the service in front of which that was */
    struct timer trickle_timer;
    bool quiet;              /* nothing trickles */
    struct trickle *trickle; /* the last service has not decided, and the client waits */
    struct {                 /* of the head that the client was sent: a verdict must not
                              * contradict it */
        unsigned status;
        struct slice type, coding;
    } sent_head;
    const char *undecodable; /* why services that want it decoded can't have it */
    struct arena *arena;
    struct net_context *net;
    struct task task;
    struct task *waker;
};

void adapt_chain_start(struct adapt_chain *chain, const struct adapt_set *set,
                       struct adapter *const *services, unsigned count,
                       struct adapt_message *message, struct arena *arena, struct net_context *net,
                       struct task *waker);
void adapt_chain_close(struct adapt_chain *chain);

/* How much of the body the service that decides now has been sent, where that is known. */
uint64_t adapt_chain_received(const struct adapt_chain *chain);
/* Nothing trickles to the client, because a waiting page is shown instead. */
void adapt_chain_keep_quiet(struct adapt_chain *chain);

/* May the message be stored? Yes, if every service has decided before the message went on: what one
 * was left out of is for this client alone. If a
 * service could not do its work (chain->unable), the message may be stored only for as long as an
 * outage may be remembered (cache.failed_lifetime). */
static inline bool adapt_chain_is_storable(const struct adapt_chain *chain) {
    return !chain->bypassed && !chain->left_out && chain->trickle == NULL;
}

/* See transaction/adapting.h: asked.c. */
unsigned adapt_chain_tell(const struct adapt_chain *chain, struct asked_service *list);
const char *adapt_chain_awaited(const struct adapt_chain *chain);
const char *adapt_chain_failed(const struct adapt_chain *chain);

/* Inside adapt/. */
/* Records what became of the message at the service that is asked now. */
void adapt_chain_record(struct adapt_chain *chain, const char *verdict);
/* The message goes on without that service. */
void adapt_chain_bypass(struct adapt_chain *chain, const char *error);
enum adapt_state adapt_chain_give_up(struct adapt_chain *chain, const char *error);
/* Notes it where the service says that it could not adapt the message. */
void adapt_chain_note_inability(struct adapt_chain *chain, const struct adapter_call *call);
/* The challenge of a parent proxy goes back into the response's head. */
void adapt_chain_give_back_challenge(const struct adapt_message *message);

#endif
