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

/* Where the "$" stands that begins the options; the text's length where it has none. */
size_t rule_options_find(struct slice text);
/* Reads the options, without the "$", into the rule. For RULE_UNSUPPORTED, reading->option names the
 * one that is not known. */
enum rule_parsed rule_options_parse(struct rule *rule, struct rule_reading *reading,
                                    struct slice text);

#endif
