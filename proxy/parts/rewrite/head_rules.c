#include "rewrite/head_rules.h"

#include "rewrite/field_rules.h"
#include "rewrite/settings.h"
#include "transaction/disclosed_identity.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

/* The sections that apply at one place. */
struct head_rules_walk {
    const struct settings *settings;
    const struct fields_settings *list;
    enum rule_kind kind;
    enum fields_where where;
    const uint64_t *bits;
    bool is_page; /* of the proxy's own: some sections leave it alone */
    size_t next;
};

/* A page about a request whose URL could not be read: it is in the class "all" alone. */
static bool is_for_anything(const struct fields_settings *section) {
    return strcmp(url_class_name(section->url_class), "all") == 0;
}

static const struct fields_settings *head_rules_next(struct head_rules_walk *walk) {
    size_t count = walk->settings->rule_count[walk->kind];
    while (walk->next < count) {
        size_t at = walk->bits == NULL
                        ? walk->next
                        : settings_next_rule(walk->settings, walk->kind, walk->bits, walk->next);
        walk->next = at + 1;
        if (at < count && walk->list[at].where == walk->where &&
            (!walk->is_page || walk->list[at].on_errors) &&
            (walk->bits != NULL || is_for_anything(&walk->list[at])))
            return &walk->list[at];
    }
    return NULL;
}

static struct head_rules_walk walk_requests(struct transaction *transaction,
                                            enum fields_where where) {
    return (struct head_rules_walk){
        .settings = transaction->settings,
        .list = rewriting_settings_of(transaction->settings)->requests.sections,
        .kind = RULE_REQUEST_HEADERS,
        .where = where,
        .bits = request_rules_without_type(transaction),
    };
}

static struct head_rules_walk walk_responses(struct transaction *transaction,
                                             enum fields_where where, struct slice type) {
    const struct settings *settings = transaction->settings;
    struct head_rules_walk walk = {
        .settings = settings,
        .list = rewriting_settings_of(settings)->responses.sections,
        .kind = RULE_RESPONSE_HEADERS,
        .where = where,
    };
    if (transaction->request.url_text.length > 0)
        walk.bits =
            rules_with_type(settings->rules, request_rules(transaction), type, &transaction->arena);
    return walk;
}

/* The heads that values may name, as they are before the sections of a place change anything. */
struct named_heads {
    struct transaction *transaction;
    const struct http_head *request, *response; /* NULL: as transaction_variable has it */
};

static struct slice head_rules_value(void *arg, enum variable variable, struct slice field) {
    const struct named_heads *heads = arg;
    struct arena *arena = &heads->transaction->arena;
    const struct http_head *head = (int)variable == VARIABLE_REQUEST_FIELD    ? heads->request
                                   : (int)variable == VARIABLE_RESPONSE_FIELD ? heads->response
                                                                              : NULL;
    return head != NULL ? http_head_joined_text(head, field, arena)
                        : transaction_variable(heads->transaction, variable, field);
}

static bool any_names_fields(struct head_rules_walk walk) {
    const struct fields_settings *section;
    while ((section = head_rules_next(&walk)) != NULL)
        if (section->name_fields)
            return true;
    return false;
}

static struct http_head *copy_of_head(struct transaction *transaction,
                                      const struct http_head *head) {
    struct http_head *copy = arena_alloc(&transaction->arena, sizeof *copy);
    http_head_assign(copy, head);
    return copy;
}

static struct field_changes changes_of(struct named_heads *heads) {
    return (struct field_changes){
        .value = head_rules_value,
        .arg = heads,
        .arena = &heads->transaction->arena,
    };
}

/* Before the section changes the request. */
static void head_rules_disclose(struct transaction *transaction,
                                const struct fields_settings *section,
                                const struct field_changes *changes) {
    if (section->tells_class ||
        disclosed_identity_is_in(transaction, section->tells_user, section->tells_rule))
        disclosed_identity_note(transaction,
                                field_rules_told(section->rules, section->tells_class, changes),
                                section->where == FIELDS_AT_ORIGIN, section->tells_class);
}

/* Changes a head that has all of its fields. */
static bool change_head(struct transaction *transaction, struct head_rules_walk *walk,
                        struct http_head *head, bool confirms) {
    struct named_heads heads = {.transaction = transaction};
    bool copies = any_names_fields(*walk);
    const struct fields_settings *section = head_rules_next(walk);
    if (section == NULL)
        return true;
    if (copies && walk->kind == RULE_RESPONSE_HEADERS)
        heads.response = copy_of_head(transaction, head);
    else if (copies && walk->where == FIELDS_AT_CLIENT)
        heads.request = copy_of_head(transaction, head);
    struct field_changes changes = changes_of(&heads);
    changes.confirms = confirms;
    field_changes_begin(&changes, head);
    for (; section != NULL; section = head_rules_next(walk)) {
        if (walk->kind == RULE_REQUEST_HEADERS)
            head_rules_disclose(transaction, section, &changes);
        field_rules_apply(section->rules, &changes);
    }
    return !changes.failed && field_changes_join(&changes);
}

bool head_rules_change_request(struct transaction *transaction) {
    struct head_rules_walk walk = walk_requests(transaction, FIELDS_AT_CLIENT), look = walk;
    if (head_rules_next(&look) == NULL)
        return true;
    request_own(transaction);
    bool changed = change_head(transaction, &walk, transaction->request.head, false);
    request_changed(transaction);
    return changed;
}

