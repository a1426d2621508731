#include "match/url_class.h"

#include "base/assert.h"
#include "match/name_table.h"
#include "match/regex.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

struct host_condition {
    struct name_table exact;
    struct name_table below; /* parents of the names that match */
};

struct url_class {
    unsigned magic;
#define URL_CLASS_MAGIC 0x55434c53u
    char *name;
    struct url_class_conditions conditions; /* as given; slices of the sets point into it */
    struct host_condition hosts, domains;
    struct regexes path_regexes, url_regexes;
    struct network *clients;
    size_t client_count;
};

/* Checks of single values. */

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

static bool check_all(char **values, const char *what,
                      bool (*check)(const char *text, char *error, size_t error_size), char *error,
                      size_t error_size) {
    char reason[400];
    for (size_t i = 0; values != NULL && values[i] != NULL; i++) {
        if (!check(values[i], reason, sizeof reason)) {
            snprintf(error, error_size, "%s \"%s\" %s", what, values[i], reason);
            return false;
        }
    }
    return true;
}

static bool check_conditions(const struct url_class_conditions *c, char *error, size_t size) {
    return check_all(c->hosts, "host", url_class_check_host, error, size) &&
           check_all(c->domains, "domain", url_class_check_domain, error, size) &&
           check_all(c->path_regexes, "path_regex", regex_check, error, size) &&
           check_all(c->url_regexes, "url_regex", regex_check, error, size) &&
           check_all(c->methods, "method", url_class_check_method, error, size) &&
           check_all(c->content_types, "content_type", url_class_check_content_type, error, size) &&
           check_all(c->clients, "client", url_class_check_client, error, size);
}

/* Making a class. */

static size_t strings_count(char **strings) {
    size_t count = 0;
    while (strings != NULL && strings[count] != NULL)
        count++;
    return count;
}

static char **strings_copy(char **strings) {
    size_t count = strings_count(strings);
    if (strings == NULL)
        return NULL;
    char **copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = xstrdup(strings[i]);
    return copy;
}

static void strings_free(char **strings) {
    for (size_t i = 0; strings != NULL && strings[i] != NULL; i++)
        free(strings[i]);
    free(strings);
}

/* Writes an IPv6 address in the one spelling that normalised URLs have. */
static void rewrite_address(char **name) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (inet_pton(AF_INET6, *name, &address) != 1)
        return;
    free(*name);
    *name = xstrdup(inet_ntop(AF_INET6, &address, text, sizeof text));
}

/* Makes the copies of names lower case and removes the dot of the root, as in subjects. */
static void lower_names(char **names) {
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        rewrite_address(&names[i]);
        size_t length = strlen(names[i]);
        if (length > 1 && names[i][length - 1] == '.')
            names[i][length - 1] = '\0';
        for (char *c = names[i]; *c != '\0'; c++)
            *c = (char)ascii_lower((unsigned char)*c);
    }
}

static void host_condition_make(struct host_condition *condition, char **names, bool domains) {
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        bool star = strncmp(names[i], "*.", 2) == 0;
        if (star || domains)
            name_table_add(&condition->below, slice_from(star ? names[i] + 2 : names[i]), 0);
        if (!star)
            name_table_add(&condition->exact, slice_from(names[i]), 0);
    }
    name_table_seal(&condition->exact);
    name_table_seal(&condition->below);
}

static void host_condition_release(struct host_condition *condition) {
    name_table_release(&condition->exact);
    name_table_release(&condition->below);
}

static bool host_condition_match(const struct host_condition *condition, struct slice host) {
    host = url_class_host(host);
    if (name_table_find(&condition->exact, host).count > 0)
        return true;
    if (!name_table_may_have_end(&condition->below, host))
        return false;
    for (size_t i = 1; i + 1 < host.length; i++)
        if (host.base[i] == '.' &&
            name_table_find(&condition->below, slice_make(host.base + i + 1, host.length - i - 1))
                    .count > 0)
            return true;
    return false;
}

static void clients_make(struct url_class *url_class) {
    char **texts = url_class->conditions.clients;
    size_t count = strings_count(texts);
    url_class->clients = xcalloc(count + 1, sizeof *url_class->clients);
    for (size_t i = 0; i < count; i++)
        ASSERT(network_parse(&url_class->clients[i], slice_from(texts[i])));
    url_class->client_count = count;
}

