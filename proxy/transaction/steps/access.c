#include "transaction/steps/access.h"

#include "client/redirection.h"
#include "identity/authenticator.h"
#include "match/regex.h"
#include "transaction/fail.h"
#include "transaction/inside.h"
#include "transaction/internal.h"
#include "transaction/request_rules.h"
#include "transaction/route.h"
#include "transaction/steps/admit.h"
#include "transaction/steps/purge.h"
#include "transaction/steps/reqmod_postcache.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

/* ACCESS and RECHECK: who may do what. */

static const char no_user[] = "this is for known users only, and a client on this connection can "
                              "not be asked who it is";

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
    return access == NULL || access->section == NULL
               ? slice_make("", 0)
               : slice_from(url_class_name(access->section->url_class));
}

/* ---- the question ------------------------------------------------------------------------- */

/* Clients of a reverse listener name no server of their own. */
static bool names_a_server(const struct transaction *transaction) {
    return transaction->exchange->listen->mode != LISTEN_REVERSE && !internal_is_asked(transaction);
}

/* Can the client be answered with 407 or 401? Inside an intercepted connection, credentials are
 * for the origin. */
static bool may_be_asked(const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    return !exchange->background && !exchange_is_intercepted(exchange) &&
           exchange->ends->redirection == NULL && exchange->listen->mode != LISTEN_TRANSPARENT &&
           transaction->step == STEP_ACCESS;
}

/* The subject belongs to the caller and outlives the question. */
static void access_ask(struct transaction *transaction, struct class_subject *subject,
                       struct access_question *question) {
    const struct access *access = transaction->access;
    request_subject(transaction, subject);
    subject->user_pending = transaction->identity == NULL;
    subject->destination_pending = subject->destination_count == 0 && names_a_server(transaction);
    *question = (struct access_question){
        .settings = transaction->settings,
        .subject = subject,
        .bits = request_rules(transaction),
        .unsure = transaction->request.rules_unsure,
        .may_ask = may_be_asked(transaction),
        .may_resolve = !access->resolved,
    };
    if (transaction->identity != NULL)
        question->authenticator = transaction->identity->authenticator;
}

/* ---- who the client is -------------------------------------------------------------------- */

/* The user of a CONNECT is that of the requests inside. */
static struct identity *known_identity(const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    return exchange->identity == NULL && exchange_is_intercepted(exchange)
               ? exchange->ends->intercepted->facts.identity
               : exchange->identity;
}

/* The authenticators of all sections that could ask for this request; or all, where only rules of
 * other kinds ask for the user. */
static proof_set authenticators_wanted(const struct access_question *question) {
    const struct settings *settings = question->settings;
    proof_set wanted = 0;
    for (const struct access_settings *section = access_find_asking(question, 0); section != NULL;
         section = access_find_asking(question, (size_t)(section - settings->accesses) + 1))
        for (size_t i = 0; i < section->authenticator_count; i++)
            for (size_t k = 0; k < settings->authenticator_count; k++)
                if (settings->authenticators[k] == section->authenticators[i])
                    wanted |= (proof_set)1 << k;
    bool others = (rules_ask(settings->rules) & (CLASS_ASKS_USER | CLASS_ASKS_GROUP)) != 0;
    return wanted == 0 && others ? ~(proof_set)0 : wanted;
}

/* False: an error page is there. */
static bool begin_proof(struct transaction *transaction) {
    struct access *access = transaction->access;
    struct class_subject subject;
    struct access_question question;
    struct slice value = slice_make("", 0);
    if (!may_be_asked(transaction) || transaction->settings->authenticator_count == 0)
        return true;
    access_ask(transaction, &subject, &question);
    proof_set wanted = authenticators_wanted(&question);
    if (wanted == 0)
        return true;
    enum authorization_found found =
        authorization_find(transaction->request.head, proof_field(transaction), &value);
    if (found == AUTHORIZATION_BAD)
        return false;
    request_own(transaction);
    access->proof = proof_begin(transaction, wanted, arena_slice(&transaction->arena, value));
    return true;
}

/* ---- where the request would go ----------------------------------------------------------- */

/* It is large, and few requests need one. */
struct access_search {
    struct transaction *transaction;
    struct slice host;
    struct resolver_query query;
};

