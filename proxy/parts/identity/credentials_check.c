#include "identity/credentials_check.h"

#include "identity/helper_groups.h"
#include "identity/identity_method.h"

/* The way of a check: are the credentials well formed? Are they remembered? Does somebody else check
 * them now? May they be tried? Only then the method is asked. */

static void credentials_check_try(struct credentials_check *check);

/* The waker runs only if the check ends after authenticator_check has returned. */
static void conclude(struct credentials_check *check, enum check_state state, const char *reason) {
    ASSERT(check->state == CHECK_WAITING);
    check->state = state;
    check->reason = reason;
    check->working = false;
    flights_leave(&check->place, check->net->loop);
    attempts_drop(check->authentication->attempts, &check->attempt);
    if (check->started)
        loop_defer(check->net->loop, check->waker);
}

static uint64_t remember_until(const struct credentials_check *check, uint64_t lifetime) {
    return check->net->loop->now + lifetime;
}

/* Names and passwords of Basic are decoded here, for all who check them. */
static bool read_credentials(struct credentials_check *check, struct slice value) {
    const char *scheme = check->authenticator->method->scheme;
    if (scheme == NULL)
        return true;
    if (!authorization_parse(value, &check->authorization) ||
        !authorization_is(&check->authorization, scheme) ||
        check->authorization.token68.length == 0)
        return false;
    if (check->authenticator->settings.type != AUTHENTICATOR_BASIC)
        return true;
    char *text = arena_alloc(check->arena, AUTHORIZATION_BASIC);
    bool good =
        authorization_basic(check->authorization.token68, text, &check->user, &check->password) &&
        identity_name_is_good(check->user);
    if (!good)
        explicit_bzero(text, AUTHORIZATION_BASIC);
    return good;
}

static void name_credentials(struct credentials_check *check) {
    const struct authenticator *authenticator = check->authenticator;
    bool basic = check->password.base != NULL;
    const struct slice pieces[] = {
        slice_make((const char *)authenticator->digest, sizeof authenticator->digest),
        check->user,
        basic ? check->password : check->authorization.token68,
    };
    secret_digest(pieces, sizeof pieces / sizeof pieces[0], check->key);
}

static void slow_down(struct credentials_check *check, uint64_t wait) {
    check->retry_after = (unsigned)((wait + 999) / 1000);
    check->net->counters.identity_slowed++;
    conclude(check, CHECK_SLOWED, "too many attempts to log in have failed");
}

/* Credentials that are good help nobody who has to wait for guessing them. */
static void use_remembered(struct credentials_check *check, struct identity *identity) {
    uint64_t wait = 0;
    if (attempts_ask(check->authentication->attempts, check->client_name, check->user,
                     check->net->loop->now, &wait) != ATTEMPT_MAY) {
        identity_release(&identity);
        slow_down(check, wait);
        return;
    }
    check->net->counters.identity_remembered++;
    check->identity = identity;
    conclude(check, CHECK_PROVEN, NULL);
}

static void ask_method(struct credentials_check *check) {
    uint64_t wait = 0, now = check->net->loop->now;
    struct attempts *attempts = check->authentication->attempts;
    enum attempt_verdict verdict = ATTEMPT_MAY;
    if (check->authenticator->method->scheme != NULL)
        verdict =
            attempts_begin(attempts, &check->attempt, check->client_name, check->user, now, &wait);
    if (verdict == ATTEMPT_WAIT) {
        slow_down(check, wait);
        return;
    }
    check->wait = wait;
    check->working = true;
    check->authenticator->method->start(check);
}

static void credentials_check_try(struct credentials_check *check) {
    struct authentication *authentication = check->authentication;
    struct identity *identity;
    if (!check->remembers) {
        ask_method(check);
        return;
    }
    switch (remembered_find(authentication->remembered, check->key, check->net->loop->now,
                            check->net->loop->wall, &identity)) {
    case REMEMBERED_PROVEN: use_remembered(check, identity); return;
    case REMEMBERED_FAILED:
        check->net->counters.identity_refused++;
        conclude(check, CHECK_REFUSED, "the credentials were refused a moment ago");
        return;
    case REMEMBERED_NOTHING: break;
    }
    if (flights_enter(authentication->flights, check->key, &check->place, check->net->mailbox,
                      &check->retry))
        ask_method(check);
}

