#include "identity/attempts.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/text.h"
#include "client/identity.h"
#include "identity/digest_rows.h"

#include <locale.h>
#include <stdatomic.h>
#include <wctype.h>

/* While a user is attacked, each client has to wait that much longer. A known pair weighs as much as
 * this number of failures where entries have to make room: who makes up names, each once, does not
 * drive it out. */
enum { ATTACKED_WAIT = 10, KNOWN_WEIGHT = 2 };

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
    locale_t letters; /* which letters are one in lower case; 0: the machine lacks C.UTF-8 */
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
    attempts->letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
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
    if (attempts->letters != (locale_t)0)
        freelocale(attempts->letters);
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

static unsigned attempt_weight(const struct attempt_entry *entry, uint64_t now) {
    return entry->failures + entry->pending + (now < entry->known_until ? KNOWN_WEIGHT : 0);
}

/* Of two entries, is `a` of less use? */
static bool attempt_is_less(const struct attempt_entry *a, const struct attempt_entry *b,
                            uint64_t now) {
    unsigned first = attempt_weight(a, now), second = attempt_weight(b, now);
    return first != second ? first < second : a->last < b->last;
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
        if (spare->used && (!entry->used || attempt_is_less(entry, spare, now)))
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
    entry->wait_until =
        now + backoff_after(limit->wait, limit->wait_max, entry->failures - limit->free + 1);
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

/* A directory takes the spellings of a name that differ in case or in blanks for one user. Guesses
 * at them are guesses at one password. Returns how many characters the name has then. */
static size_t attempt_fold(const struct attempts *attempts, struct slice user,
                           uint32_t folded[IDENTITY_NAME_MAX]) {
    size_t count = 0, length;
    uint32_t letter;
    while (count < IDENTITY_NAME_MAX && user.length > 0 &&
           (length = text_decode(user, &letter)) > 0) {
        user = slice_make(user.base + length, user.length - length);
        if (letter >= 'A' && letter <= 'Z')
            letter += 'a' - 'A';
        else if (letter >= 0x80 && attempts->letters != (locale_t)0)
            letter = (uint32_t)towlower_l((wint_t)letter, attempts->letters);
        if (letter != ' ')
            folded[count++] = letter;
    }
    return count;
}

/* Failures of credentials without a user's name, which nobody guesses, count apart: they are none
 * of a password. */
static void attempt_name(const struct attempts *attempts, struct attempt *attempt,
                         struct slice client, struct slice user) {
    uint32_t folded[IDENTITY_NAME_MAX];
    *attempt = (struct attempt){.has_user = user.length > 0};
    const struct slice one[] = {attempt->has_user ? SLICE("client") : SLICE("tokens"), client};
    secret_digest(one, 2, attempt->client);
    if (!attempt->has_user)
        return;
    user = slice_make((const char *)folded, attempt_fold(attempts, user, folded) * sizeof *folded);
    const struct slice pair[] = {SLICE("pair"), client, user};
    const struct slice name[] = {SLICE("user"), user};
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

static void attempt_leave_client(struct attempts *attempts, struct attempt *attempt) {
    if (attempt->in_client)
        attempt_leave(&attempts->clients, attempt->client);
    attempt->in_client = false;
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
    attempt_name(attempts, attempt, client, user);
    bool known = pair_is_known(attempts, attempt, &limits, now);
    bool attacked = !known && is_attacked(attempts, attempt, &limits, now);
    const struct attempt_limit pair = limit_of_pair(&limits, attacked);
    const struct attempt_limit one = limit_of_client(&limits);
    /* The client's count comes first: while it has to wait, the names that it makes up take no
     * places of others. */
    uint64_t client_wait = attempt_enter(&attempts->clients, attempt->client, &one, now);
    attempt->in_client = client_wait == 0;
    *wait = client_wait;
    if (client_wait > 0 && attempt->has_user && !known)
        return ATTEMPT_WAIT;
    if (attempt->has_user)
        *wait = attempt_enter(&attempts->pairs, attempt->pair, &pair, now);
    attempt->begun = !attempt->has_user || *wait == 0;
    if (!attempt->begun) {
        attempt_leave_client(attempts, attempt);
        return ATTEMPT_WAIT;
    }
    *wait = client_wait;
    return client_wait == 0 ? ATTEMPT_MAY : ATTEMPT_CLIENT_WAIT;
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
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    if (user.length == 0 ||
        now >= atomic_load_explicit(&attempts->waits_until, memory_order_relaxed))
        return ATTEMPT_MAY;
    struct authentication_settings limits = limits_of(attempts);
    attempt_name(attempts, &attempt, client, user);
    uint64_t until =
        attempt_waits_until(&attempts->pairs, attempt.pair, limits.attempts_forget, now);
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
    entry->known_until = now + keep + limits.attempts_forget;
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
    bool in_client = attempt->in_client;
    attempts_drop(attempts, attempt);
    struct authentication_settings limits = limits_of(attempts);
    const struct attempt_limit one = limit_of_client(&limits);
    if (in_client) /* a client that waits already does not wait longer */
        attempt_count(attempts, &attempts->clients, attempt->client, &one, now);
    if (attempt->has_user)
        count_pair(attempts, attempt, &limits, now);
}

void attempts_drop(struct attempts *attempts, struct attempt *attempt) {
    CHECK_OBJ(attempts, ATTEMPTS_MAGIC);
    if (!attempt->begun)
        return;
    attempt->begun = false;
    attempt_leave_client(attempts, attempt);
    if (attempt->has_user)
        attempt_leave(&attempts->pairs, attempt->pair);
}
