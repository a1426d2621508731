#include "fleet/purge_event.h"

#include "base/log.h"
#include "cache/stored.h"
#include "match/regex.h"

#include <jansson.h>
#include <stdlib.h>

static bool put_text(json_t *json, const char *name, struct slice text) {
    return text.length == 0 ||
           json_object_set_new(json, name, json_stringn(text.base, text.length)) == 0;
}

char *purge_event_write(const struct removal_order *order) {
    json_t *json = json_object();
    char *text = NULL;
    bool good = true;
    if (order->filter != NULL)
        good = put_text(json, "prefix", order->filter->prefix) &&
               put_text(json, "host", order->filter->host) &&
               put_text(json, "tag", order->filter->tag) &&
               put_text(json, "regex", slice_from(order->filter->regex_text));
    else
        good = put_text(json, "url", order->url);
    if (order->action == PURGE_STALE)
        json_object_set_new(json, "soft", json_true());
    if (order->is_ban)
        json_object_set_new(json, "ban", json_true());
    if (good)
        text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

static struct slice purge_event_text(const json_t *json, const char *name) {
    const json_t *text = json_object_get(json, name);
    return text == NULL ? slice_make("", 0)
                        : slice_make(json_string_value(text), json_string_length(text));
}

static bool is_set(const json_t *json, const char *name) {
    return json_is_true(json_object_get(json, name));
}

/* Members of other types count as a purge that this program does not know. */
static bool is_understood(const json_t *json) {
    const char *name;
    json_t *value;
    static const char *const texts[] = {"prefix", "host", "tag", "regex", "url"};
    json_object_foreach((json_t *)json, name, value) {
        bool known = json_is_true(value) && (strcmp(name, "soft") == 0 || strcmp(name, "ban") == 0);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            known = known || (json_is_string(value) && strcmp(name, texts[i]) == 0);
        if (!known)
            return false;
    }
    return true;
}

static bool apply_filter(const json_t *json, struct cache *cache, struct second_level *level,
                         enum purge_action action, bool *kept) {
    char reason[300];
    struct regexes regex;
    struct removal_found found;
    uint64_t number;
    struct object_filter filter = {.prefix = purge_event_text(json, "prefix"),
                                   .host = purge_event_text(json, "host"),
                                   .tag = purge_event_text(json, "tag")};
    const char *expression = json_string_value(json_object_get(json, "regex"));
    if (expression != NULL && !regex_check(expression, reason, sizeof reason))
        return false;
    regexes_compile(&regex, (char *[]){(char *)expression, NULL});
    if (expression != NULL) {
        filter.regex = &regex;
        filter.regex_text = expression;
    }
    if (is_set(json, "ban"))
        *kept = removal_by_ban(cache, level, &filter, &number);
    else
        *kept = removal_of_all(cache, level, &filter, action, &found);
    regexes_release(&regex);
    return true;
}

static bool apply_url(struct slice url, struct cache *cache, struct second_level *level,
                      enum purge_action action) {
    const struct content_store store = {.cache = cache, .second_level = level};
    const struct cache_name name = cache_name_of(url);
    uint64_t count;
    return stored_delete(&store, &name, action, &count) != STORED_NOT_KEPT;
}

bool purge_event_apply(struct slice body, struct cache *cache, struct second_level *second_level) {
    bool kept = true;
    json_t *json = json_loadb(body.base, body.length, 0, NULL);
    bool good = json_is_object(json) && is_understood(json);
    if (good) {
        enum purge_action action = is_set(json, "soft") ? PURGE_STALE : PURGE_REMOVE;
        struct slice url = purge_event_text(json, "url");
        if (url.length > 0)
            kept = apply_url(url, cache, second_level, action);
        else
            good = apply_filter(json, cache, second_level, action, &kept);
    }
    if (!good) {
        /* A later version of the program may say more: too much is removed, never too little. */
        struct removal_found found;
        const struct object_filter all = {.tag = slice_make("", 0)};
        log_warn(
            "the fleet: a node has told a purge that this version does not understand: all that "
            "is stored is asked for again; let all nodes have the same version");
        kept = removal_of_all(cache, second_level, &all, PURGE_DOUBT, &found);
    }
    json_decref(json);
    return kept;
}