static bool change_outgoing(struct transaction *transaction, struct http_head *head) {
    struct head_rules_walk walk = walk_requests(transaction, FIELDS_AT_ORIGIN);
    return transaction->request.kind == REQUEST_CONNECT ||
           change_head(transaction, &walk, head, false);
}

static bool tells_class(struct transaction *transaction) {
    struct head_rules_walk walk = walk_requests(transaction, FIELDS_AT_ORIGIN);
    const struct fields_settings *section;
    while ((section = head_rules_next(&walk)) != NULL)
        if (section->tells_class)
            return true;
    return false;
}

/* Does the section apply to any request for this URL? What is stored for this request would go to
 * that one as well. */
static bool may_apply(struct transaction *transaction, const struct fields_settings *section,
                      size_t at) {
    return !section->is_by_url ||
           settings_next_rule(transaction->settings, RULE_REQUEST_HEADERS,
                              request_rules_without_type(transaction), at) == at;
}

static bool hides_selector(struct transaction *transaction, struct slice name) {
    const struct fields_list *list = &rewriting_settings_of(transaction->settings)->requests;
    for (size_t i = 0; i < list->count; i++) {
        const struct fields_settings *section = &list->sections[i];
        if (section->where == FIELDS_AT_ORIGIN &&
            field_rules_hide(section->rules, !section->is_by_url, name) &&
            may_apply(transaction, section, i))
            return true;
    }
    return false;
}

static enum step refuse_response(struct transaction *transaction) {
    transaction->net->counters.field_rules_failures++;
    return fail_with(
        transaction, 502,
        "the response can't be changed as the response_headers sections want it: it has too many "
        "fields, or a value that is too long or too hard to search");
}

/* A 304 that confirms what is stored has the type of that. */
static enum step change_response(struct transaction *transaction) {
    struct http_head *head = transaction->response.head;
    bool confirms = head->status == 304 && transaction->lookup.revalidating;
    struct slice type = confirms ? object_type(transaction->lookup.object)
                                 : http_head_value(head, HTTP_CONTENT_TYPE);
    struct head_rules_walk walk = walk_responses(transaction, FIELDS_AT_ORIGIN, type);
    if (change_head(transaction, &walk, head, confirms))
        return STEP_NEXT;
    response_drop(&transaction->response);
    return refuse_response(transaction);
}

/* A 304 is about what the client has, and a multipart body about what it consists of. */
static struct slice reply_type(const struct transaction *transaction, const struct reply *reply) {
    bool is_stored = transaction->delivery.page == NULL && transaction_shown(transaction) != NULL;
    if (is_stored && (reply->head == NULL || reply->status == 304 || reply->part_count > 0))
        return object_type(transaction_shown(transaction));
    return http_head_value(reply->head, HTTP_CONTENT_TYPE);
}

/* The reply's head before anything is changed. That of a stored response is read from its text. */
static const struct http_head *named_reply(struct transaction *transaction,
                                           struct head_rules_walk walk) {
    const struct reply *reply = &transaction->delivery.reply;
    if (!any_names_fields(walk))
        return NULL;
    if (reply->head != NULL)
        return copy_of_head(transaction, reply->head);
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(transaction_shown(transaction), head);
    return head;
}

/* Gives the changes a head of their own where a rule needs it. The text of a stored response stays
 * as it is while rules only add to it. */
static void begin_reply(struct transaction *transaction, struct head_rules_walk walk,
                        struct field_changes *changes) {
    const struct reply *reply = &transaction->delivery.reply;
    const struct fields_settings *section;
    bool touched = reply->head != NULL;
    while (!touched && (section = head_rules_next(&walk)) != NULL)
        touched = field_rules_touch(section->rules, reply->stored);
    struct http_head *head = NULL;
    if (touched) {
        head = arena_alloc(&transaction->arena, sizeof *head);
        if (reply->head != NULL)
            http_head_assign(head, reply->head);
        else
            object_parse_head(transaction_shown(transaction), head);
    }
    field_changes_begin(changes, head);
}

/* The boundary between the parts stands in the type. */
static void keep_boundary(const struct reply *reply, struct field_changes *changes) {
    if (reply->part_count == 0)
        return;
    struct slice type = http_head_value(reply->head, HTTP_CONTENT_TYPE);
    http_head_remove(changes->added, HTTP_CONTENT_TYPE);
    http_head_set(changes->head, HTTP_CONTENT_TYPE, type);
}

static void change_reply(struct transaction *transaction) {
    const struct reply *reply = &transaction->delivery.reply;
    struct head_rules_walk walk =
        walk_responses(transaction, FIELDS_AT_CLIENT, reply_type(transaction, reply));
    walk.is_page = transaction->delivery.page != NULL;
    struct head_rules_walk look = walk;
    if (head_rules_next(&look) == NULL)
        return;
    struct named_heads heads = {transaction, NULL, named_reply(transaction, walk)};
    struct field_changes changes = changes_of(&heads);
    begin_reply(transaction, walk, &changes);
    for (const struct fields_settings *section; (section = head_rules_next(&walk)) != NULL;)
        field_rules_apply(section->rules, &changes);
    if (changes.failed) {
        refuse_response(transaction);
        return;
    }
    keep_boundary(reply, &changes);
    if (changes.head != NULL)
        delivery_set_head(transaction, changes.head);
    delivery_add_lines(transaction, field_changes_lines(&changes));
}

const struct head_changes head_rules = {
    .outgoing = change_outgoing,
    .tells_class = tells_class,
    .hides_selector = hides_selector,
    .response = change_response,
    .reply = change_reply,
};
