/*
 * The kinds of sections that say what happens to the requests of a URL class. The settings have one
 * set of rules (match/rules.h) with a rule for each of these sections, kind after kind, in the
 * order of the file.
 *
 *     const uint64_t *bits = request_rules(transaction);
 *     size_t count = settings->rule_count[RULE_ADAPT];
 *     for (size_t i = settings_next_rule(settings, RULE_ADAPT, bits, 0); i < count;
 *          i = settings_next_rule(settings, RULE_ADAPT, bits, i + 1))
 *         ... settings->adapts[i] matches ...
 *
 * A new kind is a member of the enum and a row of the table in rule_kinds.c, or a place among the settings of a part
 * (part_settings.h). Its sections stand in an array; the struct of each has a member `url_class`.
 *
 * Threads: read-only once the settings are loaded.
 */
#ifndef RETORT_SETTINGS_RULE_KINDS_H
#define RETORT_SETTINGS_RULE_KINDS_H

#include <stddef.h>

enum rule_kind {
    RULE_POLICY,
    RULE_ADAPT,
    RULE_PARENT,
    RULE_ACCESS,
    RULE_LIMIT,
    RULE_REQUEST_HEADERS,
    RULE_RESPONSE_HEADERS,
    RULE_REWRITE,
    RULE_ERROR_PAGE,
    RULE_KINDS,
};

struct settings;
struct url_class;

/* How many sections of that kind there are, and the class of one of them. */
size_t rule_kind_count(const struct settings *settings, enum rule_kind kind);
const struct url_class *rule_kind_class(const struct settings *settings, enum rule_kind kind,
                                        size_t at);
/* The name of such a section in the configuration file. */
const char *rule_kind_name(enum rule_kind kind);
/* Makes settings->rules and the numbers of its rules, once all sections are loaded. */
void rule_kinds_make_rules(struct settings *settings);

#endif
