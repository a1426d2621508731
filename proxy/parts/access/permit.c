#include "access/permit.h"

#include "access/destination.h"
#include "access/refusal.h"
#include "access/state.h"
#include "match/regex.h"
#include "transaction/request_rules.h"
#include "transaction/route.h"

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
    const struct outgoing *outgoing = transaction->outgoing;
    subject->host = outgoing->url.host;
    subject->url = outgoing->url_text;
    subject->path = url_path(&outgoing->url);
    subject->scheme = outgoing->url.scheme;
    subject->port = outgoing->url.port;
    subject->head = &outgoing->head;
}

static const char *access_denial(struct transaction *transaction) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    access_ask(transaction, &subject, &question);
    access_take_outgoing(transaction, &subject);
    if (access_is_elsewhere(access_state(transaction), &transaction->outgoing->url)) {
        subject.destination_count = 0;
        subject.destination_pending = question.may_resolve = access_names_a_server(transaction);
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

static bool access_allows_name(struct transaction *transaction, struct slice sni) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    struct access_state *access = access_state(transaction);
    if (sni.length == 0 && (!access->deferred || access->settled))
        return true;
    access_ask(transaction, &subject, &question);
    if (sni.length > 0)
        access_take_name(transaction, &subject, sni);
    bool allowed = access_lets_through(transaction, &subject, &question, &decision);
    access_note_name(transaction, &question, &decision, sni);
    if (!allowed)
        access->base.refusal = access_refuse_name(
            transaction, decision.section, sni.length > 0 ? sni : transaction->request.url.host);
    return allowed;
}

/* Judges the request as it goes out now. `address`: where to. */
static bool permits_subject(struct transaction *transaction, const struct address *address,
                            struct slice name) {
    struct class_subject subject;
    struct access_question question;
    struct access_decision decision;
    access_ask(transaction, &subject, &question);
    if (transaction->outgoing != NULL)
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
    const struct access_state *access = access_state(transaction);
    struct address plain = *address;
    address_unmap(&plain);
    if (access->name.length > 0 && !permits_subject(transaction, &plain, access->name))
        return false;
    return (access->deferred && access->name.length > 0) ||
           permits_subject(transaction, &plain, slice_make("", 0));
}

const struct access_class access_by_name = {NULL, access_denial, access_allows_name};
const struct access_class access_by_address = {access_permits, access_denial, access_allows_name};