static void access_on_resolved(struct resolver_query *query) {
    struct access_search *search = CONTAINER_OF(query, struct access_search, query);
    search->transaction->access->resolved = true;
    loop_defer(search->transaction->net->loop, &search->transaction->task);
}

static void note_destinations(struct transaction *transaction) {
    const struct resolution *found = &transaction->access->search->query.result;
    struct address *list = arena_alloc(&transaction->arena, (found->count + 1) * sizeof *list);
    for (unsigned i = 0; i < found->count; i++) {
        list[i] = found->addresses[i];
        address_unmap(&list[i]);
    }
    request_set_destinations(transaction, list, found->count);
}

/* True: the addresses are known at once. */
static bool access_resolve(struct transaction *transaction) {
    struct access *access = transaction->access;
    request_own(transaction);
    struct access_search *search = arena_alloc(&transaction->arena, sizeof *search);
    search->transaction = transaction;
    search->host = arena_slice(&transaction->arena, transaction->request.url.host);
    resolver_query_init(&search->query);
    search->query.client = request_client(transaction);
    access->search = search;
    access->resolving = true;
    access->resolved = resolver_lookup(transaction->net->resolver, search->host, &search->query,
                                       access_on_resolved);
    return access->resolved;
}

/* False: wait. */
static bool resolving_is_over(struct transaction *transaction) {
    struct access *access = transaction->access;
    if (!access->resolving)
        return true;
    if (!access->resolved)
        return false;
    access->resolving = false;
    note_destinations(transaction);
    return true;
}

/* A client of a transparent listener has chosen the address itself. */
static void note_redirection(struct transaction *transaction) {
    const struct redirection *redirection = transaction->exchange->ends->redirection;
    if (redirection == NULL)
        return;
    struct address *only = arena_alloc(&transaction->arena, sizeof *only);
    *only = redirection->destination;
    address_unmap(only);
    request_set_destinations(transaction, only, 1);
    transaction->access->resolved = true;
}

/* ---- what happens ------------------------------------------------------------------------- */

static struct access_count *count_of(const struct transaction *transaction,
                                     const struct access_settings *section) {
    const struct settings *settings = transaction->settings;
    size_t place = transaction->host->index % ACCESS_COUNTERS * settings->access_count_stride;
    return &settings->access_counts[place + (size_t)(section - settings->accesses)];
}

