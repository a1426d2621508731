/*
 * Rules that change the fields of a head: the options set, add, remove and replace of the sections
 * request_headers and response_headers, compiled once.
 *
 *     struct field_rules *rules = field_rules_new();
 *     if (!field_rules_add(rules, FIELD_SET, FIELD_OF_REQUEST, "X-Client: %{client_ip}", error,
 *                          sizeof error)) ...
 *
 *     struct field_changes changes = {.value = transaction_variable, .arg = transaction,
 *                                     .arena = &transaction->arena};
 *     field_changes_begin(&changes, head);                 NULL: none of the rules names its fields
 *     field_rules_apply(rules, &changes);                  section after section
 *     if (changes.failed || !field_changes_join(&changes)) ...
 *
 * The rules of a section apply in this order, whatever their order in the file: remove, replace,
 * set, add. Those of a later section see what earlier ones have made.
 *
 * Fields that frame a message, that belong to one connection or to the cache are refused when the
 * settings are loaded, and a name with '*' at its end never means them. A value has no control
 * characters, whatever its variables stand for, so it can not begin another field. A value that
 * comes out empty makes no field: set then only removes the one that was there.
 *
 * Threads: rules are read-only once loaded. Memory: the arena; the head must own its field list, and
 * its bytes are not changed.
 */
#ifndef RETORT_REWRITE_FIELD_RULES_H
#define RETORT_REWRITE_FIELD_RULES_H

#include "http/head.h"
#include "text/text_template.h"

enum field_action { FIELD_REMOVE, FIELD_REPLACE, FIELD_SET, FIELD_ADD };

/* Whose head it is, and where: each place has names that a rule must leave alone. */
enum field_place {
    FIELD_OF_REQUEST,  /* the client's, before services and the cache */
    FIELD_OF_OUTGOING, /* the request for the origin */
    FIELD_OF_RESPONSE, /* of the origin or for the client */
};

struct field_rules;

struct field_rules *field_rules_new(void);
void field_rules_free(struct field_rules **rulesp);
/* Adds a rule as it is written in the settings: "Name: value" to set and to add, "Name" or "Name-*"
 * to remove, "Name: /expression/replacement/" to replace all that the expression finds in a value.
 * Any character that is no letter, digit or blank may stand for '/'. Rules of one section are added
 * in the order of enum field_action. False: `error` says what is wrong. */
bool field_rules_add(struct field_rules *rules, enum field_action action, enum field_place place,
                     const char *text, char *error, size_t error_size);
/* Fields that the rules may add at most. */
unsigned field_rules_additions(const struct field_rules *rules);
/* Does a value name a field of the request or the response? */
bool field_rules_name_fields(const struct field_rules *rules);
/* Does a value name something that belongs to one client alone: its address, its name, its TLS, or a
 * field of its request? */
bool field_rules_name_client(const struct field_rules *rules);
/* Does a value tell who asks: the proven user, the user's groups, or the subject of the client's
 * certificate? */
bool field_rules_tell_user(const struct field_rules *rules);
/* Does a value name the class of the access section that decided? */
bool field_rules_tell_rule(const struct field_rules *rules);
/* Can this field go out with a value that does not follow from the URL and from the value that it
 * had before? `always`: any rule for it makes it such a field. */
bool field_rules_hide(const struct field_rules *rules, bool always, struct slice name);
/* Could a rule change one of these lines, "Name: value\r\n" behind a status line? */
bool field_rules_touch(const struct field_rules *rules, struct slice head_text);

/* What the rules of all sections make of one head. */
struct field_changes {
    struct slice (*value)(void *arg, enum variable variable, struct slice field);
    void *arg;
    struct arena *arena;
    bool confirms; /* the head is of a 304 that confirms a stored response: fields are added only to
                      those that it states, since all others stay as they are stored */
    struct http_head *head;  /* NULL: the fields are elsewhere, and no rule touches them */
    struct http_head *added; /* fields that are new */
    bool failed; /* a value grew beyond bounds, or an expression reached the limit of its work */
};

enum {
    FIELD_ADDITIONS_MAX = HTTP_FIELDS_MAX, /* fields that all sections together may add to a head */
    FIELD_VALUE_MAX = 32768,               /* bytes that a rule may make of a value */
    FIELD_FINDS_MAX = 1000,                /* replacements in one value */
};

void field_changes_begin(struct field_changes *changes, struct http_head *head);
/* The names of the fields that the rules are about to write or to take away, ",X-Role,X-User". Asked
 * before the rules apply. `by_class`: of all rules; else of those whose value tells who asks. In the
 * arena. */
struct slice field_rules_told(const struct field_rules *rules, bool by_class,
                              const struct field_changes *changes);
void field_rules_apply(const struct field_rules *rules, struct field_changes *changes);
/* Puts the new fields into the head. False: it has no room for them. */
bool field_changes_join(struct field_changes *changes);
/* The new fields as lines, "Name: value\r\n". */
struct slice field_changes_lines(const struct field_changes *changes);

#endif
