/*
 * The settings as a list of options, for those who change and compare them: each with its name
 * (admin/option_path.h), its value, and where the value comes from.
 *
 *     json_t *list = settings_list(settings, "cache");
 *     [{"name": "cache.memory", "value": "1GB", "from": "/etc/retort/retort.conf:12",
 *       "change": "now"}, ...]
 *
 * An option that only a start applies has "at_start": true, and "waits" with the value of the next
 * start where that is another one than the value in use.
 *
 * `from` is FILE:LINE, the file of saved_settings, "retortctl set" or "default". `change` says when
 * "retortctl set" has an effect: now, restart, or never ("file"). Secrets are not shown. A value is
 * null where none is set and the default is not a fixed value.
 *
 * Threads: any; a snapshot is constant.
 */
#ifndef RETORT_ADMIN_SETTINGS_LIST_H
#define RETORT_ADMIN_SETTINGS_LIST_H

#include "admin/overrides.h"
#include "settings/options.h"
#include "settings/settings.h"

#include <jansson.h>

/* The option of that name, or the element of a list; or all whose names begin with it and a dot;
 * NULL: all. */
json_t *settings_list(const struct settings *settings, const char *name);
/* [{"name", "old", "new", "waits"}] for each option whose value differs; an option of a section that is not
 * there is null. "waits" is there for options that only a start applies: `old` is what is in use,
 * and `new`, if it is true, what a restart will make of it. Both are "(not shown)" where a secret differs. */
json_t *settings_differences(const struct settings *before, const struct settings *after);
/* What was changed at run time: [{"name", "value", "configured", "saved"}] */
json_t *settings_changes(const struct settings *settings);
/* {name: value, or a list of values, or null}. None of them is a secret. */
json_t *overrides_to_json(const struct overrides *overrides);
/* As overrides_put: a string, number or boolean, or a list of them; null: as the files say. */
bool overrides_put_json(struct overrides *overrides, const char *name, const json_t *value,
                        char *error, size_t error_size);
/* The value of an option in its destination. Sizes and times become strings as in the file ("512MB", "5s"). */
json_t *value_to_json(const struct option *option, const void *source);
/* A value as it is written: of each text, or of the default if `texts` is NULL. Null: there is no default, or a text
 * is wrong. */
json_t *value_text_to_json(const struct option *option, char *const *texts);
/* Every option of the snapshot with its value. Secrets are left out. */
json_t *settings_json(const struct settings *settings);
/* Likewise, as text, which the caller frees. */
char *settings_to_json(const struct settings *settings);
/* A JSON schema (draft 7) of what settings_to_json writes, with "from". */
json_t *settings_schema(void);
/* settings_to_json with "from", an object of names and places. */
json_t *settings_effective(const struct settings *settings);

#endif
