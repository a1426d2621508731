#include "settings/value.h"

#include "base/assert.h"
#include "net/address.h"
#include "settings/shown.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Units from large to small. The first spelling of a factor is the one that is printed. */
static const struct unit size_units[] = {{"GB", 1 << 30}, {"GiB", 1 << 30}, {"G", 1 << 30},
                                         {"MB", 1 << 20}, {"MiB", 1 << 20}, {"M", 1 << 20},
                                         {"KB", 1 << 10}, {"KiB", 1 << 10}, {"K", 1 << 10},
                                         {"B", 1},        {"", 1},          {NULL, 0}};
static const struct unit time_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000},
                                         {"s", 1000},     {"ms", 1},      {NULL, 0}};

static void *member(void *destination, size_t offset) {
    return (char *)destination + offset;
}

static const void *const_member(const void *source, size_t offset) {
    return (const char *)source + offset;
}

static bool value_fail(char *error, size_t error_size, const char *reason) {
    snprintf(error, error_size, "%s", reason);
    return false;
}

/* A number and one of the units; blanks between them are allowed. */
static bool parse_units(const char *text, const struct unit *units, uint64_t *value) {
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    end += strspn(end, " ");
    for (; units->name != NULL; units++)
        if (strcasecmp(end, units->name) == 0)
            return !__builtin_mul_overflow(*value, units->factor, value);
    return false;
}

static void format_units(uint64_t value, const struct unit *units, char *out, size_t capacity) {
    if (value == 0) {
        snprintf(out, capacity, "0");
        return;
    }
    while (value % units->factor != 0)
        units++;
    snprintf(out, capacity, "%" PRIu64 "%s", value / units->factor, units->name);
}

void value_format_size(uint64_t bytes, char *out, size_t capacity) {
    format_units(bytes, size_units, out, capacity);
}

void value_format_time(uint64_t milliseconds, char *out, size_t capacity) {
    format_units(milliseconds, time_units, out, capacity);
}

static void format_bound(const struct option *option, double bound, char *out, size_t capacity) {
    if (option->type == OPTION_SIZE)
        value_format_size((uint64_t)bound, out, capacity);
    else if (option->type == OPTION_TIME)
        value_format_time((uint64_t)bound, out, capacity);
    else
        snprintf(out, capacity, "%.10g", bound);
}

static bool value_in_range(const struct option *option, double value, char *error,
                           size_t error_size) {
    char least[40], most[40];
    if (value >= option->least && (option->most == 0 || value <= option->most))
        return true;
    format_bound(option, option->least, least, sizeof least);
    format_bound(option, option->most, most, sizeof most);
    if (option->most == 0)
        snprintf(error, error_size, "is out of range: at least %s", least);
    else
        snprintf(error, error_size, "is out of range: from %s to %s", least, most);
    return false;
}

static bool set_bool(void *at, const char *text, char *error, size_t error_size) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *(bool *)at = i % 2 == 1;
            return true;
        }
    }
    return value_fail(error, error_size, "is not true or false");
}

static bool set_count(const struct option *option, void *at, const char *text, char *error,
                      size_t error_size) {
    uint64_t value;
    if (!slice_to_uint64(slice_from(text), &value))
        return value_fail(error, error_size, "is not a whole number");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(unsigned *)at = (unsigned)value;
    return true;
}

static bool set_size(const struct option *option, void *at, const char *text, char *error,
                     size_t error_size) {
    uint64_t value;
    if (!parse_units(text, size_units, &value))
        return value_fail(
            error, error_size,
            "is not a size: write bytes, or a number with KB, MB or GB, as in \"64KB\"");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(size_t *)at = (size_t)value;
    return true;
}

bool value_parse_time(const char *text, uint64_t *milliseconds) {
    *milliseconds = 0;
    return strcmp(text, "0") == 0 || parse_units(text, time_units, milliseconds);
}

static bool set_time(const struct option *option, void *at, const char *text, char *error,
                     size_t error_size) {
    uint64_t value;
    if (!value_parse_time(text, &value))
        return value_fail(error, error_size,
                          "is not a time: write a number with ms, s, m, h or d, as in \"5s\"");
    if (!value_in_range(option, (double)value, error, error_size))
        return false;
    *(uint64_t *)at = value;
    return true;
}

static bool set_float(const struct option *option, void *at, const char *text, char *error,
                      size_t error_size) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return value_fail(error, error_size, "is not a number");
    if (!value_in_range(option, value, error, error_size))
        return false;
    *(double *)at = value;
    return true;
}

