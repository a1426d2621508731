#include "transaction/access.h"

#include "client/identity.h"
#include "transaction/bumped.h"

void access_set_identity(struct transaction *transaction, struct identity **identityp) {
    transaction->identity = *identityp;
    *identityp = NULL;
    if (transaction->exchange->identity == NULL) /* for requests repeated in the background */
        transaction->exchange->identity = transaction->identity;
    struct class_user *user = arena_alloc(&transaction->arena, sizeof *user);
    *user = (struct class_user){
        .name = transaction->identity->name,
        .groups = transaction->identity->groups,
        .group_count = transaction->identity->group_count,
    };
    request_set_user(transaction, user);
}

void access_take_connection(struct transaction *transaction) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    if (facts == NULL || facts->identity == NULL || transaction->exchange->identity != NULL)
        return;
    struct identity *known = identity_reference(facts->identity);
    access_set_identity(transaction, &known);
}

struct slice access_rule_name(const struct transaction *transaction) {
    const struct access *access = transaction->access;
    if (access == NULL && bumped_has_page(transaction))
        return bumped_facts(transaction)->page_rule;
    return slice_from(access == NULL || access->rule == NULL ? "" : url_class_name(access->rule));
}

/* ---- the proof of the proxy --------------------------------------------------------------- */

static struct slice proof_of_proxy(const struct transaction *transaction) {
    return transaction->access != NULL ? transaction->access->answer : slice_make("", 0);
}

static bool is_for_reverse(const struct transaction *transaction) {
    return access_credentials_field(transaction) == HTTP_AUTHORIZATION;
}

/* In a 401 or 407 a token would be a challenge: the client would go on with it. */
struct slice access_answer_line(struct transaction *transaction, unsigned status) {
    struct slice answer = proof_of_proxy(transaction);
    bool reverse = is_for_reverse(transaction);
    if (answer.length == 0 || status == (reverse ? 401 : 407))
        return slice_make("", 0);
    return arena_concat(&transaction->arena,
                        reverse ? SLICE("WWW-Authenticate: ") : SLICE("Proxy-Authenticate: "),
                        answer, SLICE("\r\n"));
}

void access_answer_tunnel(const struct transaction *transaction, struct http_head *head) {
    struct slice answer = proof_of_proxy(transaction);
    if (answer.length > 0)
        http_head_add(head,
                      is_for_reverse(transaction) ? SLICE("WWW-Authenticate")
                                                  : SLICE("Proxy-Authenticate"),
                      answer);
}
