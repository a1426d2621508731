/*
 * The options of a rule: what stands behind the "$" of `||ads.example^$script,domain=news.example`.
 *
 *     size_t at = rule_options_find(text);        text.length: there are none
 *     enum rule_parsed parsed = rule_options_parse(&rule, &reading, options);
 *
 * Called by rule_parse (rule.h). Threads: values.
 */
#ifndef RETORT_ADREMOVER_RULE_OPTIONS_H
#define RETORT_ADREMOVER_RULE_OPTIONS_H

#include "adremover/rule.h"

/* The place of the "$" that begins the options, or the length of the text when it has no
 * options. */
size_t rule_options_find(struct slice text);
/* Reads the options, without the "$", into the rule. With RULE_UNSUPPORTED, reading->option is the
 * name of the option that is not known. */
enum rule_parsed rule_options_parse(struct rule *rule, struct rule_reading *reading,
                                    struct slice text);
/* The names of all options, one after the other; empty behind the last. Tests walk them. */
struct slice rule_options_name(size_t at);

#endif