static bool set_word(const struct option *option, void *at, const char *text, char *error,
                     size_t error_size) {
    for (int i = 0; option->words[i] != NULL; i++) {
        if (strcmp(text, option->words[i]) == 0) {
            memcpy(at, &i, sizeof i); /* every enum of the settings is as large as an int */
            return true;
        }
    }
    size_t length = (size_t)snprintf(error, error_size, "is not one of");
    for (int i = 0; option->words[i] != NULL && length < error_size; i++)
        length += (size_t)snprintf(error + length, error_size - length, "%s %s", i == 0 ? "" : ",",
                                   option->words[i]);
    return false;
}

static bool check_text(const struct option *option, const char *text, char *error,
                       size_t error_size) {
    if (text[0] == '\0')
        return value_fail(error, error_size, "is empty");
    return option->check == NULL || option->check(text, error, error_size);
}

static bool set_string(const struct option *option, void *at, const char *text, char *error,
                       size_t error_size) {
    if (!check_text(option, text, error, error_size))
        return false;
    free(*(char **)at);
    *(char **)at = xstrdup(text);
    return true;
}

static bool append_string(const struct option *option, void *at, const char *text, char *error,
                          size_t error_size) {
    char ***strings = at;
    size_t count = 0;
    if (!check_text(option, text, error, error_size))
        return false;
    while (*strings != NULL && (*strings)[count] != NULL)
        count++;
    *strings = xrealloc(*strings, (count + 2) * sizeof **strings);
    (*strings)[count] = xstrdup(text);
    (*strings)[count + 1] = NULL;
    return true;
}

/* The word for an empty list of networks. */
static const char *no_networks(const struct option *option) {
    return option->nobody ? "none" : "all";
}

static bool append_network(const struct option *option, void *at, size_t *count, const char *text,
                           char *error, size_t error_size) {
    struct network **networks = at, network;
    if (strcmp(text, no_networks(option)) == 0 && *count == 0)
        return true;
    if (!network_parse(&network, slice_from(text)))
        return value_fail(
            error, error_size,
            "is not an address or a network: write \"192.0.2.1\" or \"192.0.2.0/24\"");
    *networks = xrealloc(*networks, (*count + 1) * sizeof **networks);
    (*networks)[(*count)++] = network;
    return true;
}

static bool append_port(void *at, size_t *count, const char *text, char *error, size_t error_size) {
    uint16_t **ports = at;
    uint64_t port;
    if (strcmp(text, "none") == 0 && *count == 0)
        return true;
    if (!slice_to_uint64(slice_from(text), &port) || port == 0 || port > 65535)
        return value_fail(error, error_size, "is not a port: a number from 1 to 65535, or none");
    *ports = xrealloc(*ports, (*count + 1) * sizeof **ports);
    (*ports)[(*count)++] = (uint16_t)port;
    return true;
}

bool value_set(const struct option *option, void *destination, const char *text, char *error,
               size_t error_size) {
    void *at = member(destination, option->at);
    size_t *count = member(destination, option->count_at);
    switch (option->type) {
    case OPTION_BOOL: return set_bool(at, text, error, error_size);
    case OPTION_COUNT: return set_count(option, at, text, error, error_size);
    case OPTION_SIZE: return set_size(option, at, text, error, error_size);
    case OPTION_TIME: return set_time(option, at, text, error, error_size);
    case OPTION_FLOAT: return set_float(option, at, text, error, error_size);
    case OPTION_STRING: return set_string(option, at, text, error, error_size);
    case OPTION_WORD: return set_word(option, at, text, error, error_size);
    case OPTION_STRINGS: return append_string(option, at, text, error, error_size);
    case OPTION_NETWORKS: return append_network(option, at, count, text, error, error_size);
    case OPTION_PORTS: return append_port(at, count, text, error, error_size);
    }
    ASSERT(!"an option type without a parser");
    return false;
}

void value_set_fallback(const struct option *option, void *destination) {
    char error[200];
    if (option->fallback == NULL)
        return;
    if (option->type != OPTION_STRINGS) {
        ASSERT(value_set(option, destination, option->fallback, error, sizeof error));
        return;
    }
    struct slice rest = slice_from(option->fallback), element;
    while (slice_next_element(&rest, &element)) {
        char *text = slice_dup(element);
        ASSERT(value_set(option, destination, text, error, sizeof error));
        free(text);
    }
}