static void credentials_check_on_retry(struct task *task) {
    credentials_check_try(CONTAINER_OF(task, struct credentials_check, retry));
}

void credentials_check_start(struct credentials_check *check, struct slice authorization) {
    const struct authenticator *authenticator = check->authenticator;
    CHECK_OBJ(check->authentication, AUTHENTICATION_MAGIC);
    check->state = CHECK_WAITING;
    task_init(&check->retry, credentials_check_on_retry);
    check->client_name = address_network_key(&check->client, 32, 64, check->client_text);
    check->remembers = authenticator->method->remembers;
    if (!read_credentials(check, authorization)) {
        check->net->counters.identity_refused++;
        conclude(check, CHECK_REFUSED, "the credentials are malformed");
    } else {
        if (check->remembers)
            name_credentials(check);
        credentials_check_try(check);
    }
    check->started = true;
}

void credentials_check_end(struct credentials_check *check) {
    if (check->authenticator == NULL)
        return;
    if (check->working && check->authenticator->method->cancel != NULL)
        check->authenticator->method->cancel(check);
    helper_groups_end(check);
    check->working = false;
    task_cancel(&check->retry);
    flights_leave(&check->place, check->net->loop);
    attempts_drop(check->authentication->attempts, &check->attempt);
    identity_release(&check->identity);
    if (check->password.length > 0)
        explicit_bzero((char *)check->password.base, check->password.length);
    check->password = slice_make("", 0);
    authenticator_release(&check->authenticator);
    check->state = CHECK_REFUSED;
}

/* Results of methods. */

void credentials_check_prove(struct credentials_check *check, struct slice name,
                             const struct slice *groups, size_t group_count, int64_t until) {
    if (!identity_name_is_good(name) || group_count > IDENTITY_GROUPS_MAX) {
        check->no_guess = true;
        credentials_check_refuse(check, group_count > IDENTITY_GROUPS_MAX
                                            ? "the user has too many groups"
                                            : "the user's name has characters that names lack");
        return;
    }
    if (helper_groups_wanted(check))
        helper_groups_start(check, name, groups, group_count, until);
    else
        credentials_check_prove_whole(check, name, groups, group_count, until);
}

void credentials_check_prove_whole(struct credentials_check *check, struct slice name,
                                   const struct slice *groups, size_t group_count, int64_t until) {
    const struct authenticator *authenticator = check->authenticator;
    struct authentication *authentication = check->authentication;
    uint64_t now = check->net->loop->now, lifetime = authenticator->settings.remember;
    check->identity = identity_new(&(struct identity_facts){
        .name = name,
        .groups = groups,
        .group_count = group_count,
        .authenticator = slice_from(authenticator->settings.name),
        .method = authenticator->method->name,
    });
    if (check->remembers)
        check->net->counters.identity_evicted +=
            remembered_note_proven(authentication->remembered, check->key, check->client_name,
                                   check->identity, now, remember_until(check, lifetime), until);
    attempts_good(authentication->attempts, &check->attempt, now, lifetime);
    check->net->counters.identity_proven++;
    conclude(check, CHECK_PROVEN, NULL);
}

void credentials_check_refuse(struct credentials_check *check, const char *reason) {
    struct authentication *authentication = check->authentication;
    uint64_t now = check->net->loop->now, lifetime = check->authenticator->settings.remember_failed;
    if (check->remembers)
        check->net->counters.identity_evicted +=
            remembered_note_failed(authentication->remembered, check->key, check->client_name, now,
                                   remember_until(check, lifetime));
    bool counts = !check->more && !check->no_guess;
    if (counts)
        attempts_bad(authentication->attempts, &check->attempt, now);
    if (counts && check->wait > 0) {
        slow_down(check, check->wait);
        return;
    }
    check->net->counters.identity_refused++;
    conclude(check, CHECK_REFUSED, reason);
}

void credentials_check_fail(struct credentials_check *check, const char *reason) {
    check->net->counters.identity_unable++;
    conclude(check, CHECK_UNABLE, reason);
}
