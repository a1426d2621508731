#include "transaction/head_rules.h"

#include "rewrite/field_rules.h"
#include "transaction/adapted_variant.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"
#include "transaction/variables.h"

const char head_rules_request_error[] =
    "the request can't be changed as the request_headers sections want it: it has too many fields, "
    "or a value that is too long or too hard to search";
const char head_rules_response_error[] =
    "the response can't be changed as the response_headers sections want it: it has too many "
    "fields, or a value that is too long or too hard to search";

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
        .list = transaction->settings->request_fields,
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
        .list = settings->response_fields,
        .kind = RULE_RESPONSE_HEADERS,
        .where = where,
    };
    if (transaction->request.url_text.length > 0)
        walk.bits =
            rules_with_type(settings->rules, request_rules(transaction), type, &transaction->arena);
    return walk;
}

static struct field_changes changes_of(struct transaction *transaction) {
    return (struct field_changes){
        .value = transaction_variable,
        .arg = transaction,
        .arena = &transaction->arena,
    };
}

/* Changes a head that has all of its fields. */
static bool change_head(struct transaction *transaction, struct head_rules_walk *walk,
                        struct http_head *head, bool confirms) {
    const struct fields_settings *section = head_rules_next(walk);
    if (section == NULL)
        return true;
    struct field_changes changes = changes_of(transaction);
    changes.confirms = confirms;
    field_changes_begin(&changes, head);
    for (; section != NULL; section = head_rules_next(walk))
        field_rules_apply(section->rules, &changes);
    return !changes.failed && field_changes_join(&changes);
}

/* Fields that Connection names end here. A client could name those that the rules set, and they
 * would not reach the origin (RFC 9110 §7.6.1). */
static void end_hop(struct http_head *request) {
    if (!http_head_has(request, HTTP_CONNECTION))
        return;
    struct slice upgrade = http_head_value(request, HTTP_UPGRADE);
    http_head_remove_hop_by_hop(request);
    if (upgrade.base == NULL)
        return;
    http_head_set(request, HTTP_UPGRADE, upgrade);
    http_head_set(request, HTTP_CONNECTION, SLICE("Upgrade"));
}

bool head_rules_change_request(struct transaction *transaction) {
    struct head_rules_walk walk = walk_requests(transaction, FIELDS_AT_CLIENT), look = walk;
    if (head_rules_next(&look) == NULL)
        return true;
    request_own(transaction);
    end_hop(transaction->request.head);
    bool changed = change_head(transaction, &walk, transaction->request.head, false);
    request_changed(transaction);
    return changed;
}

bool head_rules_change_outgoing(struct transaction *transaction, struct http_head *head) {
    struct head_rules_walk walk = walk_requests(transaction, FIELDS_AT_ORIGIN);
    return transaction->request.kind == REQUEST_CONNECT ||
           change_head(transaction, &walk, head, false);
}

/* A 304 that confirms what is stored has the type of that. */
bool head_rules_change_response(struct transaction *transaction, struct http_head *head) {
    bool confirms = head->status == 304 && transaction->lookup.revalidating;
    struct slice type = confirms ? object_type(transaction->lookup.object)
                                 : http_head_value(head, HTTP_CONTENT_TYPE);
    struct head_rules_walk walk = walk_responses(transaction, FIELDS_AT_ORIGIN, type);
    return change_head(transaction, &walk, head, confirms);
}

/* A 304 is about what the client has, and a multipart body about what it consists of. */
static struct slice reply_type(const struct transaction *transaction, const struct reply *reply) {
    bool is_stored = transaction->delivery.page == NULL && transaction_shown(transaction) != NULL;
    if (is_stored && (reply->head == NULL || reply->status == 304 || reply->part_count > 0))
        return object_type(transaction_shown(transaction));
    return http_head_value(reply->head, HTTP_CONTENT_TYPE);
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

bool head_rules_change_reply(struct transaction *transaction, const struct http_head **head,
                             struct slice *lines) {
    const struct reply *reply = &transaction->delivery.reply;
    struct head_rules_walk walk =
        walk_responses(transaction, FIELDS_AT_CLIENT, reply_type(transaction, reply));
    walk.is_page = transaction->delivery.page != NULL;
    struct head_rules_walk look = walk;
    *head = NULL;
    *lines = slice_make("", 0);
    if (head_rules_next(&look) == NULL)
        return true;
    struct field_changes changes = changes_of(transaction);
    begin_reply(transaction, walk, &changes);
    for (const struct fields_settings *section; (section = head_rules_next(&walk)) != NULL;)
        field_rules_apply(section->rules, &changes);
    keep_boundary(reply, &changes);
    *head = changes.head;
    *lines = field_changes_lines(&changes);
    return !changes.failed;
}
