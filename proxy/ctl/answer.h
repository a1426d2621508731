/*
 * An answer of retort or retort-helperd for people: JSON without control characters for terminals.
 *
 *     json_t *json = answer_load(body, length);          NULL when it is no JSON
 *     printf("%s\n", json_string_value(...));
 *
 * URLs, names and errors come from clients, origins and ICAP servers. Characters for which
 * text_is_hidden() is true are replaced by escapes such as "\u001b". All others do not change.
 *
 * Threads: values.
 */
#ifndef RETORT_CTL_ANSWER_H
#define RETORT_CTL_ANSWER_H

#include <jansson.h>

json_t *answer_load(const char *body, size_t length);
/* Does the same for JSON that is already parsed. */
void answer_show(json_t *json);

#endif
