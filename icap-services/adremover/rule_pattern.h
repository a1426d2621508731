/*
 * The pattern of a rule: what stands in front of its options, `||ads.example^` or `/banner[0-9]/`.
 *
 *     enum rule_parsed parsed = rule_pattern_parse(&rule, &reading, text, true);
 *
 * Called by rule_parse (rule.h), once the options are read. Threads: values.
 */
#ifndef RETORT_ADREMOVER_RULE_PATTERN_H
#define RETORT_ADREMOVER_RULE_PATTERN_H

#include "adremover/rule.h"

/* `any_options`: the rule has options, so its pattern may be empty. */
enum rule_parsed rule_pattern_parse(struct rule *rule, struct rule_reading *reading,
                                    struct slice text, bool any_options);
/* Makes a copy of the text the pattern of the rule; in lower case unless the rule matches case. */
void rule_pattern_keep(struct rule *rule, struct rule_reading *reading, struct slice text);
/* Is the whole text the name of a host? */
bool rule_pattern_is_host(struct slice text);

#endif
