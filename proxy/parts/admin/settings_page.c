#include "admin/settings_page.h"

#include "admin/cache_call.h"
#include "admin/helper_options.h"
#include "admin/helperd_patience.h"
#include "admin/overrides.h"
#include "admin/settings.h"
#include "admin/settings_list.h"
#include "base/log.h"
#include "settings/outcome.h"

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

/* The pools of helpers as well, if retort-helperd answers. */
static json_t *list_of_changes(const struct settings *settings) {
    char error[HELPERD_CALL_ERROR];
    json_t *changes = settings_changes(settings);
    json_t *helpers = helper_options_changes(admin_settings_of(settings)->helpers, error);
    if (helpers != NULL)
        json_array_extend(changes, helpers);
    json_decref(helpers);
    return json_pack("{s:o}", "changes", changes);
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
    char error[HELPERD_CALL_ERROR];
    const char *name = page_argument(request, "name");
    bool of_helpers = name != NULL && helper_options_include(name);
    struct settings *settings = calls->settings(calls->context);
    json_t *list = settings_list(settings, name), *helpers = NULL;
    if (name == NULL || of_helpers)
        helpers = helper_options_list(admin_settings_of(settings)->helpers, name, error);
    settings_release(&settings);
    if (of_helpers && helpers == NULL) {
        json_decref(list);
        page_error(page, 503, error);
        return;
    }
    if (helpers != NULL)
        json_array_extend(list, helpers);
    json_decref(helpers);
    if (json_array_size(list) == 0) {
        json_decref(list);
        page_error(page, 404, "there is no option or section of that name; see retortctl get");
        return;
    }
    page_json(page, 200, json_pack("{s:o}", "options", list));
}

/* What came of it. */

/* Adds {"error": reason, "errors": [its lines]}. */
static void add_errors(json_t *json, const char *reason) {
    struct slice rest = slice_from(reason), line;
    json_t *lines = json_array();
    while (slice_next_line(&rest, &line))
        json_array_append_new(lines, cache_call_text(line));
    json_object_set_new(json, "error", cache_call_text(slice_from(reason)));
    json_object_set_new(json, "errors", lines);
}

static json_t *findings_to_json(const struct findings *findings) {
    json_t *list = json_array();
    for (unsigned i = 0; i < findings->count; i++)
        json_array_append_new(list, cache_call_text(slice_from(findings->text[i])));
    if (findings->more > 0)
        json_array_append_new(list, json_sprintf("and %u more", findings->more));
    return list;
}

/* The object that `json` begins, with `more` among what has changed (NULL: nothing); it is refused in part when something can't be used. */
static void answer_outcome(struct page *page, const struct settings_outcome *outcome, json_t *json,
                           json_t *more) {
    json_t *changed = settings_differences(outcome->before, outcome->after);
    if (more != NULL)
        json_array_extend(changed, more);
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
    if (outcome->disk_unsure)
        add_errors(json, outcome->error);
    page_json(page, outcome->disk_unsure ? 500 : whole ? 200 : 409, json);
}

static void answer_refusal(struct page *page, const struct settings_outcome *outcome) {
    json_t *json = json_object();
    add_errors(json, outcome->error);
    page_json(page, outcome->busy ? 503 : outcome->disk_failed ? 500 : 409, json);
    page->repeat = outcome->busy;
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
        answer_outcome(page, &outcome, json_pack("{s:b, s:o}", "reloaded", 1, "not_applied", left),
                       NULL);
    } else {
        answer_refusal(page, &outcome);
    }
    settings_outcome_release(&outcome);
}

/* Pools of helpers. */

static bool wants_save(const struct page_request *request) {
    const char *save = page_argument(request, "save");
    return save != NULL && (strcmp(save, "yes") == 0 || strcmp(save, "1") == 0);
}

static size_t count_helper_options(const json_t *asked) {
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)asked, name, value) count += helper_options_include(name);
    return count;
}

/* By who has the turn. */
static void change_pools(struct page *page, const struct admin_calls *calls, const json_t *asked) {
    char error[HELPERD_CALL_ERROR] = "";
    struct settings *settings = calls->settings(calls->context);
    json_t *changed = helper_options_change(admin_settings_of(settings)->helpers, asked, error);
    settings_release(&settings);
    page->asked = json_deep_copy(asked);
    if (changed == NULL) {
        page_error(page, 409, error);
        return;
    }
    page->changed = json_incref(changed);
    page_json(page, 200,
              json_pack("{s:b, s:o, s:[], s:[]}", "saved", 0, "changed", changed,
                        "waits_for_restart", "refused"));
}

/* True: the change is about pools, and the page has the answer. */
static bool answer_for_pools(struct page *page, const struct admin_calls *calls,
                             const struct page_request *request, const json_t *asked) {
    char reason[TURN_REASON];
    size_t count = count_helper_options(asked);
    if (count == 0)
        return false;
    if (count < json_object_size(asked)) {
        page_error(page, 400,
                   "helper options belong to retort-helperd, which can't change together with the "
                   "proxy: change them in a call of their own");
        return true;
    }
    if (wants_save(request)) {
        page_error(page, 400,
                   "helper options can't be saved here, because retort-helperd has a "
                   "configuration of its own: write nice and processes into the section of the "
                   "pool in helperd.conf, and run retortctl helpers reload");
        return true;
    }
    if (turn_take(&helperd_patience_turn, HELPERD_PATIENCE_WHAT, reason)) {
        change_pools(page, calls, asked);
        turn_end(&helperd_patience_turn);
    } else {
        page_busy(page, reason);
    }
    return true;
}

