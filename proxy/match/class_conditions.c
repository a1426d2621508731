#include "match/class_conditions.h"

#include "base/assert.h"
#include "match/class_fields.h"
#include "match/class_hours.h"
#include "match/regex.h"
#include "net/address.h"

#include <stdio.h>
#include <stdlib.h>

enum { LISTS = sizeof(struct url_class_conditions) / sizeof(char **) };

static bool check_fail(char *error, size_t error_size, const char *reason) {
    snprintf(error, error_size, "%s", reason);
    return false;
}

static bool url_class_is_host_name(const char *text) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789-_.");
    return length > 0 && text[length] == '\0' && text[0] != '.' && strstr(text, "..") == NULL;
}

static bool url_class_is_address(const char *text) {
    struct address address;
    return address_parse_ip(&address, slice_from(text), 0);
}

bool url_class_check_host(const char *text, char *error, size_t error_size) {
    if (url_class_is_address(text) ||
        url_class_is_host_name(strncmp(text, "*.", 2) == 0 ? text + 2 : text))
        return true;
    return check_fail(error, error_size,
                      "is not a host: write a name without scheme, port and path, as in "
                      "\"www.example.com\" or \"*.example.com\"");
}

bool url_class_check_domain(const char *text, char *error, size_t error_size) {
    if (url_class_is_address(text) || url_class_is_host_name(text))
        return true;
    return check_fail(error, error_size,
                      "is not a domain: write it without dot or star in front, as in "
                      "\"example.com\"");
}

static bool url_class_is_token(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] == 0x7f || strchr("()<>@,;:\\\"/[]?={}", text[i]) != NULL)
            return false;
    return length > 0;
}

bool url_class_check_method(const char *text, char *error, size_t error_size) {
    if (url_class_is_token(text, strlen(text)))
        return true;
    return check_fail(error, error_size, "is not a request method");
}

bool url_class_check_content_type(const char *text, char *error, size_t error_size) {
    const char *slash = strchr(text, '/');
    if (slash != NULL && strlen(text) < URL_CLASS_TYPE_MAX / 2 &&
        url_class_is_token(text, (size_t)(slash - text)) &&
        url_class_is_token(slash + 1, strlen(slash + 1)))
        return true;
    return check_fail(error, error_size,
                      "is not a media type: write it without parameters, as in \"text/html\" or "
                      "\"image/*\"");
}

bool url_class_check_client(const char *text, char *error, size_t error_size) {
    struct network network;
    if (network_parse(&network, slice_from(text)))
        return true;
    return check_fail(error, error_size,
                      "is not an address or a network: write \"192.0.2.1\" or \"192.0.2.0/24\"");
}

bool url_class_parse_ports(const char *text, uint16_t *from, uint16_t *to) {
    const char *dash = strchr(text, '-');
    struct slice first = slice_make(text, dash != NULL ? (size_t)(dash - text) : strlen(text));
    uint64_t low, high;
    if (!slice_to_uint64(first, &low))
        return false;
    high = low;
    if (dash != NULL && !slice_to_uint64(slice_from(dash + 1), &high))
        return false;
    *from = (uint16_t)low;
    *to = (uint16_t)high;
    return low >= 1 && low <= high && high <= UINT16_MAX;
}

bool url_class_check_port(const char *text, char *error, size_t error_size) {
    uint16_t from, to;
    if (url_class_parse_ports(text, &from, &to))
        return true;
    return check_fail(error, error_size,
                      "is not a port from 1 to 65535: write \"443\" or \"8000-8999\"");
}

bool url_class_check_scheme(const char *text, char *error, size_t error_size) {
    if (strcmp(text, "http") == 0 || strcmp(text, "https") == 0)
        return true;
    return check_fail(error, error_size,
                      "is not a scheme of requests: write http or https. For CONNECT, use method");
}

bool url_class_check_time(const char *text, char *error, size_t error_size) {
    struct class_hours hours;
    class_hours_clear(&hours);
    return class_hours_add(&hours, text, error, error_size);
}

