/*
 * What a change at run time means for services: which of them it leaves as they are, and the section
 * of one of them as the files of the configuration have it now.
 *
 *     struct settings_plan plan = settings_plan_of(before);
 *     if (!service_change_read(&plan, before, "gray", error)) ...      it has its section of now
 *     ... settings are made of the plan ...
 *     service_change_note(settings, before, "gray");     services[i].as_before: all but gray, and
 *                                                        those whose options have changed
 *
 * A service that is as before goes on with its instance (inside/instance.h), so that a change of
 * something else does not read its lists again. A reload starts all of them anew.
 *
 * Threads: plans and settings belong to the caller. Errors: a sentence.
 */
#ifndef RETORT_ADMIN_SERVICE_CHANGE_H
#define RETORT_ADMIN_SERVICE_CHANGE_H

#include "admin/settings_plan.h"

/* `before` has the service. False: the files can't be read, or have it no more. */
bool service_change_read(struct settings_plan *plan, const struct settings *before,
                         const char *service, char error[SETTINGS_ERROR]);
/* `anew`: a service that begins anew in any case; NULL: none does. */
void service_change_note(struct settings *settings, const struct settings *before,
                         const char *anew);

#endif
