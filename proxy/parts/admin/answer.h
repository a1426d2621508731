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
#ifndef RETORT_ADMIN_ANSWER_H
#define RETORT_ADMIN_ANSWER_H

#include "base/slice.h"

#include <jansson.h>

enum { ANSWER_SHOWN = 12 }; /* the longest escape of a character: a surrogate pair */

/* Takes the first character off the front of the text, which is not empty, and writes it as it is shown. Returns what is behind it. */
char *answer_put(char *at, struct slice *text);
json_t *answer_load(const char *body, size_t length);
/* Does the same for JSON that is already parsed. */
void answer_show(json_t *json);

#endif
