#include "identity/attempts.h"

#include "base/assert.h"
#include "identity/digest_rows.h"

#include <stdatomic.h>

/* While a user is attacked, each client has to wait that much longer. */
enum { ATTACKED_WAIT = 10 };

struct attempt_entry {
    unsigned char key[SECRET_DIGEST];
    bool used;
    unsigned failures, pending;
    uint64_t last;        /* when something was noted */
    uint64_t wait_until;  /* no attempt before */
    uint64_t known_until; /* of a pair: the user has proved himself from this client */
};

struct attempts {
    unsigned magic;
#define ATTEMPTS_MAGIC 0xa77e3975u
    struct digest_rows pairs, clients, users; /* of struct attempt_entry */
    _Atomic uint64_t waits_until;             /* after that time nobody has to wait */
    pthread_mutex_t lock;                     /* for the limits */
    struct authentication_settings limits;
};

struct attempts *attempts_new(const struct authentication_settings *settings) {
    struct attempts *attempts;
    ALLOC_OBJ(attempts, ATTEMPTS_MAGIC);
    digest_rows_init(&attempts->pairs, settings->attempt_entries / 2, sizeof(struct attempt_entry));
    digest_rows_init(&attempts->clients, settings->attempt_entries / 4,
                     sizeof(struct attempt_entry));
    digest_rows_init(&attempts->users, settings->attempt_entries / 4, sizeof(struct attempt_entry));
    pthread_mutex_init(&attempts->lock, NULL);
    attempts->limits = *settings;
    return attempts;
}

void attempts_configure(struct attempts *attempts, const struct authentication_settings *settings) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    pthread_mutex_lock(&attempts->lock);
    attempts->limits = *settings;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_free(struct attempts **attemptsp) {
    struct attempts *attempts = *attemptsp;
    *attemptsp = NULL;
    if (attempts == NULL)
        return;
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    digest_rows_release(&attempts->pairs);
    digest_rows_release(&attempts->clients);
    digest_rows_release(&attempts->users);
    pthread_mutex_destroy(&attempts->lock);
    FREE_OBJ(attempts);
}

static struct authentication_settings limits_of(struct attempts *attempts) {
    pthread_mutex_lock(&attempts->lock);
    struct authentication_settings limits = attempts->limits;
    pthread_mutex_unlock(&attempts->lock);
    return limits;
}

static bool attempt_is_over(const struct attempt_entry *entry, uint64_t forget, uint64_t now) {
    uint64_t last = entry->wait_until > entry->last ? entry->wait_until : entry->last;
    return entry->pending == 0 && now >= last + forget && now >= entry->known_until;
}

/* Of two entries, is `a` of less use? */
static bool attempt_is_less(const struct attempt_entry *a, const struct attempt_entry *b) {
    return a->failures + a->pending != b->failures + b->pending
               ? a->failures + a->pending < b->failures + b->pending
               : a->last < b->last;
}

/* The entry of the key; the caller unlocks its row afterwards. Failures that are long past are
 * forgotten. NULL: there is none, and `make` is false. */
static struct attempt_entry *attempt_lock(struct digest_rows *table, const unsigned char *key,
                                          uint64_t forget, uint64_t now, bool make) {
    struct attempt_entry *row = digest_rows_lock(table, key), *spare = row;
    for (size_t i = 0; i < DIGEST_ROW; i++) {
        struct attempt_entry *entry = &row[i];
        if (entry->used && attempt_is_over(entry, forget, now))
            entry->used = false;
        if (entry->used && secret_digest_equal(entry->key, key))
            return entry;
        if (spare->used && (!entry->used || attempt_is_less(entry, spare)))
            spare = entry;
    }
    if (!make)
        return NULL;
    *spare = (struct attempt_entry){.used = true, .last = now};
    memcpy(spare->key, key, sizeof spare->key);
    return spare;
}

/* How a count limits attempts. */
struct attempt_limit {
    unsigned free; /* failures without a wait */
    bool begun;    /* attempts that have begun count as failures */
    uint64_t wait; /* after the first one that is too many */
    uint64_t wait_max, forget;
};

/* 0: an attempt may begin; else how long to wait. */
static uint64_t attempt_wait(const struct attempt_entry *entry, const struct attempt_limit *limit,
                             uint64_t now) {
    if (now < entry->wait_until)
        return entry->wait_until - now;
    unsigned begun = limit->begun ? entry->pending : 0;
    bool may = entry->pending == 0 || entry->failures + begun < limit->free;
    return may ? 0 : limit->wait;
}

