#include "service/option.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

static void *option_place(const struct service_option *option, void *settings) {
    return (char *)settings + option->offset;
}

static void list_clear(struct service_list *list) {
    for (unsigned i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    list->items = NULL;
    list->count = 0;
}

static void list_append_item(struct service_list *list, struct slice item) {
    list->items = xrealloc(list->items, (list->count + 1) * sizeof *list->items);
    list->items[list->count++] = slice_dup(item);
}

static bool choice_index(const char *choices, struct slice text, uint64_t *index) {
    *index = 0;
    for (const char *at = choices; *at != 0; (*index)++) {
        size_t length = strcspn(at, "|");
        if (slice_equal_nocase(text, slice_make(at, length)))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

static bool service_option_in_range(const struct service_option *option, uint64_t value,
                                    char *error, size_t error_size) {
    if (value >= option->low && value <= option->high)
        return true;
    return failure(error, error_size, "%s must be from %" PRIu64 " to %" PRIu64 "%s", option->name,
                   option->low, option->high,
                   option->type == SERVICE_OPTION_DURATION ? " milliseconds" : "");
}

static bool service_option_set_number(const struct service_option *option, void *place,
                                      struct slice text, char *error, size_t error_size) {
    uint64_t value;
    bool good;
    const char *wanted;
    switch (option->type) {
    case SERVICE_OPTION_SIZE:
        good = units_read_size(text, &value);
        wanted = "a size such as 65536, 64K or 16M";
        break;
    case SERVICE_OPTION_DURATION:
        good = units_read_time(text, 1000, &value);
        wanted = "a time such as 500ms, 10s or 2m";
        break;
    default:
        good = slice_to_uint64(text, &value);
        wanted = "a number";
        break;
    }
    if (!good)
        return failure(error, error_size, "%s wants %s, not \"%.*s\"", option->name, wanted,
                       SLICE_PRINT(text));
    if (!service_option_in_range(option, value, error, error_size))
        return false;
    *(uint64_t *)place = value;
    return true;
}

static bool set_switch(const struct service_option *option, bool *place, struct slice text,
                       char *error, size_t error_size) {
    bool on = slice_equal_nocase(text, SLICE("on"));
    if (!on && !slice_equal_nocase(text, SLICE("off")))
        return failure(error, error_size, "%s wants on or off, not \"%.*s\"", option->name,
                       SLICE_PRINT(text));
    *place = on;
    return true;
}

const struct service_option *service_option_find(const struct service_option *options,
                                                 struct slice name) {
    for (const struct service_option *option = options; option != NULL && option->name != NULL;
         option++)
        if (slice_equal(slice_from(option->name), name))
            return option;
    return NULL;
}

bool service_option_set(const struct service_option *option, void *settings, struct slice text,
                        char *error, size_t error_size) {
    void *place = option_place(option, settings);
    text = slice_trim(text);
    switch (option->type) {
    case SERVICE_OPTION_TEXT: {
        char **string = place;
        free(*string);
        *string = slice_dup(text);
        return true;
    }
    case SERVICE_OPTION_LIST: {
        struct service_list *list = place;
        if (list->is_default)
            list_clear(list);
        list->is_default = false;
        list_append_item(list, text);
        return true;
    }
    case SERVICE_OPTION_SWITCH: return set_switch(option, place, text, error, error_size);
    case SERVICE_OPTION_CHOICE:
        if (choice_index(option->choices, text, place))
            return true;
        return failure(error, error_size, "%s wants one of %s, not \"%.*s\"", option->name,
                       option->choices, SLICE_PRINT(text));
    default: return service_option_set_number(option, place, text, error, error_size);
    }
}

static void list_defaults(struct service_list *list, const char *initial) {
    *list = (struct service_list){.is_default = true};
    for (const char *at = initial == NULL ? "" : initial; *at != 0;) {
        size_t length = strcspn(at, " ");
        if (length > 0)
            list_append_item(list, slice_make(at, length));
        at += length + (at[length] == ' ');
    }
}

void service_options_defaults(const struct service_option *options, void *settings) {
    for (const struct service_option *option = options; option->name != NULL; option++) {
        void *place = option_place(option, settings);
        char error[200];
        if (option->type == SERVICE_OPTION_LIST)
            list_defaults(place, option->initial);
        else if (option->type == SERVICE_OPTION_TEXT)
            *(char **)place = option->initial == NULL ? NULL : xstrdup(option->initial);
        else
            ASSERT(service_option_set(option, settings, slice_from(option->initial), error,
                                      sizeof error));
    }
}

void service_options_release(const struct service_option *options, void *settings) {
    for (const struct service_option *option = options; option->name != NULL; option++) {
        void *place = option_place(option, settings);
        if (option->type == SERVICE_OPTION_LIST)
            list_clear(place);
        else if (option->type == SERVICE_OPTION_TEXT) {
            free(*(char **)place);
            *(char **)place = NULL;
        }
    }
}