static void count_one(_Atomic uint64_t *count) {
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

struct access_log_only {
    struct transaction *transaction;
};

static void on_finding(void *arg, size_t at, enum access_finding finding) {
    struct transaction *transaction = ((struct access_log_only *)arg)->transaction;
    const struct access_settings *section = &transaction->settings->accesses[at];
    if (finding != ACCESS_LOGS)
        return;
    count_one(&count_of(transaction, section)->logged);
    transaction->net->counters.access_logged++;
    if (transaction->access->logged == NULL)
        transaction->access->logged = section;
}

static void note_url(struct transaction *transaction) {
    struct access *access = transaction->access;
    access->url = transaction->request.url_text;
    access->host = transaction->request.url.host;
    access->port = transaction->request.url.port;
}

/* Counts the section that decided, and what those with log_only would have decided. */
static void access_note(struct transaction *transaction, struct access_question *question,
                        const struct access_decision *decision) {
    struct access *access = transaction->access;
    access->section = decision->section;
    note_url(transaction);
    access->tunnel = decision->outcome == ACCESS_ALLOW && decision->section != NULL &&
                     decision->section->action == ACCESS_ACTION_TUNNEL;
    if (decision->section != NULL)
        count_one(&count_of(transaction, decision->section)->decided);
    if (transaction->settings->access_logs_only) {
        struct access_log_only log = {transaction};
        struct access_decision again;
        question->see = on_finding;
        question->see_arg = &log;
        access_decide(question, &again);
    }
    if (access->tunnel)
        request_changed(transaction); /* services are no more for it */
}

static enum step access_deny(struct transaction *transaction,
                             const struct access_decision *decision) {
    const struct access_settings *section = decision->section;
    const struct access_search *search = transaction->access->search;
    if (search != NULL && search->query.result.count == 0 &&
        transaction->settings->access_asks_destination)
        return fail_with(transaction, 502,
                         "the name of the host can't be resolved, and the access rules ask for its "
                         "address");
    if (decision->unsure)
        return fail_denied(transaction, "an expression of the access rules needs too much work for "
                                        "this URL");
    if (section == NULL)
        return fail_denied(transaction, "no access rule of this proxy allows this request");
    if (section->action == ACCESS_ACTION_AUTHENTICATE)
        return fail_denied(transaction, no_user);
    if (section->action == ACCESS_ACTION_REDIRECT)
        return fail_denied(transaction, "the access rules of this proxy redirect this request, "
                                        "which a client can't follow here");
    transaction->net->counters.client_denied++;
    enum step next =
        fail_page(transaction, section->status,
                  "the access rules of this proxy do not allow this request", section->page);
    outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

static enum step ask_for_credentials(struct transaction *transaction,
                                     const struct access_settings *section) {
    const struct proof *proof = transaction->access->proof;
    struct slice challenges[AUTHENTICATOR_CHALLENGES];
    bool reverse = transaction->exchange->listen->mode == LISTEN_REVERSE;
    size_t count = 1;
    transaction->net->counters.access_challenged++;
    if (proof != NULL && proof->refused && proof->state == CHECK_SLOWED)
        return fail_later(transaction, 429,
                          "too many credentials from this client or of this user were wrong",
                          proof->retry_after);
    if (proof != NULL && proof->refused && proof->state == CHECK_UNABLE)
        return fail_with(transaction, 503,
                         proof->reason != NULL ? proof->reason
                                               : "nobody can check the credentials now");
    if (proof != NULL && proof->refused && proof->state == CHECK_CHALLENGE)
        challenges[0] = proof->challenge;
    else
        count = authenticators_challenge(
            section->authenticators, section->authenticator_count, slice_from(section->realm),
            proof != NULL && proof->refused, &transaction->arena, challenges);
    if (count == 0)
        return fail_denied(transaction, "a certificate that the client shows when it connects has "
                                        "to prove who it is");
    return fail_challenge(transaction, reverse ? 401 : 407,
                          proof != NULL && proof->refused
                              ? "the credentials are not those of a user who may do this"
                              : "a user name and its credentials are needed",
                          challenges, count);
}

static enum step access_redirect(struct transaction *transaction,
                                 const struct access_decision *decision) {
    const struct access_settings *section = decision->section;
    if (transaction->request.kind == REQUEST_CONNECT)
        return access_deny(transaction, decision);
    struct slice to = text_template_write(section->to_template, transaction_variable, transaction,
                                          TEXT_URL, &transaction->arena);
    if (slice_equal(to, transaction->request.url_text))
        return fail_with(transaction, 508,
                         "an access rule of this proxy redirects this URL to itself");
    request_own(transaction);
    transaction->net->counters.access_redirected++;
    struct http_head *head = delivery_make_page(transaction, RESULT_DENIED, section->status,
                                                SLICE("<!DOCTYPE html>\n<title>Elsewhere</title>\n"
                                                      "<p>The answer is elsewhere.</p>\n"));
    http_head_add(head, SLICE("Location"), to);
    return STEP_DELIVER;
}

static enum step access_decide_now(struct transaction *transaction) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    access_ask(transaction, &subject, &question);
    access_decide(&question, &decision);
    bool for_others = transaction->settings->others_ask_destination && question.may_resolve &&
                      subject.destination_pending;
    if (decision.outcome == ACCESS_RESOLVE || for_others) {
        if (!access_resolve(transaction))
            return STEP_WAIT;
        resolving_is_over(transaction);
        return access_decide_now(transaction); /* which can't ask for the address again */
    }
    access_note(transaction, &question, &decision);
    switch (decision.outcome) {
    case ACCESS_ASK: return ask_for_credentials(transaction, decision.section);
    case ACCESS_REDIRECT: return access_redirect(transaction, &decision);
    case ACCESS_DENY: return access_deny(transaction, &decision);
    default: break;
    }
    if (purge_is_meant(transaction->request.head) &&
        !purge_is_allowed(transaction->request.head, decision.section))
        return purge_refuse(transaction);
    return admit_next(transaction, STEP_ACCESS);
}

static enum step access_begin(struct transaction *transaction) {
    struct access *access = arena_zalloc(&transaction->arena, sizeof *access);
    struct identity *known = known_identity(transaction);
    transaction->access = access;
    note_redirection(transaction);
    if (known != NULL) {
        identity_reference(known);
        access_set_identity(transaction, &known);
    } else if (!begin_proof(transaction)) {
        return fail_with(transaction, 400,
                         "the credentials are in several fields, are empty, or are too long");
    }
    return STEP_ACCESS;
}

/* The usual case, at the cost of little more than a look: what the request says is enough, and the
 * first section that matches allows it. False: all else. */
static bool access_allows_at_once(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    const uint64_t *bits = request_rules(transaction);
    size_t at = settings_next_rule(settings, RULE_ACCESS, bits, 0);
    if (at == settings->access_count || settings->accesses[at].action != ACCESS_ACTION_ALLOW ||
        transaction->request.rules_unsure || known_identity(transaction) != NULL)
        return false;
    struct access *access = arena_alloc(&transaction->arena, sizeof *access);
    *access = (struct access){.section = &settings->accesses[at]};
    transaction->access = access;
    note_url(transaction);
    count_one(&count_of(transaction, access->section)->decided);
    return true;
}

enum step step_access(struct transaction *transaction) {
    if (transaction->settings->access_is_plain && transaction->access == NULL &&
        !transaction->exchange->is_connection && access_allows_at_once(transaction))
        return admit_next(transaction, STEP_ACCESS);
    if (transaction->access == NULL && access_begin(transaction) != STEP_ACCESS)
        return STEP_DELIVER;
    struct access *access = transaction->access;
    if (access->proof != NULL && !proof_is_over(transaction, access->proof))
        return STEP_WAIT;
    if (!resolving_is_over(transaction))
        return STEP_WAIT;
    if (transaction->exchange->is_connection && transaction->settings->access_names_servers) {
        access->deferred = true;
        note_url(transaction);
        return admit_next(transaction, STEP_ACCESS);
    }
    return access_decide_now(transaction);
}

/* ---- again -------------------------------------------------------------------------------- */

enum step access_recheck(struct transaction *transaction) {
    const struct access *access = transaction->access;
    if (!transaction->settings->any_access)
        return STEP_LOOKUP;
    if (access != NULL && transaction->request.kind == REQUEST_CONNECT)
        return STEP_LOOKUP; /* services can't change where it goes */
    bool changed = access == NULL || !slice_equal(access->url, transaction->request.url_text) ||
                   (transaction->reqmod != NULL && transaction->reqmod->chain.modified);
    return changed ? STEP_RECHECK : STEP_LOOKUP;
}

static bool is_elsewhere(const struct access *access, const struct url *url) {
    return !slice_equal(access->host, url->host) || access->port != url->port;
}

/* The addresses are those of the host that the client has named. */
static void forget_destinations(struct transaction *transaction) {
    struct access *access = transaction->access;
    if (!is_elsewhere(access, &transaction->request.url))
        return;
    if (access->search != NULL)
        resolver_cancel(&access->search->query);
    access->search = NULL;
    access->resolved = access->resolving = false;
    request_set_destinations(transaction, NULL, 0);
}

enum step step_recheck(struct transaction *transaction) {
    struct access *access = transaction->access;
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    if (access == NULL)
        return fail_denied(transaction, "no access rule has decided about this request");
    if (!access->rechecking)
        forget_destinations(transaction);
    access->rechecking = true;
    if (!resolving_is_over(transaction))
        return STEP_WAIT;
    access_ask(transaction, &subject, &question);
    access_decide(&question, &decision);
    if (decision.outcome == ACCESS_RESOLVE) {
        if (!access_resolve(transaction))
            return STEP_WAIT;
        resolving_is_over(transaction);
        access_ask(transaction, &subject, &question);
        access_decide(&question, &decision);
    }
    bool tunnel = access->tunnel;
    access_note(transaction, &question, &decision);
    access->tunnel |= tunnel;
    return decision.outcome == ACCESS_ALLOW ? STEP_LOOKUP : access_deny(transaction, &decision);
}

/* Decides about another request than the client's. Where its address is not known, that of the
 * connection is judged when it is made. A parent proxy makes the connection itself. */
static bool access_lets_through(struct transaction *transaction, struct class_subject *subject,
                                struct access_question *question,
                                struct access_decision *decision) {
    regex_take_gave_up();
    question->bits = rules_find(transaction->settings->rules, subject, &transaction->arena);
    question->unsure = regex_take_gave_up();
    access_decide(question, decision);
    if (decision->outcome == ACCESS_RESOLVE)
        return route_parent(transaction) == NULL;
    return decision->outcome == ACCESS_ALLOW;
}

/* Makes the subject the request that services behind the cache have made. */
static void access_take_outgoing(struct transaction *transaction, struct class_subject *subject) {
    const struct reqmod_postcache *outgoing = transaction->reqmod_postcache;
    subject->host = outgoing->url.host;
    subject->url = outgoing->url_text;
    subject->path = url_path(&outgoing->url);
    subject->scheme = outgoing->url.scheme;
    subject->port = outgoing->url.port;
    subject->head = &outgoing->head;
}

const char *access_denial(struct transaction *transaction) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    if (transaction->access == NULL)
        return NULL;
    access_ask(transaction, &subject, &question);
    access_take_outgoing(transaction, &subject);
    if (is_elsewhere(transaction->access, &transaction->reqmod_postcache->url)) {
        subject.destination_count = 0;
        subject.destination_pending = question.may_resolve = names_a_server(transaction);
    }
    return access_lets_through(transaction, &subject, &question, &decision)
               ? NULL
               : "an adaptation service changed the URL to one that the access rules deny";
}

