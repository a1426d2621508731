#include "transaction/proof.h"

#include "identity/authenticator.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

static const struct tls_facts *proof_certificate(const struct transaction *transaction) {
    return transaction->exchange->ends->tls;
}

struct proof *proof_begin(struct transaction *transaction, proof_set wanted,
                          struct slice authorization) {
    struct proof *proof = arena_zalloc(&transaction->arena, sizeof *proof);
    const struct settings *settings = transaction->settings;
    for (size_t i = 0; i < settings->authenticator_count; i++)
        if ((wanted >> i & 1) != 0 &&
            authenticator_takes(settings->authenticators[i], authorization,
                                proof_certificate(transaction)))
            proof->left |= (proof_set)1 << i;
    proof->authorization = authorization;
    proof->state = CHECK_REFUSED;
    return proof;
}

static void proof_end_check(struct proof *proof) {
    if (proof->checking)
        credentials_check_end(&proof->check);
    proof->checking = false;
}

void proof_end(struct proof *proof) {
    proof_end_check(proof);
    proof->left = 0;
    if (proof->authorization.length > 0)
        explicit_bzero((char *)proof->authorization.base, proof->authorization.length);
    proof->authorization = slice_make("", 0);
}

static void ask_next(struct transaction *transaction, struct proof *proof) {
    unsigned next = (unsigned)__builtin_ctzll(proof->left);
    proof->left &= proof->left - 1;
    proof->checking = true;
    proof->check = (struct credentials_check){
        .net = transaction->net,
        .authentication = transaction->host->authentication,
        .arena = &transaction->arena,
        .tls = proof_certificate(transaction),
        .more = proof->left != 0,
    };
    authenticator_check(transaction->settings->authenticators[next], &proof->check,
                        proof->authorization, request_client(transaction), &transaction->task);
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

static void proof_note(struct proof *proof) {
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
    const struct settings *settings = transaction->settings;
    if (strcmp(transaction->identity->method, "certificate") == 0)
        return; /* the field is for the origin */
    for (size_t i = 0; i < settings->authenticator_count; i++) {
        const struct authenticator_settings *section = &settings->authenticators[i]->settings;
        if (slice_equal(slice_from(section->name), transaction->identity->authenticator) &&
            section->forward_credentials)
            return;
    }
    http_head_remove(transaction->request.head, HTTP_AUTHORIZATION);
}

static void proof_succeed(struct transaction *transaction, struct proof *proof) {
    struct identity *identity = identity_reference(proof->check.identity);
    proof->state = CHECK_PROVEN;
    proof->answer = proof->check.answer;
    proof->left = 0;
    access_set_identity(transaction, &identity);
    if (access_credentials_field(transaction) == HTTP_AUTHORIZATION)
        hide_credentials(transaction);
}

bool proof_is_over(struct transaction *transaction, struct proof *proof) {
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
            proof_end(proof);
            return true;
        }
        ask_next(transaction, proof);
    }
}
