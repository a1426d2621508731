/*
 * A question to a helper of retort-helperd that speaks one of Squid's line protocols: is this the
 * password of that user, is that user in this group? It is asked and answered in the loop of a
 * worker, and nothing waits for it.
 *
 *     struct helper_question *question = arena_zalloc(arena, sizeof *question);
 *     question->net = check->net;
 *     question->client = check->client;
 *     question->on_answer = on_answer;
 *     helper_question_ask(question, &where, SLICE("basic\0joe\0secret"));
 *     ...
 *     on_answer: switch (question->says) { case HELPER_SAYS_YES: ... helper_question_next ... }
 *     helper_question_end(question);                in any state: on_answer is not called any more
 *
 * The first field names the protocol, so that a pool of another kind refuses the job: a password is
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

enum { QUESTIONS_MOST = 256, QUESTIONS_OF_CLIENT = QUESTIONS_MOST / 4 };

/* Where a question goes. */
struct helper_place {
    const char *socket; /* of retort-helperd */
    const char *pool;
    uint64_t timeout; /* milliseconds */
};

/* BROKEN: it can't tell (BH). Debian's basic_ldap_auth says so of a wrong password as well. */
enum helper_says { HELPER_SAYS_NOTHING, HELPER_SAYS_BROKEN, HELPER_SAYS_NO, HELPER_SAYS_YES };

struct helper_question {
    /* Set by the caller. */
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

void helper_question_ask(struct helper_question *question, const struct helper_place *place,
                         struct slice fields);
/* The next NAME=VALUE of the answer YES; its name lives until helper_question_end. False: there are
 * no more. */
bool helper_question_next(struct helper_question *question, struct helper_line_pair *pair);
void helper_question_end(struct helper_question *question);

#endif