static void attempt_fail(struct attempt_entry *entry, const struct attempt_limit *limit,
                         uint64_t now) {
    entry->last = now;
    entry->failures++;
    if (entry->failures < limit->free)
        return;
    unsigned doublings = entry->failures - limit->free;
    uint64_t wait = doublings < 32 ? limit->wait << doublings : limit->wait_max;
    entry->wait_until = now + (wait < limit->wait_max ? wait : limit->wait_max);
}

/* Many users may stand behind one address and begin at the same moment. */
static struct attempt_limit limit_of_client(const struct authentication_settings *limits) {
    return (struct attempt_limit){limits->attempts_client, false, limits->wait_min,
                                  limits->wait_max, limits->attempts_forget};
}

/* Under attack, the first failure is one too many. */
static struct attempt_limit limit_of_pair(const struct authentication_settings *limits,
                                          bool attacked) {
    struct attempt_limit limit = {limits->attempts, true, limits->wait_min, limits->wait_max,
                                  limits->attempts_forget};
    if (attacked) {
        limit.free = 1;
        limit.wait = ATTACKED_WAIT * limits->wait_min;
        if (limit.wait_max < limit.wait)
            limit.wait_max = limit.wait;
    }
    return limit;
}

static void attempt_name(struct attempt *attempt, struct slice client, struct slice user) {
    const struct slice pair[] = {SLICE("pair"), client, user};
    const struct slice one[] = {SLICE("client"), client};
    const struct slice name[] = {SLICE("user"), user};
    *attempt = (struct attempt){.has_user = user.length > 0};
    secret_digest(one, 2, attempt->client);
    if (!attempt->has_user)
        return;
    secret_digest(pair, 3, attempt->pair);
    secret_digest(name, 2, attempt->user);
}

static bool is_attacked(struct attempts *attempts, const struct attempt *attempt,
                        const struct authentication_settings *limits, uint64_t now) {
    if (!attempt->has_user)
        return false;
    const struct attempt_entry *entry =
        attempt_lock(&attempts->users, attempt->user, limits->attempts_forget, now, false);
    bool attacked = entry != NULL && entry->failures >= limits->attempts_user;
    digest_rows_unlock(&attempts->users, attempt->user);
    return attacked;
}

/* Begins the attempt in one table, or returns how long to wait. */
static uint64_t attempt_enter(struct digest_rows *table, const unsigned char *key,
                              const struct attempt_limit *limit, uint64_t now) {
    struct attempt_entry *entry = attempt_lock(table, key, limit->forget, now, true);
    uint64_t wait = attempt_wait(entry, limit, now);
    if (wait == 0)
        entry->pending++;
    digest_rows_unlock(table, key);
    return wait;
}

static void attempt_leave(struct digest_rows *table, const unsigned char *key) {
    struct attempt_entry *entry = attempt_lock(table, key, 0, 0, false);
    if (entry != NULL && entry->pending > 0)
        entry->pending--;
    digest_rows_unlock(table, key);
}

static bool pair_is_known(struct attempts *attempts, const struct attempt *attempt,
                          const struct authentication_settings *limits, uint64_t now) {
    if (!attempt->has_user)
        return false;
    const struct attempt_entry *entry =
        attempt_lock(&attempts->pairs, attempt->pair, limits->attempts_forget, now, false);
    bool known = entry != NULL && now < entry->known_until;
    digest_rows_unlock(&attempts->pairs, attempt->pair);
    return known;
}

enum attempt_verdict attempts_begin(struct attempts *attempts, struct attempt *attempt,
                                    struct slice client, struct slice user, uint64_t now,
                                    uint64_t *wait) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    struct authentication_settings limits = limits_of(attempts);
    attempt_name(attempt, client, user);
    bool known = pair_is_known(attempts, attempt, &limits, now);
    bool attacked = !known && is_attacked(attempts, attempt, &limits, now);
    const struct attempt_limit pair = limit_of_pair(&limits, attacked);
    const struct attempt_limit one = limit_of_client(&limits);
    if (attempt->has_user) {
        *wait = attempt_enter(&attempts->pairs, attempt->pair, &pair, now);
        if (*wait > 0)
            return ATTEMPT_WAIT;
    }
    *wait = attempt_enter(&attempts->clients, attempt->client, &one, now);
    attempt->begun = *wait == 0;
    if (attempt->begun)
        return ATTEMPT_MAY;
    if (attempt->has_user)
        attempt_leave(&attempts->pairs, attempt->pair);
    return known ? ATTEMPT_CLIENT_WAIT : ATTEMPT_WAIT;
}

