#include "rewrite/url_rules.h"

#include "base/assert.h"
#include "http/bytes.h"
#include "match/regex.h"

#include <stdio.h>

struct url_rule {
    unsigned magic;
#define URL_RULE_MAGIC 0x0fe11u
    struct regex *match;
    struct text_template *to;
};

/* Text that no URL can have would make every rewritten URL unusable. */
static bool may_be_url(const char *to) {
    for (const char *at = to; *at != '\0'; at++)
        if (!bytes_is(*at, BYTES_TARGET))
            return false;
    return to[0] != '\0';
}

struct url_rule *url_rule_new(const char *match, const char *to, char *error, size_t error_size) {
    struct url_rule *rule;
    char reason[400] = "is empty, or has a blank or a control character";
    ALLOC_OBJ(rule, URL_RULE_MAGIC);
    rule->match = regex_new(match, reason, sizeof reason);
    if (rule->match == NULL) {
        snprintf(error, error_size, "match: \"%s\" %s", match, reason);
        url_rule_free(&rule);
        return NULL;
    }
    if (may_be_url(to))
        rule->to =
            text_template_new_for_groups(to, regex_groups(rule->match), reason, sizeof reason);
    if (rule->to == NULL) {
        snprintf(error, error_size, "to: \"%s\": %s", to, reason);
        url_rule_free(&rule);
    }
    return rule;
}

void url_rule_free(struct url_rule **rulep) {
    struct url_rule *rule = *rulep;
    *rulep = NULL;
    if (rule == NULL)
        return;
    CHECK_OBJ(rule, URL_RULE_MAGIC);
    regex_free(&rule->match);
    text_template_free(&rule->to);
    FREE_OBJ(rule);
}

/* The groups of what was found, and the variables of the request. */
struct url_rule_values {
    struct slice groups[REGEX_GROUPS];
    struct slice (*value)(void *arg, enum variable variable, struct slice field);
    void *arg;
};

static struct slice url_rule_value(void *arg, enum variable variable, struct slice field) {
    const struct url_rule_values *values = arg;
    return variable >= VARIABLE_GROUP ? values->groups[variable - VARIABLE_GROUP]
                                      : values->value(values->arg, variable, field);
}

enum url_rule_result url_rule_apply(const struct url_rule *rule, struct slice url,
                                    struct slice (*value)(void *arg, enum variable variable,
                                                          struct slice field),
                                    void *arg, struct arena *arena, struct slice *rewritten) {
    struct url_rule_values values = {.value = value, .arg = arg};
    CHECK_OBJ(rule, URL_RULE_MAGIC);
    switch (regex_search(rule->match, url, 0, values.groups)) {
    case REGEX_NOT_FOUND: return URL_RULE_DIFFERS;
    case REGEX_GAVE_UP: return URL_RULE_GAVE_UP;
    case REGEX_FOUND: break;
    }
    *rewritten = text_template_write(rule->to, url_rule_value, &values, TEXT_URL, arena);
    return URL_RULE_REWRITES;
}
