/*
 * The pools of retort-helperd as options, so that "retortctl set", "get" and "diff" know them:
 *
 *     helper.gray.nice            the nice level of the pool gray
 *     helper.gray.processes       how many processes it keeps
 *
 * The values are retort-helperd's, which is asked each time (admin/helperd_call.h). "helpers renice"
 * and "helpers resize" change the same values. They last until retort-helperd ends or reads its
 * configuration again: saved_settings can't keep them, its configuration can.
 *
 *     if (helper_options_include("helper.gray.nice")) ...
 *     json_t *rows = helper_options_list(mine->helpers, "helper.gray", error);
 *     json_t *changed = helper_options_change(path, wanted, error);
 *
 * Threads: any. Ownership: the caller releases what is returned. Errors: NULL with a sentence.
 */
#ifndef RETORT_ADMIN_HELPER_OPTIONS_H
#define RETORT_ADMIN_HELPER_OPTIONS_H

#include "admin/helperd_call.h"

#include <stdbool.h>

/* Is it "helper", or does it begin with "helper."? */
bool helper_options_include(const char *name);
/* The option of that name, or all whose names begin with it and a dot; NULL: all. The rows are as
 * settings_list has them. */
json_t *helper_options_list(const char *path, const char *name, char error[HELPERD_CALL_ERROR]);
/* What differs from the configuration of retort-helperd; rows as settings_changes has them. */
json_t *helper_options_changes(const char *path, char error[HELPERD_CALL_ERROR]);
/* Changes all options of the object {"helper.gray.nice": 19, ...}, or none. A value is a number or its
 * text; null: as retort-helperd's configuration says. Returns [{"name", "old", "new"}] of those that
 * were not so already. */
json_t *helper_options_change(const char *path, const json_t *wanted,
                              char error[HELPERD_CALL_ERROR]);

#endif
