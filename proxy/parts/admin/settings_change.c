#include "admin/settings_change.h"

#include "admin/overrides.h"
#include "admin/service_change.h"
#include "admin/settings.h"
#include "admin/settings_plan.h"
#include "base/assert.h"
#include "base/log.h"
#include "reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell_of_dropped(const struct findings *dropped, const struct settings *settings) {
    for (unsigned i = 0; settings != NULL && i < dropped->count; i++)
        log_warn("%s", dropped->text[i]);
}

/* The snapshot takes over what it was made from. */
static void keep_plan(struct settings *settings, struct settings_plan *plan) {
    struct admin_settings *mine = settings->parts[PART_ADMIN];
    mine->plan = xmalloc(sizeof *plan);
    *mine->plan = *plan;
    *plan = (struct settings_plan){.document = NULL};
}

struct document *settings_document(const struct settings *settings) {
    struct findings dropped = {0};
    struct settings_plan plan = *admin_settings_of(settings)->plan;
    plan.changes = overrides_copy(plan.changes);
    struct document *document = settings_plan_document(&plan, &dropped);
    overrides_free(&plan.changes);
    return document;
}

static struct settings *make_by_plan(struct settings_plan *plan, struct faults *faults) {
    struct findings dropped = {0};
    const struct settings_how how = {plan->purpose, plan->quiet, plan->document};
    if (!settings_plan_read(plan, faults))
        return NULL;
    struct document *document = settings_plan_document(plan, &dropped);
    struct settings *settings = settings_make(document, &how, faults);
    document_free(&document);
    if (!plan->quiet)
        tell_of_dropped(&dropped, settings);
    if (settings != NULL)
        keep_plan(settings, plan);
    return settings;
}

/* Takes what the plan has. `faults`: those of the document. */
static struct settings *make_of_plan(struct settings_plan *plan, struct faults *faults,
                                     char error[SETTINGS_ERROR]) {
    struct settings *settings = plan->document == NULL ? NULL : make_by_plan(plan, faults);
    if (settings == NULL)
        faults_join(faults, error, SETTINGS_ERROR);
    faults_release(faults);
    settings_plan_release(plan);
    return settings;
}

/* Would a start be possible with what stays of the snapshot, and with the change `with` (NULL: none), which does not,
 * so that what is asked for is in use? False with the faults. */
static bool could_start(const struct settings *settings, const char *with, struct overrides *asked,
                        char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct settings *alone = NULL;
    struct settings_plan plan = settings_plan_of_start(settings, with);
    plan.quiet = true;
    if (asked == NULL || settings_plan_holds(&plan, asked, error))
        alone = make_of_plan(&plan, &faults, error);
    bool good = alone != NULL;
    settings_plan_release(&plan);
    settings_release(&alone);
    return good;
}

/* Something stays that needs a change which does not: that whose option the faults name. A look loads the whole
 * configuration: so there is one, and several changes that are needed together are not told apart. */
static void say_what_is_needed(const struct settings *settings, struct overrides *asked,
                               char error[SETTINGS_ERROR]) {
    const struct overrides *unsaved = admin_settings_of(settings)->plan->changes;
    bool one = unsaved->count == 1;
    const char *named = one ? unsaved->list[0].name : overrides_named(unsaved, error, asked, &one);
    one = one && (unsaved->count == 1 || could_start(settings, named, asked, error));
    snprintf(error, SETTINGS_ERROR,
             "%.500s%s needs %.500s%s, which is not saved: save it too (--save), or retort could "
             "not start again",
             asked->list[0].name, asked->count > 1 ? " or another of these changes" : "",
             named != NULL ? named : unsaved->list[0].name, one ? "" : " or other changes");
}

static void say_more(char error[SETTINGS_ERROR], const char *line) {
    size_t length = strlen(error);
    snprintf(error + length, SETTINGS_ERROR - length, "\n%s", line);
}

/* Is something changed that does not stay? */
static bool has_unsaved(const struct settings *settings) {
    return admin_settings_of(settings)->plan->changes->count > 0;
}

/* What was changed before stays changed. */
struct settings *settings_load_with_changes(int purpose, const char *path,
                                            const struct settings *before, char *error) {
    struct faults faults = {0};
    struct settings_plan plan = {.document = document_parse(path, settings_table(), &faults),
                                 .purpose = (enum settings_purpose)purpose};
    if (before != NULL)
        plan.changes = overrides_copy(admin_settings_of(before)->plan->changes);
    struct settings *settings = make_of_plan(&plan, &faults, error);
    if (settings != NULL && has_unsaved(settings) && !could_start(settings, NULL, NULL, error)) {
        say_more(error, "this is hidden by what \"retortctl set\" has changed, but retort "
                        "could not start again");
        settings_release(&settings);
    }
    return settings;
}

