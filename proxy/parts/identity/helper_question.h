/*
 * A question to a helper of retort-helperd that speaks one of Squid's line protocols: is this the
 * password of that user, is that user in this group? It is asked and answered in the loop of a
 * worker, and nothing waits for it.
 *
 *     struct helper_question *question = arena_zalloc(arena, sizeof *question);
 *     helper_question_init(question, check->net, &check->client, state, on_answer);
 *     const struct slice fields[] = {SLICE("basic"), check->user, check->password};
 *     helper_question_ask(question, &where, fields, 3);
 *     ...
 *     on_answer: switch (question->says) { case HELPER_SAYS_YES: ... helper_question_next ... }
 *     helper_question_end(question);                in any state: on_answer is not called any more
 *
 * helper_question_ask wipes its copies of the fields. The first field names the protocol, so that a pool of another kind refuses the job: a password is
 * never asked for as a group. on_answer may be called before helper_question_ask returns.
 *
 * Whatever goes wrong is HELPER_SAYS_NOTHING, never YES: retort-helperd is not there, its queue is
 * full, its helper hangs, dies or says something else than it may. A worker has at most
 * QUESTIONS_MOST questions at a time, of which one client has at most a quarter.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_IDENTITY_HELPER_QUESTION_H
#define RETORT_IDENTITY_HELPER_QUESTION_H

#include "base/list.h"
#include "event/loop.h"
#include "net/address.h"
#include "net/context.h"
#include "service/helper_client.h"
#include "service/helper_line.h"

enum { QUESTIONS_MOST = 256, QUESTIONS_OF_CLIENT = QUESTIONS_MOST / 4, QUESTION_FIELDS = 1280 };

/* Where a question goes. */
struct helper_place {
    const char *socket; /* of retort-helperd */
    const char *pool;
    uint64_t timeout; /* milliseconds */
};

/* BROKEN: it can't tell (BH). */
enum helper_says { HELPER_SAYS_NOTHING, HELPER_SAYS_BROKEN, HELPER_SAYS_NO, HELPER_SAYS_YES };

struct helper_question {
    /* Of helper_question_init. */
    struct net_context *net;
    struct address client;
    void *owner;
    void (*on_answer)(struct helper_question *question);

    enum helper_says says;
    const char *reason; /* NOTHING: a static sentence */

    struct list_link link; /* in net->questions */
    struct helper_job *job;
    struct event event;
    struct timer timer;
    struct helper_line_answer answer;
};

void helper_question_init(struct helper_question *question, struct net_context *net,
                          const struct address *client, void *owner,
                          void (*on_answer)(struct helper_question *question));
/* The fields have no NUL, and QUESTION_FIELDS bytes in all at most. */
void helper_question_ask(struct helper_question *question, const struct helper_place *place,
                         const struct slice *fields, size_t count);
/* The next NAME=VALUE of the answer YES; its name lives until helper_question_end. False: there are
 * no more. */
bool helper_question_next(struct helper_question *question, struct helper_line_pair *pair);
void helper_question_end(struct helper_question *question);

#endif
