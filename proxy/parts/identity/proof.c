#include "identity/proof.h"

#include "access/settings.h"
#include "base/assert.h"
#include "identity/settings.h"
#include "transaction/access.h"
#include "transaction/fail.h"
#include "transaction/transaction.h"

struct identity_proof {
    struct proof base;
    unsigned magic;
#define IDENTITY_PROOF_MAGIC 0x1d9400f5u
    proof_set left; /* that have not been asked */
    bool checking;  /* `check` is under way, or over and not looked at */
    bool refused;   /* there were credentials, and they were not good */
    struct slice authorization;
    /* The answer so far: of several that did not prove the user, the one that says most. REFUSED as
     * long as nothing has been asked. */
    enum check_state state;
    struct slice challenge; /* CHECK_CHALLENGE */
    unsigned retry_after;   /* CHECK_SLOWED: seconds */
    const char *reason;     /* a static sentence; NULL: none */
    struct credentials_check check;
};

static struct identity_proof *identity_proof(struct proof *base) {
    struct identity_proof *proof = CONTAINER_OF(base, struct identity_proof, base);
    CHECK_OBJ(proof, IDENTITY_PROOF_MAGIC);
    return proof;
}

static const struct tls_facts *proof_certificate(const struct transaction *transaction) {
    return transaction->exchange->ends->tls;
}

static bool proof_begin(struct transaction *transaction, proof_set wanted, struct proof **base) {
    const struct identity_settings *mine = identity_settings(transaction->settings);
    struct slice authorization = slice_make("", 0);
    if (authorization_find(transaction->request.head, access_credentials_field(transaction),
                           &authorization) == AUTHORIZATION_BAD)
        return false;
    request_own(transaction);
    authorization = arena_slice(&transaction->arena, authorization);
    struct identity_proof *proof = arena_zalloc(&transaction->arena, sizeof *proof);
    proof->magic = IDENTITY_PROOF_MAGIC;
    proof->base.class = &identity_proofs;
    for (size_t i = 0; i < mine->authenticator_count; i++)
        if ((wanted >> i & 1) != 0 && authenticator_takes(mine->authenticators[i], authorization,
                                                          proof_certificate(transaction)))
            proof->left |= (proof_set)1 << i;
    proof->authorization = authorization;
    proof->state = CHECK_REFUSED;
    *base = &proof->base;
    return true;
}

static void proof_end_check(struct identity_proof *proof) {
    if (proof->checking)
        credentials_check_end(&proof->check);
    proof->checking = false;
}

static void proof_end(struct proof *base) {
    struct identity_proof *proof = identity_proof(base);
    proof_end_check(proof);
    proof->left = 0;
    if (proof->authorization.length > 0)
        explicit_bzero((char *)proof->authorization.base, proof->authorization.length);
    proof->authorization = slice_make("", 0);
}

static void ask_next(struct transaction *transaction, struct identity_proof *proof) {
    unsigned next = (unsigned)__builtin_ctzll(proof->left);
    proof->left &= proof->left - 1;
    proof->checking = true;
    proof->check = (struct credentials_check){
        .net = transaction->net,
        .authentication = transaction->host->parts[PART_IDENTITY],
        .arena = &transaction->arena,
        .tls = proof_certificate(transaction),
        .more = proof->left != 0,
    };
    authenticator_check(identity_settings(transaction->settings)->authenticators[next],
                        &proof->check, proof->authorization, request_client(transaction),
                        &transaction->task);
}

/* Of two answers that prove nobody, the one that a client can do something about: to wait, to send
 * another token, to try again later. */
static unsigned proof_weight(enum check_state state) {
    switch (state) {
    case CHECK_CHALLENGE: return 3;
    case CHECK_SLOWED: return 2;
    case CHECK_UNABLE: return 1;
    default: return 0;
    }
}