/* Takes what the plan has. */
static struct settings *change_plan(struct settings_plan *plan, const struct overrides *changes,
                                    bool keep, char error[SETTINGS_ERROR]) {
    struct faults faults = {0};
    struct overrides *asked = settings_plan_join(plan, changes, keep, error);
    struct settings *settings = asked == NULL ? NULL : make_of_plan(plan, &faults, error);
    if (settings != NULL && keep && has_unsaved(settings) &&
        !could_start(settings, NULL, asked, error)) {
        say_what_is_needed(settings, asked, error);
        settings_release(&settings);
    }
    overrides_free(&asked);
    settings_plan_release(plan);
    return settings;
}

/* The snapshot with the changes over what was changed before. Reads no configuration again, but the
 * files that it names, and the section of the service `anew` (NULL: none). `keep`: the changes are saved,
 * and nothing is written yet. */
static struct settings *changed_settings(const struct settings *before, const char *anew,
                                         const struct overrides *changes, bool keep,
                                         char error[SETTINGS_ERROR]) {
    struct settings_plan plan = settings_plan_of(before);
    struct settings *settings = NULL;
    if (anew == NULL || service_change_read(&plan, before, anew, error))
        settings = change_plan(&plan, changes, keep, error);
    else
        settings_plan_release(&plan);
    if (settings != NULL)
        service_change_note(settings, before, anew);
    return settings;
}

/* A restart would drop what it is needed for. */
static bool would_be_lost(const struct overrides *changes, struct settings_outcome *outcome) {
    const char *name = overrides_at_start(changes);
    if (name == NULL)
        return false;
    snprintf(outcome->error, SETTINGS_ERROR,
             "%.200s waits for a restart, and a restart drops what is not saved: save the change "
             "too (--save)",
             name);
    return true;
}

/* The file is written as a whole: what somebody has written into it would be gone. */
static bool can_be_saved(const struct settings *settings, struct settings_outcome *outcome) {
    const struct settings_plan *plan = admin_settings_of(settings)->plan;
    char *path = settings_plan_saved_path(plan);
    bool can = path != NULL && overrides_are_in(plan->saved, path);
    if (path == NULL)
        snprintf(outcome->error, SETTINGS_ERROR,
                 "nothing can be saved: set saved_settings to a file in the configuration, and "
                 "reload");
    else if (!can)
        snprintf(outcome->error, SETTINGS_ERROR,
                 "%.1000s was changed since retort has read it: reload first (retortctl reload), "
                 "then repeat this",
                 path);
    free(path);
    return can;
}

/* What is saved must not keep the next start from starting. */
static bool may_save(const struct settings *old, const struct settings *new,
                     char error[SETTINGS_ERROR]) {
    PARTS_FOR_EACH (number, process.may_save)
        if (!part_table[number]->process.may_save(old, new, error))
            return false;
    return true;
}

struct asked_change {
    struct settings_change base;
    const struct overrides *changes;
    const char *anew;
};

static struct settings *change_make(struct settings_change *base, const struct settings *now,
                                    struct settings_outcome *outcome) {
    const struct asked_change *change = CONTAINER_OF(base, struct asked_change, base);
    bool keep = base->keep != NULL;
    if (keep ? !can_be_saved(now, outcome) : would_be_lost(change->changes, outcome))
        return NULL;
    struct settings *settings =
        changed_settings(now, change->anew, change->changes, keep, outcome->error);
    if (settings != NULL && keep && !may_save(now, settings, outcome->error))
        settings_release(&settings);
    return settings;
}

static bool change_keep(const struct settings *settings, struct settings_outcome *outcome) {
    const struct settings_plan *plan = admin_settings_of(settings)->plan;
    char *path = settings_plan_saved_path(plan);
    enum overrides_written written =
        overrides_write(plan->saved, path, outcome->error, SETTINGS_ERROR);
    free(path);
    outcome->disk_failed = written == OVERRIDES_FAILED;
    outcome->disk_unsure = written == OVERRIDES_UNSURE;
    return !outcome->disk_failed;
}

bool settings_change(struct server *server, const struct overrides *changes, bool keep,
                     const char *anew, struct settings_outcome *outcome) {
    struct asked_change change = {
        .base = {.what =
                     anew == NULL ? "a change of options" : "a change that starts a service anew",
                 .make = change_make,
                 .keep = keep ? change_keep : NULL},
        .changes = changes,
        .anew = anew,
    };
    bool good = server_change(server, &change.base, outcome);
    if (good)
        log_info("settings changed at run time%s", keep ? " and saved" : "");
    return good;
}
