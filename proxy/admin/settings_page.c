#include "admin/settings_page.h"

#include "admin/outcome.h"
#include "base/log.h"
#include "settings/overrides.h"
#include "settings/settings_list.h"

#include <stdlib.h>
#include <string.h>

/* The settings in use, in the form that `make` gives them. */
static void show_made(struct page *page, const struct admin_calls *calls,
                      json_t *(*make)(const struct settings *settings)) {
    struct settings *settings = calls->settings(calls->context);
    page_json(page, 200, make(settings));
    settings_release(&settings);
}

static json_t *whole_settings(const struct settings *settings) {
    char *text = settings_to_json(settings);
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    return json;
}

static json_t *list_of_changes(const struct settings *settings) {
    return json_pack("{s:o}", "changes", settings_changes(settings));
}

void settings_page_show(struct page *page, const struct admin_calls *calls) {
    show_made(page, calls, whole_settings);
}

void settings_page_effective(struct page *page, const struct admin_calls *calls) {
    show_made(page, calls, settings_effective);
}

void settings_page_changes(struct page *page, const struct admin_calls *calls) {
    show_made(page, calls, list_of_changes);
}

void settings_page_schema(struct page *page, const struct admin_calls *calls) {
    (void)calls;
    page_json(page, 200, settings_schema());
}

void settings_page_list(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request) {
    const char *name = page_argument(request, "name");
    struct settings *settings = calls->settings(calls->context);
    json_t *list = settings_list(settings, name);
    settings_release(&settings);
    if (json_array_size(list) == 0) {
        json_decref(list);
        page_error(page, 404, "there is no option or section of that name; see retortctl get");
        return;
    }
    page_json(page, 200, json_pack("{s:o}", "options", list));
}

/* What came of it. */

/* Adds {"error": reason, "errors": [its lines]}. A reason may have bytes that JSON can't have. */
static void add_errors(json_t *json, const char *reason) {
    struct slice rest = slice_from(reason), line;
    json_t *lines = json_array();
    while (slice_next_line(&rest, &line))
        json_array_append_new(lines, json_stringn(line.base, line.length));
    if (json_object_set_new(json, "error", json_string(reason)) != 0)
        json_object_set_new(json, "error", json_string("see the error log"));
    json_object_set_new(json, "errors", lines);
}

static json_t *findings_to_json(const struct findings *findings) {
    json_t *list = json_array();
    for (unsigned i = 0; i < findings->count; i++)
        json_array_append_new(list, json_string(findings->text[i]));
    if (findings->more > 0)
        json_array_append_new(list, json_sprintf("and %u more", findings->more));
    return list;
}

/* The object that `json` begins; it is refused in part when something can't be used. */
static void answer_outcome(struct page *page, const struct settings_outcome *outcome,
                           json_t *json) {
    json_t *changed = settings_differences(outcome->before, outcome->after);
    json_t *refused = findings_to_json(&outcome->refused);
    bool whole = json_array_size(refused) == 0;
    page->changed = json_incref(changed);
    json_object_set_new(json, "changed", changed);
    json_object_set_new(json, "waits_for_restart", findings_to_json(&outcome->waits));
    json_object_set_new(json, "refused", refused);
    if (!whole)
        json_object_set_new(json, "error",
                            json_string("something in the configuration can not be used; the rest "
                                        "of it is in use"));
    page_json(page, whole ? 200 : 409, json);
}

static void answer_refusal(struct page *page, const struct settings_outcome *outcome) {
    json_t *json = json_object();
    add_errors(json, outcome->error);
    page_json(page, outcome->disk_failed ? 500 : 409, json);
}

/* The proxy logs the outcome, as after a signal. `not_applied` is the older name of both lists. */
void settings_page_reload(struct page *page, const struct admin_calls *calls) {
    struct settings_outcome outcome = {.error = ""};
    log_info("reload requested through the admin plane");
    if (calls->reload(calls->context, &outcome)) {
        json_t *left = findings_to_json(&outcome.waits),
               *refused = findings_to_json(&outcome.refused);
        json_array_extend(left, refused);
        json_decref(refused);
        answer_outcome(page, &outcome, json_pack("{s:b, s:o}", "reloaded", 1, "not_applied", left));
    } else {
        answer_refusal(page, &outcome);
    }
    settings_outcome_release(&outcome);
}

static void change_settings(struct page *page, const struct admin_calls *calls,
                            const struct page_request *request, const struct overrides *changes) {
    struct settings_outcome outcome = {.error = ""};
    const char *save = page_argument(request, "save");
    bool keep = save != NULL && (strcmp(save, "yes") == 0 || strcmp(save, "1") == 0);
    if (calls->change(calls->context, changes, keep, &outcome))
        answer_outcome(page, &outcome, json_pack("{s:b}", "saved", (int)keep));
    else
        answer_refusal(page, &outcome);
    settings_outcome_release(&outcome);
}

static void refuse_change(struct page *page, const char *name, const char *reason) {
    json_t *json = json_object(), *shown = json_string(name);
    add_errors(json, reason);
    json_object_set_new(json, "parameter", shown != NULL ? shown : json_string("?"));
    page_json(page, 400, json);
}

/* NULL: the page says what is wrong. */
static struct overrides *asked_changes(struct page *page, const json_t *asked) {
    char error[OVERRIDE_ERROR];
    struct overrides *changes = overrides_new();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)asked, name, value) {
        if (overrides_put(changes, name, value, 0, error, sizeof error))
            continue;
        refuse_change(page, name, error);
        overrides_free(&changes);
        return NULL;
    }
    return changes;
}

void settings_page_set(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request) {
    json_error_t where;
    json_t *asked =
        json_loadb(request->body.base, request->body.length, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(asked) || json_object_size(asked) == 0) {
        json_decref(asked);
        page_error(page, 400,
                   "the body must be a JSON object of names and values, such as {\"cache.memory\": "
                   "\"1GB\"}, and no name may be there twice");
        return;
    }
    struct overrides *changes = asked_changes(page, asked);
    json_decref(asked);
    if (changes == NULL)
        return;
    change_settings(page, calls, request, changes);
    overrides_free(&changes);
}

/* {"cache.memory": null} for one name, or for all that were changed. */
static json_t *names_to_unset(const struct admin_calls *calls, const char *name) {
    json_t *names = json_object(), *change;
    size_t i;
    if (name != NULL) {
        json_object_set_new(names, name, json_null());
        return names;
    }
    struct settings *settings = calls->settings(calls->context);
    json_t *list = settings_changes(settings);
    settings_release(&settings);
    json_array_foreach(list, i, change)
        json_object_set_new(names, json_string_value(json_object_get(change, "name")), json_null());
    json_decref(list);
    return names;
}

void settings_page_unset(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request) {
    const char *name = page_argument(request, "name"), *all = page_argument(request, "all");
    bool whole = all != NULL && (strcmp(all, "yes") == 0 || strcmp(all, "1") == 0);
    if ((name != NULL) == whole) {
        page_error(page, 400, "write the name of the option, or all, and not both");
        return;
    }
    json_t *names = names_to_unset(calls, name);
    struct overrides *changes = asked_changes(page, names);
    json_decref(names);
    if (changes == NULL)
        return;
    change_settings(page, calls, request, changes);
    overrides_free(&changes);
}