bool url_class_check_text(const char *text, char *error, size_t error_size) {
    return text[0] != '\0' || check_fail(error, error_size, "is empty");
}

bool url_class_check_path(const char *text, char *error, size_t error_size) {
    return text[0] == '/' ||
           check_fail(error, error_size, "is not the path of a list: begin it with a slash");
}

struct condition_check {
    size_t at;
    const char *name;
    bool (*check)(const char *text, char *error, size_t error_size);
};

#define CONDITION(member, text, function)                                                          \
    { offsetof(struct url_class_conditions, member), text, function }

static const struct condition_check condition_checks[LISTS] = {
    CONDITION(hosts, "host", url_class_check_host),
    CONDITION(domains, "domain", url_class_check_domain),
    CONDITION(path_regexes, "path_regex", regex_check),
    CONDITION(url_regexes, "url_regex", regex_check),
    CONDITION(methods, "method", url_class_check_method),
    CONDITION(content_types, "content_type", url_class_check_content_type),
    CONDITION(clients, "client", url_class_check_client),
    CONDITION(ports, "port", url_class_check_port),
    CONDITION(schemes, "scheme", url_class_check_scheme),
    CONDITION(destinations, "destination", url_class_check_client),
    CONDITION(users, "user", url_class_check_text),
    CONDITION(groups, "group", url_class_check_text),
    CONDITION(certificates, "certificate", url_class_check_text),
    CONDITION(listeners, "listener", url_class_check_text),
    CONDITION(request_headers, "request_header", class_fields_check),
    CONDITION(snis, "sni", url_class_check_host),
    CONDITION(times, "time", url_class_check_time),
    CONDITION(nots, "not", url_class_check_text),
    CONDITION(any_ofs, "any_of", url_class_check_text),
    CONDITION(host_files, "host_file", url_class_check_path),
    CONDITION(domain_files, "domain_file", url_class_check_path),
    CONDITION(client_files, "client_file", url_class_check_path),
    CONDITION(destination_files, "destination_file", url_class_check_path),
    CONDITION(url_files, "url_file", url_class_check_path),
};

static char **values_at(const struct url_class_conditions *conditions, size_t at) {
    return *(char **const *)((const char *)conditions + at);
}

static bool check_all(char **values, const struct condition_check *condition, char *error,
                      size_t error_size) {
    char reason[400];
    for (size_t i = 0; values != NULL && values[i] != NULL; i++) {
        if (!condition->check(values[i], reason, sizeof reason)) {
            snprintf(error, error_size, "%s \"%s\" %s", condition->name, values[i], reason);
            return false;
        }
    }
    return true;
}

bool url_class_conditions_check(const struct url_class_conditions *conditions, char *error,
                                size_t error_size) {
    for (size_t i = 0; i < LISTS; i++)
        if (!check_all(values_at(conditions, condition_checks[i].at), &condition_checks[i], error,
                       error_size))
            return false;
    return true;
}

size_t url_class_values(char **values) {
    size_t count = 0;
    while (values != NULL && values[count] != NULL)
        count++;
    return count;
}

static char **values_copy(char **values) {
    size_t count = url_class_values(values);
    if (values == NULL)
        return NULL;
    char **copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = xstrdup(values[i]);
    return copy;
}

void url_class_conditions_copy(struct url_class_conditions *to,
                               const struct url_class_conditions *from) {
    for (size_t at = 0; at < sizeof *to; at += sizeof(char **)) {
        char **copy = values_copy(values_at(from, at));
        memcpy((char *)to + at, &copy, sizeof copy);
    }
}

void url_class_conditions_release(struct url_class_conditions *conditions) {
    for (size_t at = 0; at < sizeof *conditions; at += sizeof(char **)) {
        char **values = values_at(conditions, at);
        for (size_t i = 0; values != NULL && values[i] != NULL; i++)
            free(values[i]);
        free(values);
    }
    *conditions = (struct url_class_conditions){0};
}