size_t value_size(const struct option *option) {
    switch (option->type) {
    case OPTION_BOOL: return sizeof(bool);
    case OPTION_COUNT: return sizeof(unsigned);
    case OPTION_SIZE: return sizeof(size_t);
    case OPTION_TIME: return sizeof(uint64_t);
    case OPTION_FLOAT: return sizeof(double);
    case OPTION_WORD: return sizeof(int);
    case OPTION_STRING:
    case OPTION_STRINGS:
    case OPTION_NETWORKS:
    case OPTION_PORTS: return sizeof(void *);
    }
    return 0;
}

void value_release(const struct option *option, void *destination) {
    void *at = member(destination, option->at);
    char **strings;
    switch (option->type) {
    case OPTION_STRINGS:
        strings = *(char ***)at;
        for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
            free(strings[i]);
        break;
    case OPTION_NETWORKS:
    case OPTION_PORTS: *(size_t *)member(destination, option->count_at) = 0; break;
    case OPTION_STRING: break;
    default: return;
    }
    free(*(void **)at);
    *(void **)at = NULL;
}

/* A list that is not stated is null: an empty one can't be written in a file. */
static json_t *text_to_json(const struct option *option, const char *text) {
    char *shown = shown_value(option, text);
    json_t *json = json_string(shown);
    free(shown);
    return json;
}

static json_t *strings_to_json(const struct option *option, char **strings) {
    if (strings == NULL)
        return json_null();
    json_t *array = json_array();
    for (size_t i = 0; strings[i] != NULL; i++)
        json_array_append_new(array, text_to_json(option, strings[i]));
    return array;
}

static json_t *networks_to_json(const struct option *option, const struct network *networks,
                                size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        char ip[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 8];
        inet_ntop(networks[i].v6 ? AF_INET6 : AF_INET, networks[i].prefix, ip, sizeof ip);
        snprintf(text, sizeof text, "%s/%u", ip, networks[i].bits);
        json_array_append_new(array, json_string(text));
    }
    if (count == 0)
        json_array_append_new(array, json_string(no_networks(option)));
    return array;
}

static json_t *ports_to_json(const uint16_t *ports, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(ports[i]));
    return array;
}

json_t *value_to_json(const struct option *option, const void *source) {
    const void *at = const_member(source, option->at);
    const size_t *count = const_member(source, option->count_at);
    const char *string;
    char text[40];
    switch (option->type) {
    case OPTION_BOOL: return json_boolean(*(const bool *)at);
    case OPTION_COUNT: return json_integer(*(const unsigned *)at);
    case OPTION_SIZE: value_format_size(*(const size_t *)at, text, sizeof text); break;
    case OPTION_TIME: value_format_time(*(const uint64_t *)at, text, sizeof text); break;
    case OPTION_FLOAT: return json_real(*(const double *)at);
    case OPTION_STRING:
        string = *(char *const *)at;
        return string == NULL ? json_null() : text_to_json(option, string);
    case OPTION_WORD: return json_string(option->words[*(const int *)at]);
    case OPTION_STRINGS: return strings_to_json(option, *(char **const *)at);
    case OPTION_NETWORKS: return networks_to_json(option, *(struct network *const *)at, *count);
    case OPTION_PORTS: return ports_to_json(*(uint16_t *const *)at, *count);
    }
    return json_string(text);
}

/* A destination that has only this value. The caller frees it. */
static void *lone_destination(const struct option *option) {
    size_t end = option->at + value_size(option);
    size_t count_end = option->count_at + sizeof(size_t);
    return xcalloc(1, end > count_end ? end : count_end);
}

bool value_check(const struct option *option, const char *text, char *error, size_t error_size) {
    void *lone = lone_destination(option);
    bool good = value_set(option, lone, text, error, error_size);
    value_release(option, lone);
    free(lone);
    return good;
}

json_t *value_text_to_json(const struct option *option, char *const *texts) {
    char error[400];
    bool good = texts != NULL || option->fallback != NULL;
    void *lone = lone_destination(option);
    if (texts == NULL)
        value_set_fallback(option, lone);
    for (size_t i = 0; good && texts != NULL && texts[i] != NULL; i++)
        good = value_set(option, lone, texts[i], error, sizeof error);
    json_t *json = good ? value_to_json(option, lone) : json_null();
    value_release(option, lone);
    free(lone);
    return json;
}
