#include "rewrite/field_rules.h"

#include "base/assert.h"
#include "base/failure.h"
#include "http/bytes.h"
#include "match/regex.h"

#include <stdio.h>
#include <stdlib.h>

struct field_rule {
    enum field_action action;
    enum field_place place;
    struct slice name; /* heap */
    bool is_prefix;
    struct text_template *value; /* NULL: of a rule that removes */
    struct regex *regex;         /* of a rule that replaces */
};

struct field_rules {
    unsigned magic;
#define FIELD_RULES_MAGIC 0xf1e1d201u
    struct field_rule *list;
    unsigned count;
};

/* What says how messages are framed, what becomes of the connection, or who a proxy is. */
static const char *const reserved[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
    "Host",
    "Via",
    "Expect",
    "Max-Forwards",
    "HTTP2-Settings",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Authentication-Info",
    "Content-Range",
    "Age",
};

/* The proxy puts its own conditions into the request for the origin. */
static const char *const reserved_outgoing[] = {
    "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
};

static bool is_in(struct slice name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (slice_equal_nocase(name, slice_from(list[i])))
            return true;
    return false;
}

static bool is_reserved(struct slice name, enum field_place place) {
    return is_in(name, reserved, sizeof reserved / sizeof *reserved) ||
           (place == FIELD_OF_OUTGOING &&
            is_in(name, reserved_outgoing, sizeof reserved_outgoing / sizeof *reserved_outgoing));
}

struct field_rules *field_rules_new(void) {
    struct field_rules *rules;
    ALLOC_OBJ(rules, FIELD_RULES_MAGIC);
    return rules;
}

static void field_rule_release(struct field_rule *rule) {
    free((char *)rule->name.base);
    text_template_free(&rule->value);
    regex_free(&rule->regex);
}

void field_rules_free(struct field_rules **rulesp) {
    struct field_rules *rules = *rulesp;
    *rulesp = NULL;
    if (rules == NULL)
        return;
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (unsigned i = 0; i < rules->count; i++)
        field_rule_release(&rules->list[i]);
    free(rules->list);
    FREE_OBJ(rules);
}

/* Where a message about a rule goes. */
struct rule_error {
    char *text;
    size_t size;
};

static bool set_name(struct field_rule *rule, struct slice name, const struct rule_error *error) {
    if (rule->action == FIELD_REMOVE && name.length > 1 && name.base[name.length - 1] == '*') {
        rule->is_prefix = true;
        name.length--;
    }
    for (size_t i = 0; i < name.length; i++)
        if (!bytes_is(name.base[i], BYTES_TOKEN) || name.base[i] == '*')
            return failure(error->text, error->size, "has no name of a field at its front");
    if (name.length == 0)
        return failure(error->text, error->size, "has no name of a field at its front");
    rule->name = slice_make(slice_dup(name), name.length);
    if (!rule->is_prefix && is_reserved(name, rule->place))
        return failure(error->text, error->size, "%s",
                       rule->place == FIELD_OF_OUTGOING && !is_reserved(name, FIELD_OF_REQUEST)
                           ? "is about a field by which the cache asks the origin, which no rule "
                             "may change there; write where = client"
                           : "is about a field that says how messages are sent, which no rule "
                             "may change");
    return true;
}

/* Control characters of the settings would be the operator's own mistake. */
static bool has_control(const char *text) {
    for (; *text != '\0'; text++)
        if (!bytes_is(*text, BYTES_TEXT))
            return true;
    return false;
}

static bool set_value(struct field_rule *rule, struct slice text, const struct rule_error *error) {
    char *copy = slice_dup(slice_trim(text));
    bool good = !has_control(copy) ||
                failure(error->text, error->size, "has a control character in its value");
    if (good) {
        rule->value = text_template_new(copy, error->text, error->size);
        good = rule->value != NULL;
    }
    free(copy);
    return good;
}

/* The text up to the delimiter, which is no end behind a backslash. */
static bool take_delimited(struct slice *rest, char delimiter, struct slice *part) {
    for (size_t i = 0; i < rest->length; i++) {
        if (rest->base[i] == '\\' && i + 1 < rest->length) {
            i++;
        } else if (rest->base[i] == delimiter) {
            *part = slice_make(rest->base, i);
            *rest = slice_make(rest->base + i + 1, rest->length - i - 1);
            return true;
        }
    }
    return false;
}

/* "\/" stands for "/" in a replacement; in an expression it does so already. */
static char *without_escapes(struct slice text, char delimiter) {
    char *copy = slice_dup(text), *out = copy;
    for (const char *at = copy; *at != '\0'; at++) {
        if (at[0] == '\\' && at[1] == delimiter)
            at++;
        *out++ = *at;
    }
    *out = '\0';
    return copy;
}

