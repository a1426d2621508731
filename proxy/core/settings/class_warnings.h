/*
 * Warnings about URL classes and the sections for them that do nothing: classes that no request can
 * match, classes that no section names, and sections that are never reached. retort -t shows them,
 * and so do a start and a reload.
 *
 *     class_warnings(load);                                   once all sections are loaded
 *     class_warnings_shadowed(load, RULE_PARENT, NULL);       of a kind where the first one decides
 *
 * Threads: the caller's of settings_load.
 */
#ifndef RETORT_SETTINGS_CLASS_WARNINGS_H
#define RETORT_SETTINGS_CLASS_WARNINGS_H

#include "settings/load.h"

void class_warnings(const struct load *load);
/* Of a kind of sections of which the first that matches decides: warns about each behind one that
 * matches all its requests. `ends`: whether a section ends the search; NULL: each does. */
void class_warnings_shadowed(const struct load *load, enum rule_kind kind,
                             bool (*ends)(const struct settings *settings, size_t at));

#endif
