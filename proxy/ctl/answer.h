/*
 * An answer of retort or retort-helperd, for people: JSON in which nothing steers their terminal.
 *
 *     json_t *json = answer_load(body, length);          NULL when it is no JSON
 *     printf("%s\n", json_string_value(...));
 *
 * URLs, names and errors come from clients, origins and ICAP servers. Of their texts, what
 * text_is_hidden() names reads as "\u001b" then; all else is as it was.
 *
 * Threads: values.
 */
#ifndef RETORT_CTL_ANSWER_H
#define RETORT_CTL_ANSWER_H

#include <jansson.h>

json_t *answer_load(const char *body, size_t length);
/* The same of JSON that is there already. */
void answer_show(json_t *json);

#endif
