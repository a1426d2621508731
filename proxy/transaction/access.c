#include "transaction/access.h"

#include "transaction/access_destination.h"
#include "transaction/inside.h"
#include "transaction/internal.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

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

bool access_is_tunnel(const struct transaction *transaction) {
    return transaction->access != NULL && transaction->access->tunnel;
}

struct slice access_rule_name(const struct transaction *transaction) {
    const struct access *access = transaction->access;
    if (access == NULL && inside_has_page(transaction))
        return inside_facts(transaction)->page_rule;
    return access == NULL || access->section == NULL
               ? slice_make("", 0)
               : slice_from(url_class_name(access->section->url_class));
}

const struct access_refusal *access_refusal_to_show(const struct transaction *transaction) {
    const struct access *access = transaction->access;
    return access != NULL && access->refusal.status != 0 ? &access->refusal : NULL;
}

bool access_names_a_server(const struct transaction *transaction) {
    return transaction->exchange->listen->mode != LISTEN_REVERSE && !internal_is_asked(transaction);
}

/* Inside an intercepted connection, credentials are
 * for the origin. */
bool access_may_challenge(const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    return !exchange->background && !exchange->of_service && !exchange_is_intercepted(exchange) &&
           exchange->ends->redirection == NULL && exchange->listen->mode != LISTEN_TRANSPARENT &&
           transaction->step == STEP_ACCESS;
}

void access_ask(struct transaction *transaction, struct class_subject *subject,
                struct access_question *question) {
    const struct access *access = transaction->access;
    request_subject(transaction, subject);
    subject->user_pending = transaction->identity == NULL;
    subject->destination_pending =
        subject->destination_count == 0 && access_names_a_server(transaction);
    *question = (struct access_question){
        .settings = transaction->settings,
        .subject = subject,
        .bits = request_rules(transaction),
        .unsure = transaction->request.rules_unsure,
        .may_ask = access_may_challenge(transaction),
        .may_resolve = !access->resolved,
    };
    if (transaction->identity != NULL)
        question->authenticator = transaction->identity->authenticator;
}

/* ---- what was decided --------------------------------------------------------------------- */

static struct access_count *count_of(const struct transaction *transaction,
                                     const struct access_settings *section) {
    const struct settings *settings = transaction->settings;
    size_t place = transaction->host->index % ACCESS_COUNTERS * settings->access_count_stride;
    return &settings->access_counts[place + section->at];
}

static void count_one(_Atomic uint64_t *count) {
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static void on_finding(void *arg, size_t at, enum access_finding finding) {
    struct transaction *transaction = arg;
    const struct access_settings *section = &transaction->settings->accesses[at];
    if (finding != ACCESS_LOGS)
        return;
    count_one(&count_of(transaction, section)->logged);
    transaction->net->counters.access_logged++;
    if (transaction->access->logged == NULL)
        transaction->access->logged = section;
}

void access_note_url(struct transaction *transaction) {
    struct access *access = transaction->access;
    access->url = transaction->request.url_text;
    access->host = transaction->request.url.host;
    access->port = transaction->request.url.port;
}

void access_note_allowed(struct transaction *transaction) {
    access_note_url(transaction);
    count_one(&count_of(transaction, transaction->access->section)->decided);
}

void access_note(struct transaction *transaction, struct access_question *question,
                 const struct access_decision *decision) {
    struct access *access = transaction->access;
    access->section = decision->section;
    access_note_url(transaction);
    access->tunnel = decision->outcome == ACCESS_ALLOW && decision->section != NULL &&
                     decision->section->action == ACCESS_ACTION_TUNNEL;
    if (decision->section != NULL)
        count_one(&count_of(transaction, decision->section)->decided);
    if (transaction->settings->access_logs_only) {
        struct access_decision again;
        question->see = on_finding;
        question->see_arg = transaction;
        access_decide(question, &again);
    }
    if (access->tunnel)
        request_changed(transaction); /* services are no more for it */
}

void access_note_again(struct transaction *transaction, struct access_question *question,
                       const struct access_decision *decision) {
    bool tunnel = transaction->access->tunnel;
    access_note(transaction, question, decision);
    transaction->access->tunnel |= tunnel;
}

/* Does a CONNECT for another host promise that name? Of an address nobody knows whose it is, and at a
 * transparent listener the name is all that there is. */
static bool is_another_host(const struct transaction *transaction, struct slice name) {
    struct slice host = transaction->request.url.host;
    struct address address;
    return !transaction->access->deferred && name.length > 0 &&
           !address_parse_ip(&address, host, 0) &&
           !slice_equal(url_class_host(name), url_class_host(host));
}

void access_note_name(struct transaction *transaction, struct access_question *question,
                      const struct access_decision *decision, struct slice name) {
    struct access *access = transaction->access;
    bool tunnel = access->tunnel;
    access_note(transaction, question, decision);
    access->tunnel =
        is_another_host(transaction, name) ? access->tunnel && tunnel : access->tunnel || tunnel;
    if (tunnel && !access->tunnel)
        request_changed(transaction); /* services are for it again */
    access->name = name;
    access->settled = true;
}

void access_end(struct transaction *transaction) {
    if (transaction->access->proof != NULL)
        proof_end(transaction->access->proof);
    access_destination_end(transaction);
}

void access_release(struct transaction *transaction) {
    identity_release(&transaction->identity);
}
