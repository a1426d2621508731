#include "admin/helper_options.h"

#include "admin/helperd_patience.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/slice.h"
#include "settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "helper.";

/* What a pool has of each option: how retort-helperd calls it, and its command. */
static const struct helper_option {
    const char *name, *call;
} helper_options[] = {{"nice", "renice"}, {"processes", "resize"}};

enum { HELPER_OPTIONS = sizeof helper_options / sizeof *helper_options };

bool helper_options_include(const char *name) {
    return strcmp(name, "helper") == 0 || strncmp(name, prefix, sizeof prefix - 1) == 0;
}

/* Looking. */

typedef json_t *helperd_patience_way(const char *path, const json_t *command,
                                     char error[HELPERD_CALL_ERROR]);

static json_t *helper_options_ask_pools(const char *path, helperd_patience_way *way,
                                        char error[HELPERD_CALL_ERROR]) {
    json_t *command = json_pack("{s:s}", "call", "helpers");
    json_t *answer = way(path, command, error);
    json_decref(command);
    return answer;
}

static json_t *helper_options_name_of(const json_t *pool, const struct helper_option *option) {
    return json_sprintf("%s%s.%s", prefix, json_string_value(json_object_get(pool, "name")),
                        option->name);
}

/* An older retort-helperd does not say what is configured: then nothing is known to be changed. */
static json_t *configured_of(const json_t *pool, const struct helper_option *option) {
    json_t *configured = json_object_get(json_object_get(pool, "configured"), option->name);
    return configured != NULL ? configured : json_object_get(pool, option->name);
}

static bool helper_options_is_changed(const json_t *pool, const struct helper_option *option) {
    return !json_equal(json_object_get(pool, option->name), configured_of(pool, option));
}

