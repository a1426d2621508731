/*
 * A plan of settings: what a snapshot is made from. It has the parsed files, what is saved of
 * earlier changes, and what was changed since the start without being saved. settings_change.c loads what
 * comes of the three.
 *
 *     struct settings_plan plan = {.document = document_parse(path, settings_table(), &faults)};
 *     if (!settings_plan_read(&plan, &faults)) ...
 *     struct document *document = settings_plan_document(&plan, &dropped);
 *     ... load the document ...
 *     document_free(&document);
 *     settings_plan_release(&plan);
 *
 * What is changed now takes the place of what is saved, by name. Then whole options are applied,
 * saved ones first, and elements of lists after them. So it does not matter in which order changes
 * were made, or which of them are saved.
 *
 * Threads: a plan belongs to its caller.
 */
#ifndef RETORT_ADMIN_SETTINGS_PLAN_H
#define RETORT_ADMIN_SETTINGS_PLAN_H

#include "admin/overrides.h"
#include "config/document.h"

struct settings_plan {
    enum settings_purpose purpose;
    bool quiet; /* nothing is logged */
    struct document *document;
    struct overrides *saved, *changes; /* NULL: those of the file, and none */
};

/* Copies what a snapshot was made from. */
struct settings_plan settings_plan_of(const struct settings *settings);
/* The same, as a start would find it: without what is not saved, but with the change of this name (NULL: none). */
struct settings_plan settings_plan_of_start(const struct settings *settings, const char *with);
void settings_plan_release(struct settings_plan *plan);

/* Reads the file of saved_settings, unless the plan has what is saved. False: after a fault. */
bool settings_plan_read(struct settings_plan *plan, struct faults *faults);
/* Puts the changes that somebody asks for into the plan; `keep`: among what is saved. Returns them,
 * under the names that the plan has for them. NULL with a sentence: a section or an element is not
 * there, or a value would not be the one in use. The caller frees them. */
struct overrides *settings_plan_join(struct settings_plan *plan, const struct overrides *asked,
                                     bool keep, char error[SETTINGS_ERROR]);
/* Does the plan come out with these changes in use? False with a sentence. Marks those that are
 * lost. */
bool settings_plan_holds(const struct settings_plan *plan, struct overrides *asked,
                         char error[SETTINGS_ERROR]);
/* What comes of the plan. Changes without effect that are not saved are forgotten. The caller frees
 * the document. */
struct document *settings_plan_document(struct settings_plan *plan, struct findings *dropped);
/* The file of saved_settings. NULL: there is none. The caller frees it. */
char *settings_plan_saved_path(const struct settings_plan *plan);

#endif
