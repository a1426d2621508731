/*
 * One attempt to prove who a client is. It lives in the caller's memory, which outlives it until
 * credentials_check_end.
 *
 *     struct credentials_check *check = arena_zalloc(&transaction->arena, sizeof *check);
 *     check->net = transaction->net;
 *     check->authentication = transaction->host->authentication;
 *     check->arena = &transaction->arena;
 *     check->tls = transaction->exchange->ends->tls;
 *     authenticator_check(authenticator, check, authorization, &client, &transaction->task);
 *     if (check->state == CHECK_WAITING)
 *         return STEP_WAIT;                          the waker runs when the state has changed
 *     switch (check->state) {
 *     case CHECK_PROVEN:    note check->identity, with a reference of its own
 *     case CHECK_REFUSED:   challenge again; check->reason says why, for the log
 *     case CHECK_SLOWED:    429 with Retry-After: check->retry_after
 *     case CHECK_UNABLE:    503
 *     }
 *     credentials_check_end(check);                  in any state, also when the client has left
 *
 * What methods do (identity/identity_method.h) stands at the end: they end a check by one of
 * credentials_check_prove, _refuse and _fail, once, in the worker's thread.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_IDENTITY_CREDENTIALS_CHECK_H
#define RETORT_IDENTITY_CREDENTIALS_CHECK_H

#include "base/arena.h"
#include "client/identity.h"
#include "identity/authentication.h"
#include "identity/authorization.h"
#include "net/context.h"

struct authenticator;
struct tls_facts;

enum check_state {
    CHECK_WAITING,
    CHECK_PROVEN,
    CHECK_REFUSED,
    CHECK_UNABLE, /* nobody can say whether the credentials are good */
    CHECK_SLOWED, /* too many attempts have failed; these credentials prove nobody now */
};

struct credentials_check {
    /* Set by the caller before authenticator_check. */
    struct net_context *net;
    struct authentication *authentication;
    struct arena *arena;
    const struct tls_facts *tls; /* of the client's connection; NULL: clear text */
    bool more; /* another authenticator is asked if this one refuses: it counts no failure */

    /* The result. */
    enum check_state state;
    struct identity *identity; /* PROVEN; the check's reference */
    struct slice answer;       /* PROVEN: a token for the client that belongs to the response, as
                                  the value of WWW- or Proxy-Authenticate; empty: none */
    unsigned retry_after;      /* SLOWED: seconds, at least 1 */
    const char *reason;        /* a static sentence without credentials; NULL: there is none */

    /* For methods. */
    struct authenticator *authenticator; /* referenced until the end */
    struct authorization authorization;
    struct slice user, password; /* Basic: decoded, in the arena; wiped at the end */
    struct address client;
    struct slice client_name; /* see address_network_key */
    bool no_guess;            /* what is refused says nothing about a secret: it is no attempt */
    void *method_state;       /* the method's, while it works */
    void *groups_state;       /* of helper_groups.c, while it asks */

    /* Of credentials_check.c. */
    struct task *waker;
    struct task retry; /* when somebody else has checked the same */
    bool started;      /* authenticator_check has returned: whoever waits must be woken */
    bool working;      /* the method has it */
    bool remembers;
    unsigned char key[SECRET_DIGEST];
    struct flight_place place;
    struct attempt attempt;
    uint64_t wait; /* for the client, if these credentials are bad as well; 0: none */
    char client_text[ADDRESS_NETWORK_KEY];
};

/* Ends the check, and wipes the password. Harmless when authenticator_check was never called or the
 * check has ended. */
void credentials_check_end(struct credentials_check *check);

/* For authenticator.c: what authenticator_check does. */
void credentials_check_start(struct credentials_check *check, struct slice authorization);

/* For methods. The texts are copied. `until`: when the proof expires, in seconds since 1970; 0: it
 * does not. */
void credentials_check_prove(struct credentials_check *check, struct slice name,
                             const struct slice *groups, size_t group_count, int64_t until);
/* For helper_groups.c: all groups are known. */
void credentials_check_prove_whole(struct credentials_check *check, struct slice name,
                                   const struct slice *groups, size_t group_count, int64_t until);
void credentials_check_refuse(struct credentials_check *check, const char *reason);
void credentials_check_fail(struct credentials_check *check, const char *reason);

#endif