static bool helper_options_is_below(const char *name, const char *above) {
    size_t length = strlen(above);
    return strncmp(name, above, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

static json_t *helper_options_row_of(const json_t *answer, const json_t *pool,
                                     const struct helper_option *option) {
    const char *file = json_string_value(json_object_get(answer, "file"));
    const char *from = helper_options_is_changed(pool, option) ? SETTINGS_CHANGED
                       : file != NULL                          ? file
                                                               : "retort-helperd";
    return json_pack("{s:o, s:O, s:s, s:s}", "name", helper_options_name_of(pool, option), "value",
                     json_object_get(pool, option->name), "from", from, "change", "now");
}

json_t *helper_options_list(const char *path, const char *name, char error[HELPERD_CALL_ERROR]) {
    json_t *answer = helper_options_ask_pools(path, helperd_patience_look, error),
           *list = json_array(), *pool;
    size_t at;
    json_array_foreach(json_object_get(answer, "pools"), at, pool) {
        for (size_t i = 0; i < HELPER_OPTIONS; i++) {
            json_t *row = helper_options_row_of(answer, pool, &helper_options[i]);
            const char *own = json_string_value(json_object_get(row, "name"));
            if (own != NULL && (name == NULL || helper_options_is_below(own, name)))
                json_array_append(list, row);
            json_decref(row);
        }
    }
    if (answer != NULL) {
        json_decref(answer);
        return list;
    }
    json_decref(list);
    return NULL;
}

json_t *helper_options_changes(const char *path, char error[HELPERD_CALL_ERROR]) {
    json_t *answer = helper_options_ask_pools(path, helperd_patience_look, error),
           *list = json_array(), *pool;
    size_t at;
    json_array_foreach(json_object_get(answer, "pools"), at, pool) {
        for (size_t i = 0; i < HELPER_OPTIONS; i++)
            if (helper_options_is_changed(pool, &helper_options[i]))
                json_array_append_new(
                    list, json_pack("{s:o, s:O, s:O, s:b}", "name",
                                    helper_options_name_of(pool, &helper_options[i]), "value",
                                    json_object_get(pool, helper_options[i].name), "configured",
                                    configured_of(pool, &helper_options[i]), "saved", 0));
    }
    if (answer != NULL) {
        json_decref(answer);
        return list;
    }
    json_decref(list);
    return NULL;
}

/* Changing. */

static json_t *find_pool(const json_t *answer, struct slice name) {
    size_t i;
    json_t *pool;
    json_array_foreach(json_object_get(answer, "pools"), i, pool) {
        const char *own = json_string_value(json_object_get(pool, "name"));
        if (own != NULL && slice_equal(name, slice_from(own)))
            return pool;
    }
    return NULL;
}

/* The number of a value; NULL: it is none. */
static json_t *helper_options_number_of(const json_t *value) {
    const char *text = json_string_value(value);
    char *end = NULL;
    if (json_is_integer(value))
        return json_integer(json_integer_value(value));
    if (text == NULL || text[0] == '\0')
        return NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 ? json_integer(number) : NULL;
}

/* One change: {"pool", "call", "option", "name", "old", "new"}. NULL with a sentence. */
static json_t *plan_one(const json_t *answer, const char *name, const json_t *value,
                        char error[HELPERD_CALL_ERROR]) {
    const char *begin = name + sizeof prefix - 1, *dot = strrchr(name, '.');
    const struct helper_option *option = NULL;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || dot < begin)
        dot = begin = name;
    for (size_t i = 0; dot > begin && i < HELPER_OPTIONS; i++)
        if (strcmp(dot + 1, helper_options[i].name) == 0)
            option = &helper_options[i];
    if (option == NULL) {
        snprintf(error, HELPERD_CALL_ERROR,
                 "%.200s: write helper.POOL.nice or helper.POOL.processes", name);
        return NULL;
    }
    json_t *pool = find_pool(answer, slice_make(begin, (size_t)(dot - begin)));
    if (pool == NULL) {
        snprintf(error, HELPERD_CALL_ERROR,
                 "%.200s: retort-helperd has no such pool; retortctl helpers lists them", name);
        return NULL;
    }
    json_t *number = json_is_null(value) ? json_incref(configured_of(pool, option))
                                         : helper_options_number_of(value);
    if (number == NULL) {
        snprintf(error, HELPERD_CALL_ERROR, "%.200s: the value is not a number", name);
        return NULL;
    }
    return json_pack("{s:O, s:s, s:s, s:s, s:O, s:o}", "pool", json_object_get(pool, "name"),
                     "call", option->call, "option", option->name, "name", name, "old",
                     json_object_get(pool, option->name), "new", number);
}

static json_t *plan_all(const json_t *answer, const json_t *wanted,
                        char error[HELPERD_CALL_ERROR]) {
    json_t *plan = json_array(), *value;
    const char *name;
    json_object_foreach((json_t *)wanted, name, value) {
        json_t *change = plan_one(answer, name, value, error);
        if (change == NULL) {
            json_decref(plan);
            return NULL;
        }
        if (!json_equal(json_object_get(change, "old"), json_object_get(change, "new")))
            json_array_append(plan, change);
        json_decref(change);
    }
    return plan;
}

/* What makes it "new", or "old" again. */
static json_t *command_of_change(const json_t *change, const char *which) {
    return json_pack("{s:O, s:O, s:O}", "call", json_object_get(change, "call"), "pool",
                     json_object_get(change, "pool"),
                     json_string_value(json_object_get(change, "option")),
                     json_object_get(change, which));
}

static bool make_change(const char *path, const json_t *change, char error[HELPERD_CALL_ERROR]) {
    json_t *command = command_of_change(change, "new");
    json_t *answer = helperd_patience_change(path, command, error);
    json_decref(command);
    json_decref(answer);
    return answer != NULL;
}

/* It is asked at once, also when retort-helperd was late a moment ago. */
static bool take_one_back(const char *path, const json_t *change, uint64_t deadline) {
    char reason[HELPERD_CALL_ERROR];
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    json_t *command = command_of_change(change, "old");
    json_t *answer = helperd_call_within(path, command, deadline > now ? deadline - now : 0,
                                         HELPERD_CALL_MOST, reason);
    if (answer == NULL)
        log_error("helpers: %s could not be taken back: %s",
                  json_string_value(json_object_get(change, "name")), reason);
    json_decref(command);
    json_decref(answer);
    return answer != NULL;
}

/* All of it together has the time of one change. The error says also what stays in force. */
static void take_back(const char *path, const json_t *plan, size_t done,
                      char error[HELPERD_CALL_ERROR]) {
    uint64_t deadline = clocks_milliseconds(CLOCK_MONOTONIC) + HELPERD_PATIENCE_CHANGE;
    while (done-- > 0) {
        const json_t *change = json_array_get(plan, done);
        size_t length = strlen(error);
        if (!take_one_back(path, change, deadline))
            snprintf(error + length, HELPERD_CALL_ERROR - length,
                     "; %s could not be taken back and may still be %lld",
                     json_string_value(json_object_get(change, "name")),
                     (long long)json_integer_value(json_object_get(change, "new")));
    }
}

static bool make_changes(const char *path, const json_t *plan, char error[HELPERD_CALL_ERROR]) {
    size_t i;
    json_t *change;
    json_array_foreach(plan, i, change) {
        if (make_change(path, change, error))
            continue;
        take_back(path, plan, i, error);
        return false;
    }
    json_array_foreach(plan, i, change)
        log_info("helpers: %s is %lld, before %lld, through the admin plane",
                 json_string_value(json_object_get(change, "name")),
                 (long long)json_integer_value(json_object_get(change, "new")),
                 (long long)json_integer_value(json_object_get(change, "old")));
    return true;
}

json_t *helper_options_change(const char *path, const json_t *wanted,
                              char error[HELPERD_CALL_ERROR]) {
    json_t *answer = helper_options_ask_pools(path, helperd_patience_change, error), *change;
    json_t *plan = answer == NULL ? NULL : plan_all(answer, wanted, error);
    size_t i;
    json_decref(answer);
    if (plan == NULL)
        return NULL;
    if (!make_changes(path, plan, error)) {
        json_decref(plan);
        return NULL;
    }
    json_array_foreach(plan, i, change) {
        json_object_del(change, "call");
        json_object_del(change, "pool");
        json_object_del(change, "option");
    }
    return plan;
}
