#include "access/state.h"

#include "access/destination.h"
#include "access/permit.h"
#include "client/identity.h"
#include "transaction/internal.h"
#include "transaction/proof.h"
#include "transaction/request_rules.h"

void access_state_begin(struct transaction *transaction) {
    struct access_state *access = arena_alloc(&transaction->arena, sizeof *access);
    *access = (struct access_state){.base.class = access_class_for(transaction->settings)};
    transaction->access = &access->base;
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
    const struct access_state *access = access_state(transaction);
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
    return &section->counts[transaction->host->index % ACCESS_COUNTERS * section->stride];
}

static void count_one(_Atomic uint64_t *count) {
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static void on_finding(void *arg, size_t at, enum access_finding finding) {
    struct transaction *transaction = arg;
    const struct access_settings *section = &accesses_of(transaction->settings)->list[at];
    if (finding != ACCESS_LOGS)
        return;
    count_one(&count_of(transaction, section)->logged);
    transaction->net->counters.access_logged++;
    struct access_state *access = access_state(transaction);
    if (access->base.logged == NULL)
        access->base.logged = section->url_class;
}

void access_note_url(struct transaction *transaction) {
    struct access_state *access = access_state(transaction);
    access->url = transaction->request.url_text;
    access->host = transaction->request.url.host;
    access->port = transaction->request.url.port;
}

/* It is part of each hit. */
static inline void begin_allowed(struct transaction *transaction,
                                 const struct access_settings *section) {
    const struct request *request = &transaction->request;
    struct access_state *access = arena_alloc(&transaction->arena, sizeof *access);
    *access = (struct access_state){
        .base = {.class = &access_by_name, .rule = section->url_class},
        .url = request->url_text,
        .host = request->url.host,
        .port = request->url.port,
    };
    transaction->access = &access->base;
    count_one(&count_of(transaction, section)->decided);
}

bool access_has_to_decide(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    if (!accesses_of(settings)->is_plain || transaction->exchange->is_connection ||
        transaction->exchange->identity != NULL)
        return true;
    const struct access_settings *section = access_allowing(settings, request_rules(transaction));
    if (section == NULL || transaction->request.rules_unsure)
        return true;
    begin_allowed(transaction, section);
    return false;
}

void access_note(struct transaction *transaction, struct access_question *question,
                 const struct access_decision *decision) {
    struct access *access = &access_state(transaction)->base;
    access->rule = decision->section != NULL ? decision->section->url_class : NULL;
    access_note_url(transaction);
    access->tunnel = decision->outcome == ACCESS_ALLOW && decision->section != NULL &&
                     decision->section->action == ACCESS_ACTION_TUNNEL;
    if (decision->section != NULL)
        count_one(&count_of(transaction, decision->section)->decided);
    if (accesses_of(transaction->settings)->logs_only) {
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
    struct access *access = &access_state(transaction)->base;
    bool tunnel = access->tunnel;
    access_note(transaction, question, decision);
    access->tunnel |= tunnel;
}

/* Does a CONNECT for another host promise that name? Of an address nobody knows whose it is, and at a
 * transparent listener the name is all that there is. */
static bool is_another_host(const struct transaction *transaction, struct slice name) {
    struct slice host = transaction->request.url.host;
    struct address address;
    return !access_state(transaction)->deferred && name.length > 0 &&
           !address_parse_ip(&address, host, 0) &&
           !slice_equal(url_class_host(name), url_class_host(host));
}

void access_note_name(struct transaction *transaction, struct access_question *question,
                      const struct access_decision *decision, struct slice name) {
    struct access_state *access = access_state(transaction);
    bool tunnel = access->base.tunnel;
    access_note(transaction, question, decision);
    access->base.tunnel = is_another_host(transaction, name) ? access->base.tunnel && tunnel
                                                             : access->base.tunnel || tunnel;
    if (tunnel && !access->base.tunnel)
        request_changed(transaction); /* services are for it again */
    access->name = name;
    access->settled = true;
}

void access_end(struct transaction *transaction) {
    const struct access_state *access = access_state(transaction);
    if (access == NULL)
        return;
    if (access->proof != NULL)
        access->proof->class->end(access->proof);
    access_destination_end(transaction);
}