/* Makes the subject a connection to the server of that name, as if the CONNECT had named it. */
static void access_take_name(struct transaction *transaction, struct class_subject *subject,
                             struct slice sni) {
    subject->sni = sni;
    subject->host = sni;
    subject->url = request_write_authority(transaction, sni, subject->port);
}

bool access_allows_name(struct transaction *transaction, struct slice sni) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    struct access *access = transaction->access;
    if (access == NULL || (sni.length == 0 && (!access->deferred || access->settled)))
        return true;
    access_ask(transaction, &subject, &question);
    if (sni.length > 0)
        access_take_name(transaction, &subject, sni);
    bool tunnel = access->tunnel,
         allowed = access_lets_through(transaction, &subject, &question, &decision);
    access_note(transaction, &question, &decision);
    access->tunnel |= tunnel;
    access->name = sni;
    access->settled = true;
    return allowed;
}

/* Judges the request as it goes out now. `address`: where to. */
static bool permits_subject(struct transaction *transaction, const struct address *address,
                            struct slice name) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    access_ask(transaction, &subject, &question);
    if (transaction->reqmod_postcache != NULL)
        access_take_outgoing(transaction, &subject);
    if (name.length > 0)
        access_take_name(transaction, &subject, name);
    subject.destinations = address;
    subject.destination_count = 1;
    subject.destination_pending = false;
    return access_lets_through(transaction, &subject, &question, &decision);
}

/* A connection is for the host of its CONNECT and for the name in its TLS; at a transparent
 * listener, whose clients name no host, for the name alone. */
static bool access_permits(void *arg, const struct address *address) {
    struct transaction *transaction;
    CAST_OBJ(transaction, arg, TRANSACTION_MAGIC);
    if (transaction->exchange == NULL)
        return false; /* nobody is there any more whose request it would be */
    const struct access *access = transaction->access;
    struct address plain = *address;
    address_unmap(&plain);
    if (access->name.length > 0 && !permits_subject(transaction, &plain, access->name))
        return false;
    return (access->deferred && access->name.length > 0) ||
           permits_subject(transaction, &plain, slice_make("", 0));
}

dial_permit_fn *access_permit(struct transaction *transaction) {
    return transaction->access != NULL && transaction->settings->access_asks_destination
               ? access_permits
               : NULL;
}

void access_end(struct transaction *transaction) {
    struct access *access = transaction->access;
    if (access->proof != NULL)
        proof_end(access->proof);
    if (access->search != NULL)
        resolver_cancel(&access->search->query);
}

void access_release(struct transaction *transaction) {
    identity_release(&transaction->identity);
}
