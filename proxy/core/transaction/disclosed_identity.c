#include "transaction/disclosed_identity.h"

#include "cache/vary.h"
#include "http/head_difference.h"
#include "tls/facts.h"
#include "transaction/access.h"
#include "transaction/head_changes.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

static bool somebody_is_known(struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    const struct tls_facts *facts = exchange != NULL ? exchange->ends->tls : NULL;
    return transaction->request.user != NULL || (facts != NULL && facts->subject[0] != '\0');
}

static bool rule_tells(const struct transaction *transaction) {
    return transaction->settings->access_asks_who && access_rule_name(transaction).length > 0;
}

static void note_at_client(struct transaction *transaction, struct slice names, bool by_class) {
    struct disclosed_identity *disclosed_identity = &transaction->disclosed_identity;
    disclosed_identity->at_client =
        arena_concat(&transaction->arena, disclosed_identity->at_client, names);
    if (by_class)
        disclosed_identity->by_class =
            arena_concat(&transaction->arena, disclosed_identity->by_class, names);
}

bool disclosed_identity_is_in(struct transaction *transaction, bool user, bool rule) {
    return (user && somebody_is_known(transaction)) || (rule && rule_tells(transaction));
}

void disclosed_identity_note(struct transaction *transaction, struct slice names, bool at_origin,
                             bool by_class) {
    if (!at_origin)
        note_at_client(transaction, names, by_class);
    else
        transaction->disclosed_identity.at_origin |= names.length > 0;
}

