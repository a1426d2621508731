/*
 * Values as they may be shown: to operators of the admin plane, in the audit log and in messages.
 * What proves who somebody is does not appear; its option and its field do.
 *
 *     char *text = shown_value(option, "Authorization: Bearer abc");     "Authorization: (not shown)"
 *     free(text);
 *
 * Which values are secret is said by `secret` in the option's row:
 *
 *     OPTION_SECRET          the whole value
 *     OPTION_SECRET_FIELD    "Name: value": the value, unless it has nothing but variables (%{...})
 *     OPTION_SECRET_NAMED    "Name: value": the value, if the name is one of credentials
 *
 * A user and a password in a URL are secret in every option.
 *
 * Threads: values.
 */
#ifndef RETORT_CONFIG_SHOWN_H
#define RETORT_CONFIG_SHOWN_H

#include "config/option.h"

/* The caller frees the texts. */
char *shown_text(const char *text); /* a message, with URLs that somebody has written */
char *shown_value(const struct option *option, const char *text);
/* Is anything of it not shown? */
bool shown_hides(const struct option *option, const char *text);
/* Is it more than a text that is only not shown: would somebody who reads it have credentials? */
bool shown_is_credential(const struct option *option, const char *text);

#endif