/* {"cache.memory": null, ...} for all that were changed. */
static json_t *names_of_changes(const json_t *changes) {
    json_t *names = json_object(), *change;
    size_t i;
    json_array_foreach(changes, i, change)
        json_object_set_new(names, json_string_value(json_object_get(change, "name")), json_null());
    return names;
}

/* Makes pools again what retort-helperd's configuration says. Returns what has changed; NULL: nothing.
 * The proxy's own changes are made already, so a failure is a finding. Changes of pools end with
 * retort-helperd, so there are none where none runs. */
static json_t *unset_pools(const struct admin_calls *calls, struct findings *refused) {
    char error[HELPERD_CALL_ERROR] = "";
    struct settings *settings = calls->settings(calls->context);
    const char *path = admin_settings_of(settings)->helpers;
    json_t *changes = helper_options_changes(path, error);
    json_t *names = names_of_changes(changes), *changed = NULL;
    bool any = json_object_size(names) > 0;
    if (any)
        changed = helper_options_change(path, names, error);
    if (any ? changed == NULL : changes == NULL && helperd_call_finds_one(path))
        findings_add(refused, "helper: the pools stay as they are, because %s", error);
    settings_release(&settings);
    json_decref(changes);
    json_decref(names);
    return changed;
}

void settings_page_change(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request, const struct overrides *changes,
                          const char *anew, json_t *begin) {
    struct settings_outcome outcome = {.error = ""};
    bool keep = wants_save(request);
    page->asked = overrides_to_json(changes);
    json_object_set_new(begin, "saved", json_boolean(keep));
    if (calls->change(calls->context, changes, keep, anew, &outcome)) {
        answer_outcome(page, &outcome, begin, NULL);
    } else {
        answer_refusal(page, &outcome);
        json_decref(begin);
    }
    settings_outcome_release(&outcome);
}

/* `pools_too`: those of helpers become as configured. */
static void change_settings(struct page *page, const struct admin_calls *calls,
                            const struct page_request *request, const struct overrides *changes,
                            bool pools_too) {
    struct settings_outcome outcome = {.error = ""};
    json_t *more = NULL;
    bool keep = wants_save(request);
    page->asked = overrides_to_json(changes);
    bool changed = calls->change(calls->context, changes, keep, NULL, &outcome);
    if (changed && pools_too) {
        turn_await(&helperd_patience_turn, HELPERD_PATIENCE_WHAT);
        more = unset_pools(calls, &outcome.refused);
        turn_end(&helperd_patience_turn);
    }
    if (changed)
        answer_outcome(page, &outcome, json_pack("{s:b}", "saved", (int)keep), more);
    else
        answer_refusal(page, &outcome);
    json_decref(more);
    settings_outcome_release(&outcome);
}

static void refuse_change(struct page *page, const char *name, const char *reason) {
    json_t *json = json_object();
    add_errors(json, reason);
    json_object_set_new(json, "parameter", cache_call_text(slice_from(name)));
    page_json(page, 400, json);
}

/* NULL: the page says what is wrong. */
static struct overrides *asked_changes(struct page *page, const json_t *asked) {
    char error[OVERRIDE_ERROR];
    struct overrides *changes = overrides_new();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)asked, name, value) {
        if (overrides_put_json(changes, name, value, error, sizeof error))
            continue;
        refuse_change(page, name, error);
        overrides_free(&changes);
        return NULL;
    }
    return changes;
}

/* Makes what a JSON object asks for: of pools of helpers, or of the proxy. Releases `asked`; `whole`:
 * these are all changes. */
static void change_as_asked(struct page *page, const struct admin_calls *calls,
                            const struct page_request *request, json_t *asked, bool whole) {
    bool of_pools = answer_for_pools(page, calls, request, asked);
    struct overrides *changes = of_pools ? NULL : asked_changes(page, asked);
    json_decref(asked);
    if (changes == NULL)
        return;
    change_settings(page, calls, request, changes, whole);
    overrides_free(&changes);
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
    change_as_asked(page, calls, request, asked, false);
}

/* {"cache.memory": null} for one name, or for all that were changed. NULL: the name is no text that
 * JSON can have. */
static json_t *names_to_unset(const struct admin_calls *calls, const char *name) {
    if (name != NULL)
        return json_pack("{s:n}", name);
    struct settings *settings = calls->settings(calls->context);
    json_t *list = settings_changes(settings), *names = names_of_changes(list);
    settings_release(&settings);
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
    if (names == NULL)
        refuse_change(page, name, "no option has a name that is not UTF-8");
    else
        change_as_asked(page, calls, request, names, whole);
}