static void proof_note(struct identity_proof *proof) {
    const struct credentials_check *check = &proof->check;
    proof->refused = true;
    if (proof_weight(check->state) < proof_weight(proof->state))
        return;
    proof->state = check->state;
    proof->challenge = check->challenge;
    proof->retry_after = check->retry_after;
    proof->reason = check->reason;
}

/* Authorization was for us, so the origin need not see the password. */
static void hide_credentials(struct transaction *transaction) {
    const struct identity_settings *mine = identity_settings(transaction->settings);
    if (strcmp(transaction->identity->method, "certificate") == 0)
        return; /* the field is for the origin */
    for (size_t i = 0; i < mine->authenticator_count; i++) {
        const struct authenticator_settings *section = &mine->authenticators[i]->settings;
        if (slice_equal(slice_from(section->name), transaction->identity->authenticator) &&
            section->forward_credentials)
            return;
    }
    http_head_remove(transaction->request.head, HTTP_AUTHORIZATION);
}

static void proof_succeed(struct transaction *transaction, struct identity_proof *proof) {
    struct identity *identity = identity_reference(proof->check.identity);
    proof->state = CHECK_PROVEN;
    proof->base.answer = proof->check.answer;
    proof->left = 0;
    access_set_identity(transaction, &identity);
    if (access_credentials_field(transaction) == HTTP_AUTHORIZATION)
        hide_credentials(transaction);
}

static bool proof_is_over(struct transaction *transaction, struct proof *base) {
    struct identity_proof *proof = identity_proof(base);
    for (;;) {
        if (proof->checking) {
            if (proof->check.state == CHECK_WAITING)
                return false;
            if (proof->check.state == CHECK_PROVEN)
                proof_succeed(transaction, proof);
            else
                proof_note(proof);
            proof_end_check(proof);
        }
        if (proof->left == 0) {
            proof_end(base);
            return true;
        }
        ask_next(transaction, proof);
    }
}

/* ---- what the client is told ---------------------------------------------------------------- */

static size_t proof_challenges(struct transaction *transaction,
                               const struct access_settings *section, bool refused,
                               struct slice challenges[AUTHENTICATOR_CHALLENGES]) {
    const struct identity_settings *mine = identity_settings(transaction->settings);
    struct authenticator **wanted = arena_alloc(
        &transaction->arena, (section->authenticator_count + 1) * sizeof(struct authenticator *));
    for (size_t i = 0; i < section->authenticator_count; i++)
        wanted[i] = mine->authenticators[section->authenticators[i]];
    return authenticators_challenge(wanted, section->authenticator_count,
                                    slice_from(section->realm), refused, &transaction->arena,
                                    challenges);
}

static enum step proof_ask(struct transaction *transaction, const struct proof *base,
                           const struct access_settings *section) {
    const struct identity_proof *proof = (const void *)base;
    struct slice challenges[AUTHENTICATOR_CHALLENGES];
    const bool reverse = access_credentials_field(transaction) == HTTP_AUTHORIZATION;
    const bool refused = proof != NULL && proof->refused;
    size_t count = 1;
    if (refused && proof->state == CHECK_SLOWED)
        return fail_later(transaction, 429,
                          "too many credentials from this client or of this user were wrong",
                          proof->retry_after);
    if (refused && proof->state == CHECK_UNABLE)
        return fail_with(transaction, 503,
                         proof->reason != NULL ? proof->reason
                                               : "nobody can check the credentials now");
    if (refused && proof->state == CHECK_CHALLENGE)
        challenges[0] = proof->challenge;
    else
        count = proof_challenges(transaction, section, refused, challenges);
    if (count == 0)
        return fail_denied(transaction, "a certificate that the client shows when it connects has "
                                        "to prove who it is");
    return fail_challenge(transaction, reverse ? 401 : 407,
                          refused ? "the credentials are not those of a user who may do this"
                                  : "a user name and its credentials are needed",
                          challenges, count);
}

const struct proof_class identity_proofs = {
    .begin = proof_begin,
    .is_over = proof_is_over,
    .ask = proof_ask,
    .end = proof_end,
};
