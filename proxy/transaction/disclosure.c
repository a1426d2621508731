#include "transaction/disclosure.h"

#include "rewrite/field_rules.h"
#include "transaction/request_rules.h"
#include "transaction/steps/reqmod_postcache.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

static bool somebody_is_known(struct transaction *transaction) {
    return transaction->request.user != NULL ||
           transaction_variable(transaction, VARIABLE_TLS_SUBJECT, slice_make("", 0)).length > 0;
}

void disclosure_note(struct transaction *transaction, const struct fields_settings *section,
                     const struct field_changes *changes) {
    struct disclosure *disclosure = &transaction->disclosure;
    if (!section->tells_class && !(section->tells_user && somebody_is_known(transaction)))
        return;
    struct slice names = field_rules_told(section->rules, section->tells_class, changes);
    if (names.length == 0)
        return;
    if (section->where == FIELDS_AT_ORIGIN)
        disclosure->at_origin = true;
    else
        disclosure->at_client = arena_concat(&transaction->arena, disclosure->at_client, names);
}

struct slice disclosure_at_client(const struct transaction *transaction) {
    const char *repeated = transaction->exchange->told;
    return repeated != NULL ? slice_from(repeated) : transaction->disclosure.at_client;
}

bool disclosure_is_personal(const struct transaction *transaction,
                            const struct http_head *response) {
    struct slice rest = disclosure_at_client(transaction), name;
    if (transaction->disclosure.at_origin)
        return true;
    while (slice_next_element(&rest, &name))
        if (!http_head_has_token(response, HTTP_VARY, name))
            return true;
    return false;
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

/* Does the section apply to any request for this URL? What is stored for this request would go to
 * that one as well. */
static bool may_apply(struct transaction *transaction, size_t at) {
    const struct settings *settings = transaction->settings;
    return !settings->request_fields[at].is_by_url ||
           settings_next_rule(settings, RULE_REQUEST_HEADERS,
                              request_rules_without_type(transaction), at) == at;
}

static bool is_changed_by_rules(struct transaction *transaction, struct slice name) {
    const struct settings *settings = transaction->settings;
    if (!settings->any_request_fields[FIELDS_AT_ORIGIN])
        return false;
    for (size_t i = 0; i < settings->request_fields_count; i++) {
        const struct fields_settings *section = &settings->request_fields[i];
        if (section->where == FIELDS_AT_ORIGIN &&
            field_rules_hide(section->rules, !section->is_by_url, name) &&
            may_apply(transaction, i))
            return true;
    }
    return false;
}

/* A service that nobody tells of a user makes the same of the same request (docs/ICAP.md). */
static bool is_changed_by_services(struct transaction *transaction, struct slice name) {
    const struct reqmod_postcache *outgoing = transaction->reqmod_postcache;
    if (outgoing == NULL || !outgoing->reqmod.chain.modified || !somebody_is_known(transaction))
        return false;
    return !slice_equal(
        http_head_joined_text(&outgoing->head, name, &transaction->arena),
        http_head_joined_text(transaction->request.head, name, &transaction->arena));
}

bool disclosure_hides_selector(struct transaction *transaction, const struct http_head *response) {
    const struct http_field *vary = http_head_find(response, HTTP_VARY);
    for (; vary != NULL; vary = http_head_find_next(response, HTTP_VARY, vary)) {
        struct slice rest = vary->value, name;
        while (slice_next_element(&rest, &name))
            if (is_list_of_addresses(transaction, name) || is_changed_by_rules(transaction, name) ||
                is_changed_by_services(transaction, name))
                return true;
    }
    return false;
}
