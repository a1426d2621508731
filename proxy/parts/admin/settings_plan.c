#include "admin/settings_plan.h"

#include "admin/option_path.h"
#include "admin/settings.h"
#include "base/assert.h"
#include "config/config_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *settings_plan_saved_path(const struct settings_plan *plan) {
    const struct document *document = plan->document;
    const struct document_value *value =
        document_value(document_section(document, "", NULL), "saved_settings");
    if (value == NULL || value->text[0] == '\0')
        return NULL;
    return config_file_beside(document_file(document, value->line), value->text);
}

bool settings_plan_read(struct settings_plan *plan, struct faults *faults) {
    char *path = plan->saved == NULL ? settings_plan_saved_path(plan) : NULL;
    if (path != NULL)
        plan->saved = overrides_read(path, plan->purpose, faults);
    else if (plan->saved == NULL)
        plan->saved = overrides_new();
    free(path);
    if (plan->changes == NULL)
        plan->changes = overrides_new();
    return plan->saved != NULL;
}

struct settings_plan settings_plan_of(const struct settings *settings) {
    const struct settings_plan *plan = admin_settings_of(settings)->plan;
    return (struct settings_plan){
        .document = document_copy(plan->document),
        .saved = overrides_copy(plan->saved),
        .changes = overrides_copy(plan->changes),
    };
}

struct settings_plan settings_plan_of_start(const struct settings *settings, const char *with) {
    struct settings_plan plan = settings_plan_of(settings);
    for (size_t i = plan.changes->count; i-- > 0;)
        if (with == NULL || strcmp(plan.changes->list[i].name, with) != 0)
            overrides_remove(plan.changes, plan.changes->list[i].name);
    return plan;
}

void settings_plan_release(struct settings_plan *plan) {
    document_free(&plan->document);
    overrides_free(&plan->saved);
    overrides_free(&plan->changes);
}

/* What is changed now takes the place of what is saved. */
static void cover_saved(struct overrides *saved, const struct overrides *changes) {
    for (size_t i = 0; i < changes->count; i++)
        overrides_remove(saved, changes->list[i].name);
}

struct document *settings_plan_document(struct settings_plan *plan, struct findings *dropped) {
    struct document *document = document_copy(plan->document);
    struct overrides *saved = overrides_copy(plan->saved);
    char *path = settings_plan_saved_path(plan);
    cover_saved(saved, plan->changes);
    int saved_place =
        saved->count == 0 ? 0 : document_add_file(document, path != NULL ? path : "saved_settings");
    int place = plan->changes->count == 0 ? 0 : document_add_file(document, SETTINGS_CHANGED);
    for (int elements = 0; elements <= 1; elements++) {
        overrides_apply(saved, elements, document, saved_place, dropped);
        overrides_apply(plan->changes, elements, document, place, dropped);
    }
    overrides_remove_lost(plan->changes);
    overrides_free(&saved);
    free(path);
    return document;
}

/* Changes that somebody asks for. */

/* limit.all.burst and limit.all#1.burst are one option while there is one such section. Returns the
 * other name; NULL: there is none. The caller frees it. */
static char *other_name(const struct document *document, const char *name) {
    char reason[400], *other = NULL;
    struct option_path path;
    bool good = option_path_parse(&path, name, reason, sizeof reason);
    if (good && path.title != NULL && path.kind->repeats && path.number <= 1 &&
        option_path_count(document, path.kind, path.title) == 1) {
        path.number = path.number == 1 ? 0 : 1;
        other = option_path_name(&path);
    }
    option_path_release(&path);
    return other;
}

/* Calls each change by the name that the plan has for it already. */
static bool name_as_before(struct overrides *asked, const struct settings_plan *plan,
                           char error[SETTINGS_ERROR]) {
    bool good = true;
    for (size_t i = 0; good && i < asked->count; i++) {
        const char *name = asked->list[i].name;
        char *other = other_name(plan->document, name);
        if (other != NULL && overrides_find(asked, other) != NULL) {
            snprintf(error, SETTINGS_ERROR, "%.500s and %.500s are the same option: write one",
                     name, other);
            good = false;
        } else if (other != NULL && (overrides_find(plan->saved, other) != NULL ||
                                     overrides_find(plan->changes, other) != NULL)) {
            overrides_rename(asked, name, other);
        }
        free(other);
    }
    return good;
}