static bool set_replacement(struct field_rule *rule, struct slice expression,
                            struct slice replacement, char delimiter,
                            const struct rule_error *error) {
    char *regex = slice_dup(expression), *value = without_escapes(replacement, delimiter);
    bool good = !has_control(value) ||
                failure(error->text, error->size, "has a control character in its value");
    if (good) {
        rule->regex = regex_new(regex, error->text, error->size);
        good = rule->regex != NULL;
    }
    if (good) {
        rule->value = text_template_new_for_groups(value, regex_groups(rule->regex), error->text,
                                                   error->size);
        good = rule->value != NULL;
    }
    free(regex);
    free(value);
    return good;
}

static bool is_delimiter(char c) {
    return bytes_is(c, BYTES_TEXT) && (c & 0x80) == 0 && c != ' ' && c != '\t' && c != '\\' &&
           !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool read_replacement(struct field_rule *rule, struct slice text,
                             const struct rule_error *error) {
    struct slice rest = slice_trim(text), expression, replacement;
    char delimiter = rest.length > 0 ? rest.base[0] : ' ';
    if (is_delimiter(delimiter)) {
        rest = slice_make(rest.base + 1, rest.length - 1);
        if (take_delimited(&rest, delimiter, &expression) && expression.length > 0 &&
            take_delimited(&rest, delimiter, &replacement) && rest.length == 0)
            return set_replacement(rule, expression, replacement, delimiter, error);
    }
    return failure(error->text, error->size, "is not \"Name: /expression/replacement/\"");
}

static bool field_rule_read(struct field_rule *rule, const char *text,
                            const struct rule_error *error) {
    const char *colon = strchr(text, ':');
    if (rule->action == FIELD_REMOVE)
        return set_name(rule, slice_from(text), error);
    if (colon == NULL)
        return failure(error->text, error->size, "%s",
                       rule->action == FIELD_REPLACE ? "is not \"Name: /expression/replacement/\""
                                                     : "is not \"Name: value\"");
    struct slice value = slice_from(colon + 1);
    if (!set_name(rule, slice_make(text, (size_t)(colon - text)), error))
        return false;
    return rule->action == FIELD_REPLACE ? read_replacement(rule, value, error)
                                         : set_value(rule, value, error);
}

bool field_rules_add(struct field_rules *rules, enum field_action action, enum field_place place,
                     const char *text, char *error, size_t error_size) {
    struct field_rule rule = {.action = action, .place = place};
    const struct rule_error where = {error, error_size};
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    if (!field_rule_read(&rule, text, &where)) {
        field_rule_release(&rule);
        return false;
    }
    rules->list = xrealloc(rules->list, (rules->count + 1) * sizeof *rules->list);
    rules->list[rules->count++] = rule;
    return true;
}

unsigned field_rules_additions(const struct field_rules *rules) {
    unsigned additions = 0;
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (unsigned i = 0; i < rules->count; i++)
        additions += rules->list[i].action == FIELD_SET || rules->list[i].action == FIELD_ADD;
    return additions;
}

static bool field_rules_name(const struct field_rules *rules, enum variable variable) {
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (unsigned i = 0; i < rules->count; i++)
        if (rules->list[i].value != NULL && text_template_names(rules->list[i].value, variable))
            return true;
    return false;
}

bool field_rules_name_fields(const struct field_rules *rules) {
    return field_rules_name(rules, VARIABLE_REQUEST_FIELD) ||
           field_rules_name(rules, VARIABLE_RESPONSE_FIELD);
}

static unsigned field_rule_sources(const struct field_rule *rule) {
    return rule->value != NULL ? text_template_sources(rule->value) : 0;
}

static unsigned field_rules_sources(const struct field_rules *rules) {
    unsigned sources = 0;
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (unsigned i = 0; i < rules->count; i++)
        sources |= field_rule_sources(&rules->list[i]);
    return sources;
}

bool field_rules_name_client(const struct field_rules *rules) {
    return (field_rules_sources(rules) & (VARIABLES_OF_USER | VARIABLES_OF_CLIENT)) != 0;
}

bool field_rules_tell_rule(const struct field_rules *rules) {
    return field_rules_name(rules, VARIABLE_RULE);
}

bool field_rules_tell_user(const struct field_rules *rules) {
    return (field_rules_sources(rules) & VARIABLES_OF_USER) != 0;
}

static bool varies(const struct field_rule *rule) {
    return (field_rule_sources(rule) & ~(unsigned)VARIABLES_OF_URL) != 0;
}

static bool rule_names(const struct field_rule *rule, struct slice name) {
    if (!rule->is_prefix)
        return slice_equal_nocase(name, rule->name);
    return slice_starts_with_nocase(name, rule->name) && !is_reserved(name, rule->place);
}

bool field_rules_hide(const struct field_rules *rules, bool always, struct slice name) {
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (unsigned i = 0; i < rules->count; i++)
        if (rule_names(&rules->list[i], name) && (always || varies(&rules->list[i])))
            return true;
    return false;
}

bool field_rules_touch(const struct field_rules *rules, struct slice text) {
    const char *end = text.base + text.length;
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (const char *line = text.base; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        next = next != NULL ? next + 1 : end;
        const char *colon = memchr(line, ':', (size_t)(next - line));
        struct slice name = slice_make(line, colon != NULL ? (size_t)(colon - line) : 0);
        for (unsigned i = 0; i < rules->count; i++)
            if (rules->list[i].action != FIELD_ADD && rule_names(&rules->list[i], name))
                return true;
        line = next;
    }
    return false;
}

void field_changes_begin(struct field_changes *changes, struct http_head *head) {
    changes->head = head;
    changes->failed = false;
    changes->added = arena_alloc(changes->arena, sizeof *changes->added);
    http_head_init(changes->added);
}

static bool names_any(const struct field_rule *rule, const struct http_head *head) {
    for (unsigned i = 0; head != NULL && i < head->field_count; i++)
        if (rule_names(rule, head->fields[i].name))
            return true;
    return false;
}

/* Names of fields, ",A,B"; `out` NULL: only their length is wanted. */
struct told_names {
    char *out;
    size_t length;
};

static void tell_name(struct told_names *told, struct slice name) {
    if (told->out != NULL)
        slice_put(slice_put(told->out + told->length, SLICE(",")), name);
    told->length += 1 + name.length;
}

static void tell_named(struct told_names *told, const struct field_rule *rule,
                       const struct http_head *head) {
    for (unsigned i = 0; head != NULL && i < head->field_count; i++)
        if (rule_names(rule, head->fields[i].name))
            tell_name(told, head->fields[i].name);
}

/* A field that is missing tells as much as one that is there. A rule that finds no field leaves the
 * request as it is. */
static void tell_fields(struct told_names *told, const struct field_rules *rules, bool by_class,
                        const struct field_changes *changes) {
    told->length = 0;
    for (unsigned i = 0; i < rules->count; i++) {
        const struct field_rule *rule = &rules->list[i];
        bool tells = (field_rule_sources(rule) & VARIABLES_OF_USER) != 0 ||
                     (rule->value != NULL && text_template_names(rule->value, VARIABLE_RULE));
        if (!by_class && !tells)
            continue;
        if (rule->action == FIELD_SET || rule->action == FIELD_ADD) {
            tell_name(told, rule->name);
        } else {
            tell_named(told, rule, changes->head);
            tell_named(told, rule, changes->added);
        }
    }
}

struct slice field_rules_told(const struct field_rules *rules, bool by_class,
                              const struct field_changes *changes) {
    struct told_names told = {NULL, 0};
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    tell_fields(&told, rules, by_class, changes);
    if (told.length == 0)
        return slice_make("", 0);
    told.out = arena_alloc(changes->arena, told.length);
    tell_fields(&told, rules, by_class, changes);
    return slice_make(told.out, told.length);
}

static void remove_named(const struct field_rule *rule, struct http_head *head) {
    for (unsigned i = 0; head != NULL && i < head->field_count;) {
        if (rule_names(rule, head->fields[i].name))
            http_head_remove_text(head, head->fields[i].name);
        else
            i++;
    }
}

static void add_field(struct field_changes *changes, struct slice name, struct slice value) {
    if (value.length > FIELD_VALUE_MAX ||
        (value.length > 0 && !http_head_add(changes->added, name, value)))
        changes->failed = true;
}

static struct slice rule_value(const struct field_rule *rule, const struct field_changes *changes) {
    return slice_trim(
        text_template_write(rule->value, changes->value, changes->arg, TEXT_AS_IS, changes->arena));
}

/* A replacement: the groups of one find, and the variables of the message. */
struct replacement {
    const struct field_changes *changes;
    struct slice groups[REGEX_GROUPS];
};

static struct slice replacement_value(void *arg, enum variable variable, struct slice field) {
    const struct replacement *replacement = arg;
    if (variable >= VARIABLE_GROUP)
        return replacement->groups[variable - VARIABLE_GROUP];
    return replacement->changes->value(replacement->changes->arg, variable, field);
}

/* The value that is being written; a piece too many, and it is not used. */
struct grown_value {
    char bytes[FIELD_VALUE_MAX];
    size_t length;
};

static bool grow(struct grown_value *grown, struct slice piece) {
    if (piece.length > FIELD_VALUE_MAX - grown->length)
        return false;
    slice_put(grown->bytes + grown->length, piece);
    grown->length += piece.length;
    return true;
}

/* An empty find is replaced too, but not right behind another: ".*" finds a value once. The search
 * goes on behind the next byte then. */
static bool replace_all(const struct field_rule *rule, struct replacement *replacement,
                        struct slice value, struct grown_value *grown) {
    struct arena *arena = replacement->changes->arena;
    const struct slice *found = &replacement->groups[0];
    size_t from = 0, copied = 0;
    unsigned finds = 0;
    while (from <= value.length) {
        enum regex_result result = regex_search(rule->regex, value, from, replacement->groups);
        if (result == REGEX_NOT_FOUND)
            break;
        size_t begin = result == REGEX_FOUND ? (size_t)(found->base - value.base) : 0;
        if (result == REGEX_GAVE_UP || finds == FIELD_FINDS_MAX || begin < copied)
            return false;
        from = begin + found->length + (found->length == 0);
        if (found->length == 0 && finds > 0 && begin == copied)
            continue;
        finds++;
        struct slice text =
            text_template_write(rule->value, replacement_value, replacement, TEXT_AS_IS, arena);
        if (!grow(grown, slice_make(value.base + copied, begin - copied)) || !grow(grown, text))
            return false;
        copied = begin + found->length;
    }
    return grow(grown, slice_make(value.base + copied, value.length - copied));
}

/* True: the field stays, with its new value. */
static bool replace_value(const struct field_rule *rule, struct field_changes *changes,
                          struct http_field *field) {
    struct replacement replacement = {.changes = changes};
    struct slice value = field->value.length > 0 ? field->value : SLICE("");
    if (regex_search(rule->regex, value, 0, replacement.groups) == REGEX_NOT_FOUND)
        return true;
    struct grown_value grown;
    grown.length = 0;
    if (!replace_all(rule, &replacement, value, &grown)) {
        changes->failed = true;
        return true;
    }
    field->value = arena_slice(changes->arena, slice_trim(slice_make(grown.bytes, grown.length)));
    return field->value.length > 0;
}

static void replace_named(const struct field_rule *rule, struct field_changes *changes,
                          struct http_head *head) {
    struct http_head kept;
    bool dropped = false;
    if (!names_any(rule, head))
        return;
    http_head_init(&kept);
    for (unsigned i = 0; i < head->field_count; i++) {
        struct http_field field = head->fields[i];
        if (!rule_names(rule, field.name) || replace_value(rule, changes, &field))
            http_head_add(&kept, field.name, field.value);
        else
            dropped = true;
    }
    if (!dropped) {
        memcpy(head->fields, kept.fields, kept.field_count * sizeof *kept.fields);
        return;
    }
    http_head_remove_text(head, rule->name);
    for (unsigned i = 0; i < kept.field_count; i++)
        if (rule_names(rule, kept.fields[i].name))
            http_head_add(head, kept.fields[i].name, kept.fields[i].value);
}

static void apply_rule(const struct field_rule *rule, struct field_changes *changes) {
    switch (rule->action) {
    case FIELD_REPLACE:
        replace_named(rule, changes, changes->head);
        replace_named(rule, changes, changes->added);
        return;
    case FIELD_ADD:
        if (!changes->confirms || names_any(rule, changes->head) || names_any(rule, changes->added))
            add_field(changes, rule->name, rule_value(rule, changes));
        return;
    case FIELD_REMOVE:
    case FIELD_SET: break;
    }
    /* The value is written first: it may be about the field that it replaces. */
    struct slice value = rule->action == FIELD_SET ? rule_value(rule, changes) : slice_make("", 0);
    remove_named(rule, changes->head);
    remove_named(rule, changes->added);
    add_field(changes, rule->name, value);
}

void field_rules_apply(const struct field_rules *rules, struct field_changes *changes) {
    CHECK_OBJ(rules, FIELD_RULES_MAGIC);
    for (unsigned i = 0; i < rules->count; i++)
        apply_rule(&rules->list[i], changes);
}

bool field_changes_join(struct field_changes *changes) {
    for (unsigned i = 0; i < changes->added->field_count; i++)
        if (!http_head_add(changes->head, changes->added->fields[i].name,
                           changes->added->fields[i].value))
            return false;
    return true;
}

struct slice field_changes_lines(const struct field_changes *changes) {
    const struct http_head *added = changes->added;
    size_t length = 0;
    for (unsigned i = 0; i < added->field_count; i++)
        length += added->fields[i].name.length + added->fields[i].value.length + 4;
    char *lines = arena_alloc(changes->arena, length + 1), *at = lines;
    for (unsigned i = 0; i < added->field_count; i++) {
        at = slice_put(at, added->fields[i].name);
        at = slice_put(at, SLICE(": "));
        at = slice_put(at, added->fields[i].value);
        at = slice_put(at, SLICE("\r\n"));
    }
    return slice_make(lines, (size_t)(at - lines));
}
