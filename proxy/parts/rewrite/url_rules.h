/*
 * A rule that rewrites URLs: the options match and to of a rewrite section, compiled once.
 *
 *     struct url_rule *rule = url_rule_new("^http://old\\.example/(.*)", "https://new.example/$1",
 *                                          error, sizeof error);
 *     switch (url_rule_apply(rule, url_text, value, arg, arena, &rewritten)) {
 *     case URL_RULE_REWRITES: ... `rewritten` is a whole URL, or a path that begins with '/' ...
 *
 * The expression is searched in the whole URL, as it is normalised (http/url.h). What `to` makes
 * replaces all of the URL, not only what the expression found. Nobody has checked it yet: it is a
 * URL when url_parse says so.
 *
 * Threads: read-only once loaded. Memory: the arena.
 */
#ifndef RETORT_REWRITE_URL_RULES_H
#define RETORT_REWRITE_URL_RULES_H

#include "text/text_template.h"

struct url_rule;

/* NULL: `error` names the option and says what is wrong. */
struct url_rule *url_rule_new(const char *match, const char *to, char *error, size_t error_size);
void url_rule_free(struct url_rule **rulep);

enum url_rule_result {
    URL_RULE_DIFFERS, /* it is not for this URL */
    URL_RULE_REWRITES,
    URL_RULE_GAVE_UP, /* the expression reached the limit of its work */
};

enum url_rule_result url_rule_apply(const struct url_rule *rule, struct slice url,
                                    struct slice (*value)(void *arg, enum variable variable,
                                                          struct slice field),
                                    void *arg, struct arena *arena, struct slice *rewritten);

#endif