/* What every service rewrites, whoever asks, and what the key of the cache has. */
static bool is_of_message(struct slice name) {
    static const char *const names[] = {"Host",       "Via",         "Content-Length",
                                        "Connection", "traceparent", "tracestate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal_nocase(name, slice_from(names[i])))
            return true;
    return false;
}

/* The next field of that name, from `at` on; NULL: none. */
static const struct http_field *next_of_name(const struct http_head *head, unsigned *at,
                                             struct slice name) {
    while (*at < head->field_count) {
        const struct http_field *field = &head->fields[(*at)++];
        if (slice_equal_nocase(field->name, name))
            return field;
    }
    return NULL;
}

/* Compared field by field, since a joined copy for each field of a name that is there a hundred
 * times would take megabytes. */
static bool has_equal_fields(const struct http_head *one, const struct http_head *other,
                             struct slice name) {
    unsigned here = 0, there = 0;
    const struct http_field *mine, *theirs;
    do {
        mine = next_of_name(one, &here, name);
        theirs = next_of_name(other, &there, name);
    } while (mine != NULL && theirs != NULL && slice_equal(mine->value, theirs->value));
    return mine == NULL && theirs == NULL;
}

/* ",X-Role,X-User": the names of the fields that the services have added, changed or removed. */
static struct slice names_changed(struct transaction *transaction, const struct http_head *before,
                                  const struct http_head *after) {
    struct slice names[HTTP_DIFFERENCE_MAX], pieces[2 * HTTP_DIFFERENCE_MAX];
    unsigned count = http_head_difference(before, after, names), used = 0;
    for (unsigned i = 0; i < count; i++) {
        if (is_of_message(names[i]))
            continue;
        pieces[used++] = SLICE(",");
        pieces[used++] = names[i];
    }
    return arena_join(&transaction->arena, pieces, used);
}

void disclosed_identity_note_request(struct transaction *transaction,
                                     const struct http_head *before, bool by_who) {
    const struct http_head *after = transaction->request.head;
    note_at_client(transaction, names_changed(transaction, before, after), by_who);
}

void disclosed_identity_note_outgoing(struct transaction *transaction,
                                      const struct http_head *before) {
    const struct outgoing *outgoing = transaction->outgoing;
    transaction->disclosed_identity.at_origin |=
        names_changed(transaction, before, &outgoing->head).length > 0 ||
        !slice_equal(outgoing->url_text, transaction->request.url_text);
}

void disclosed_identity_note_response(struct transaction *transaction) {
    transaction->disclosed_identity.at_origin = true;
}

bool disclosed_identity_is_somebody_named(struct transaction *transaction) {
    return somebody_is_known(transaction) || transaction->request.credentials.length > 0 ||
           http_head_has(transaction->request.head, HTTP_PROXY_AUTHORIZATION);
}

struct slice disclosed_identity_at_client(const struct transaction *transaction) {
    const char *repeated = transaction->exchange->told;
    return repeated != NULL ? slice_from(repeated) : transaction->disclosed_identity.at_client;
}

/* Does Vary name all of these fields? */
static bool are_listed(struct slice names, const struct http_head *response) {
    struct slice name;
    while (slice_next_element(&names, &name))
        if (!http_head_has_token(response, HTTP_VARY, name))
            return false;
    return true;
}

/* A Vary that is not usable keeps a response out of the cache anyway, and may be endless. */
bool disclosed_identity_is_personal(const struct transaction *transaction,
                                    const struct http_head *response) {
    struct slice names = disclosed_identity_at_client(transaction);
    return transaction->disclosed_identity.at_origin ||
           (names.length > 0 && !(vary_usable(response) && are_listed(names, response)));
}

static bool are_services_at_origin(const struct settings *settings) {
    return settings->asks_at[ADAPT_REQMOD_POSTCACHE] || settings->asks_at[ADAPT_RESPMOD_PRECACHE];
}

/* False: no response could be of a class that asks who, so that nobody has to read the stored head. */
static bool may_be_told_of_class(struct transaction *transaction) {
    return transaction->disclosed_identity.by_class.length > 0 ||
           transaction->settings->changes_outgoing || are_services_at_origin(transaction->settings);
}

/* What the services and sections behind the cache will do is not known yet. */
static bool is_told_of_class(struct transaction *transaction, const struct http_head *response) {
    return !are_listed(transaction->disclosed_identity.by_class, response) ||
           (transaction->settings->changes_outgoing &&
            transaction->settings->head_changes->tells_class(transaction)) ||
           (are_services_at_origin(transaction->settings) &&
            transaction->host->adapting->asks_who(transaction, response));
}

bool disclosed_identity_excludes(struct transaction *transaction, const struct object *object) {
    if (!may_be_told_of_class(transaction))
        return false;
    struct http_head *response = arena_alloc(&transaction->arena, sizeof *response);
    object_parse_head(object, response);
    if (!is_told_of_class(transaction, response))
        return false;
    struct freshness_rules rules = caching_freshness_rules(transaction, response);
    rules.policy = caching_policy_for(transaction, response);
    return !freshness_is_for_all(&rules, response);
}

/* The lists of addresses grow behind the cache (forwarding.h). */
static bool is_list_of_addresses(const struct transaction *transaction, struct slice name) {
    const struct forwarding_settings *told = &transaction->settings->forwarding;
    enum forwarding_mode mode = FORWARDING_OFF;
    if (slice_equal_nocase(name, SLICE("X-Forwarded-For")))
        mode = told->x_forwarded_for;
    else if (slice_equal_nocase(name, SLICE("Forwarded")))
        mode = told->forwarded;
    return mode == FORWARDING_APPEND || mode == FORWARDING_REPLACE;
}

static bool is_changed_by_rules(struct transaction *transaction, struct slice name) {
    const struct settings *settings = transaction->settings;
    return settings->changes_outgoing && settings->head_changes->hides_selector(transaction, name);
}

/* A service that nobody tells of a user makes the same of the same request (docs/ICAP.md). */
static bool is_changed_by_services(struct transaction *transaction, struct slice name) {
    const struct outgoing *outgoing = transaction->outgoing;
    if (outgoing == NULL || !outgoing->changed ||
        !(somebody_is_known(transaction) || outgoing->by_who))
        return false;
    return !has_equal_fields(&outgoing->head, transaction->request.head, name);
}

bool disclosed_identity_hides_selector(struct transaction *transaction,
                                       const struct http_head *response) {
    const struct http_field *vary =
        vary_usable(response) ? http_head_find(response, HTTP_VARY) : NULL;
    for (; vary != NULL; vary = http_head_find_next(response, HTTP_VARY, vary)) {
        struct slice rest = vary->value, name;
        while (slice_next_element(&rest, &name))
            if (is_list_of_addresses(transaction, name) || is_changed_by_rules(transaction, name) ||
                is_changed_by_services(transaction, name))
                return true;
    }
    return false;
}