/* "As the files say" says nothing where nothing is saved. */
static void forget_undone(struct overrides *overrides, const struct overrides *saved) {
    for (size_t i = overrides->count; i-- > 0;)
        if (overrides->list[i].values == NULL &&
            (saved == NULL || overrides_find(saved, overrides->list[i].name) == NULL))
            overrides_remove(overrides, overrides->list[i].name);
}

static void put_into_plan(struct settings_plan *plan, const struct overrides *asked, bool keep) {
    overrides_join(keep ? plan->saved : plan->changes, asked);
    if (keep)
        cover_saved(plan->changes, asked);
    forget_undone(plan->saved, NULL);
    forget_undone(plan->changes, plan->saved);
}

/* The first value at `from` or behind it that is one of the option. */
static size_t value_behind(const struct document_section *section, const struct option *option,
                           size_t from) {
    while (from < section->value_count && section->values[from].option != option)
        from++;
    return from;
}

/* NULL: both have the same values of the option. */
static const char *first_difference(const struct document_section *a,
                                    const struct document_section *b, const struct option *option) {
    size_t i = value_behind(a, option, 0), j = value_behind(b, option, 0);
    while (i < a->value_count && j < b->value_count) {
        if (strcmp(a->values[i].text, b->values[j].text) != 0)
            return a->values[i].text;
        i = value_behind(a, option, i + 1);
        j = value_behind(b, option, j + 1);
    }
    return i < a->value_count ? a->values[i].text : j < b->value_count ? "" : NULL;
}

static bool value_is_in_use(const struct override *asked, const struct document *result,
                            const struct document *repeated, char error[SETTINGS_ERROR]) {
    struct option_path path = override_path(asked);
    size_t section = option_path_find(&path, result);
    const char *other = section == SIZE_MAX
                            ? NULL
                            : first_difference(&result->sections[section],
                                               &repeated->sections[section], path.option);
    if (asked->lost)
        snprintf(error, SETTINGS_ERROR,
                 "%.500s would have no effect, because the list is changed to one without this "
                 "element",
                 asked->name);
    else if (other != NULL)
        snprintf(error, SETTINGS_ERROR,
                 "%.500s would not be as you write it: one of its elements, or the option by "
                 "another name, was changed by itself to \"%.500s\" (see retortctl diff); unset "
                 "that first, or write the element so",
                 asked->name, other);
    option_path_release(&path);
    return !asked->lost && other == NULL;
}

/* What is asked for, repeated on the result, changes nothing there. */
bool settings_plan_holds(const struct settings_plan *plan, struct overrides *asked,
                         char error[SETTINGS_ERROR]) {
    struct findings dropped = {0};
    struct settings_plan copy = {.document = plan->document, .saved = plan->saved};
    copy.changes = overrides_copy(plan->changes);
    struct document *result = settings_plan_document(&copy, &dropped);
    struct document *repeated = document_copy(result);
    overrides_apply(asked, false, repeated, 0, &dropped);
    overrides_apply(asked, true, repeated, 0, &dropped);
    bool good = true;
    for (size_t i = 0; good && i < asked->count; i++)
        good = asked->list[i].values == NULL ||
               value_is_in_use(&asked->list[i], result, repeated, error);
    document_free(&repeated);
    document_free(&result);
    overrides_free(&copy.changes);
    return good;
}

struct overrides *settings_plan_join(struct settings_plan *plan, const struct overrides *changes,
                                     bool keep, char error[SETTINGS_ERROR]) {
    struct findings dropped = {0};
    struct overrides *asked = overrides_copy(changes);
    struct document *document = settings_plan_document(plan, &dropped);
    overrides_apply(asked, false, document, 0, &dropped);
    bool good =
        name_as_before(asked, plan, error) && overrides_fit(asked, document, error, SETTINGS_ERROR);
    document_free(&document);
    if (good) {
        put_into_plan(plan, asked, keep);
        good = settings_plan_holds(plan, asked, error);
    }
    if (!good)
        overrides_free(&asked);
    return asked;
}