struct url_class *url_class_new(const char *name, const struct url_class_conditions *conditions,
                                char *error, size_t error_size) {
    struct url_class *url_class;
    if (!check_conditions(conditions, error, error_size))
        return NULL;
    ALLOC_OBJ(url_class, URL_CLASS_MAGIC);
    url_class->name = xstrdup(name);
    url_class->conditions = (struct url_class_conditions){
        .hosts = strings_copy(conditions->hosts),
        .domains = strings_copy(conditions->domains),
        .path_regexes = strings_copy(conditions->path_regexes),
        .url_regexes = strings_copy(conditions->url_regexes),
        .methods = strings_copy(conditions->methods),
        .content_types = strings_copy(conditions->content_types),
        .clients = strings_copy(conditions->clients),
    };
    lower_names(url_class->conditions.hosts);
    lower_names(url_class->conditions.domains);
    host_condition_make(&url_class->hosts, url_class->conditions.hosts, false);
    host_condition_make(&url_class->domains, url_class->conditions.domains, true);
    regexes_compile(&url_class->path_regexes, url_class->conditions.path_regexes);
    regexes_compile(&url_class->url_regexes, url_class->conditions.url_regexes);
    clients_make(url_class);
    return url_class;
}

void url_class_free(struct url_class **url_classp) {
    struct url_class *url_class = *url_classp;
    *url_classp = NULL;
    if (url_class == NULL)
        return;
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    strings_free(url_class->conditions.hosts);
    strings_free(url_class->conditions.domains);
    strings_free(url_class->conditions.path_regexes);
    strings_free(url_class->conditions.url_regexes);
    strings_free(url_class->conditions.methods);
    strings_free(url_class->conditions.content_types);
    strings_free(url_class->conditions.clients);
    host_condition_release(&url_class->hosts);
    host_condition_release(&url_class->domains);
    regexes_release(&url_class->path_regexes);
    regexes_release(&url_class->url_regexes);
    free(url_class->clients);
    free(url_class->name);
    FREE_OBJ(url_class);
}

const char *url_class_name(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return url_class->name;
}

const struct url_class_conditions *url_class_conditions(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return &url_class->conditions;
}

/* Matching. */

static bool method_matches(char **methods, struct slice method) {
    for (size_t i = 0; methods[i] != NULL; i++)
        if (slice_equal_nocase(slice_from(methods[i]), method))
            return true;
    return false;
}

static struct slice without_parameters(struct slice type) {
    const char *semicolon = type.length > 0 ? memchr(type.base, ';', type.length) : NULL;
    if (semicolon != NULL)
        type.length = (size_t)(semicolon - type.base);
    return slice_trim(type);
}

size_t url_class_type_name(struct slice content_type, char out[URL_CLASS_TYPE_MAX]) {
    struct slice type = without_parameters(content_type);
    size_t length = type.length < URL_CLASS_TYPE_MAX ? type.length : URL_CLASS_TYPE_MAX - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)ascii_lower((unsigned char)type.base[i]);
    out[length] = '\0';
    return length;
}

static bool content_type_matches(char **types, struct slice type) {
    type = without_parameters(type);
    for (size_t i = 0; types[i] != NULL; i++) {
        struct slice wanted = slice_from(types[i]);
        if (slice_equal_nocase(wanted, type))
            return true;
        if (wanted.length > 2 && wanted.base[wanted.length - 1] == '*' &&
            wanted.base[wanted.length - 2] == '/' &&
            slice_starts_with_nocase(type, slice_make(wanted.base, wanted.length - 1)))
            return true;
    }
    return false;
}

static bool client_matches(const struct url_class *url_class, const struct address *client) {
    for (size_t i = 0; i < url_class->client_count; i++)
        if (network_contains(&url_class->clients[i], client))
            return true;
    return false;
}

/* Compares the cheap conditions first and the regular expressions last. */
bool url_class_matches_request(const struct url_class *url_class,
                               const struct class_subject *subject, enum url_class_known known) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    const struct url_class_conditions *stated = &url_class->conditions;
    if (stated->methods != NULL && !method_matches(stated->methods, subject->method))
        return false;
    if (stated->hosts != NULL && known != URL_CLASS_KNOWN_HOST &&
        !host_condition_match(&url_class->hosts, subject->host))
        return false;
    if (stated->domains != NULL && known != URL_CLASS_KNOWN_DOMAIN &&
        !host_condition_match(&url_class->domains, subject->host))
        return false;
    if (stated->clients != NULL && known != URL_CLASS_KNOWN_CLIENT &&
        (subject->client == NULL || !client_matches(url_class, subject->client)))
        return false;
    if (stated->path_regexes != NULL && !regexes_find(&url_class->path_regexes, subject->path))
        return false;
    return stated->url_regexes == NULL || regexes_find(&url_class->url_regexes, subject->url);
}

static bool response_matches(const struct url_class *url_class,
                             const struct class_subject *subject) {
    char **types = url_class->conditions.content_types;
    if (types == NULL)
        return true;
    return subject->content_type.base == NULL ? subject->response_pending
                                              : content_type_matches(types, subject->content_type);
}

bool url_class_matches(const struct url_class *url_class, const struct class_subject *subject) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return response_matches(url_class, subject) &&
           url_class_matches_request(url_class, subject, URL_CLASS_KNOWN_NOTHING);
}
