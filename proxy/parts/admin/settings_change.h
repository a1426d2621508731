/*
 * Changes of options at run time: settings are loaded with them (admin/settings_plan.h), and come into use as by a
 * reload. What is to stay is written to the file of saved_settings first.
 *
 *     struct settings_outcome outcome = {.error = ""};
 *     if (!settings_change(server, changes, true, NULL, &outcome)) ... outcome.error: nothing has changed ...
 *
 * Threads: any.
 */
#ifndef RETORT_ADMIN_SETTINGS_CHANGE_H
#define RETORT_ADMIN_SETTINGS_CHANGE_H

#include "settings/settings.h"

struct overrides;
struct server;
struct settings_outcome;

/* `keep`: also in the file of saved_settings, before they are in use; `anew`: a service of the settings that
 * begins anew, with its section, its lists and its module as they are now; NULL: none. False: it is refused,
 * and nothing has changed. The caller releases the outcome. */
bool settings_change(struct server *server, const struct overrides *changes, bool keep,
                     const char *anew, struct settings_outcome *outcome);
/* Of struct part. */
struct settings *settings_load_with_changes(int purpose, const char *path,
                                            const struct settings *before, char *error);
/* What the files say, with what was changed at run time in its place. The caller frees it. */
struct document *settings_document(const struct settings *settings);

#endif
