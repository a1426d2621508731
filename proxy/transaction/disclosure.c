#include "transaction/disclosure.h"

#include "rewrite/field_rules.h"
#include "transaction/request_rules.h"
#include "transaction/steps/reqmod_postcache.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

struct disclosed_fields {
    const struct fields_settings *section;
    struct disclosed_fields *next;
};

static bool somebody_is_known(struct transaction *transaction) {
    return transaction->request.user != NULL ||
           transaction_variable(transaction, VARIABLE_TLS_SUBJECT, slice_make("", 0)).length > 0;
}

void disclosure_note(struct transaction *transaction, const struct fields_settings *section) {
    struct disclosure *disclosure = &transaction->disclosure;
    if (!section->tells_class && !(section->tells_user && somebody_is_known(transaction)))
        return;
    if (section->where == FIELDS_AT_ORIGIN) {
        disclosure->at_origin = true;
        return;
    }
    struct disclosed_fields *fields = arena_alloc(&transaction->arena, sizeof *fields);
    *fields = (struct disclosed_fields){section, disclosure->at_client};
    disclosure->at_client = fields;
}

bool disclosure_is_personal(const struct transaction *transaction,
                            const struct http_head *response) {
    const struct disclosed_fields *fields = transaction->disclosure.at_client;
    if (transaction->disclosure.at_origin)
        return true;
    for (; fields != NULL; fields = fields->next)
        if (!field_rules_are_listed(fields->section->rules, !fields->section->tells_class, response,
                                    HTTP_VARY))
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