/* Until when attempts of the key have to wait; 0: there is no such time. */
static uint64_t attempt_waits_until(struct digest_rows *table, const unsigned char *key,
                                    uint64_t forget, uint64_t now) {
    const struct attempt_entry *entry = attempt_lock(table, key, forget, now, false);
    uint64_t until = entry != NULL ? entry->wait_until : 0;
    digest_rows_unlock(table, key);
    return until;
}

enum attempt_verdict attempts_ask(struct attempts *attempts, struct slice client, struct slice user,
                                  uint64_t now, uint64_t *wait) {
    struct attempt attempt;
    uint64_t until = 0;
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    if (now >= atomic_load_explicit(&attempts->waits_until, memory_order_relaxed))
        return ATTEMPT_MAY;
    struct authentication_settings limits = limits_of(attempts);
    attempt_name(&attempt, client, user);
    if (attempt.has_user)
        until = attempt_waits_until(&attempts->pairs, attempt.pair, limits.attempts_forget, now);
    if (until <= now && !pair_is_known(attempts, &attempt, &limits, now))
        until =
            attempt_waits_until(&attempts->clients, attempt.client, limits.attempts_forget, now);
    *wait = until > now ? until - now : 0;
    return until > now ? ATTEMPT_WAIT : ATTEMPT_MAY;
}

void attempts_good(struct attempts *attempts, struct attempt *attempt, uint64_t now,
                   uint64_t keep) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    if (!attempt->begun)
        return;
    attempts_drop(attempts, attempt);
    if (!attempt->has_user)
        return;
    struct authentication_settings limits = limits_of(attempts);
    struct attempt_entry *entry =
        attempt_lock(&attempts->pairs, attempt->pair, limits.attempts_forget, now, true);
    entry->failures = 0;
    entry->wait_until = 0;
    entry->last = now;
    entry->known_until = now + keep;
    digest_rows_unlock(&attempts->pairs, attempt->pair);
}

static void attempt_count(struct attempts *attempts, struct digest_rows *table,
                          const unsigned char *key, const struct attempt_limit *limit,
                          uint64_t now) {
    struct attempt_entry *entry = attempt_lock(table, key, limit->forget, now, true);
    attempt_fail(entry, limit, now);
    uint64_t until = entry->wait_until, last = atomic_load(&attempts->waits_until);
    digest_rows_unlock(table, key);
    while (last < until && !atomic_compare_exchange_weak(&attempts->waits_until, &last, until))
        ;
}

static void count_pair(struct attempts *attempts, const struct attempt *attempt,
                       const struct authentication_settings *limits, uint64_t now) {
    bool attacked = !pair_is_known(attempts, attempt, limits, now) &&
                    is_attacked(attempts, attempt, limits, now);
    const struct attempt_limit pair = limit_of_pair(limits, attacked);
    const struct attempt_limit user = {UINT32_MAX, false, 0, 0, limits->attempts_forget};
    attempt_count(attempts, &attempts->pairs, attempt->pair, &pair, now);
    attempt_count(attempts, &attempts->users, attempt->user, &user, now);
}

void attempts_bad(struct attempts *attempts, struct attempt *attempt, uint64_t now) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    if (!attempt->begun)
        return;
    attempts_drop(attempts, attempt);
    struct authentication_settings limits = limits_of(attempts);
    const struct attempt_limit one = limit_of_client(&limits);
    attempt_count(attempts, &attempts->clients, attempt->client, &one, now);
    if (attempt->has_user)
        count_pair(attempts, attempt, &limits, now);
}

void attempts_drop(struct attempts *attempts, struct attempt *attempt) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    if (!attempt->begun)
        return;
    attempt->begun = false;
    attempt_leave(&attempts->clients, attempt->client);
    if (attempt->has_user)
        attempt_leave(&attempts->pairs, attempt->pair);
}

void attempts_note_guess(struct attempts *attempts, const struct attempt *attempt, uint64_t now) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    struct authentication_settings limits = limits_of(attempts);
    if (attempt->has_user)
        count_pair(attempts, attempt, &limits, now);
}
