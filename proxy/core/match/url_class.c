#include "match/url_class.h"

#include "base/assert.h"
#include "match/url_class_internal.h"
#include "part.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

/* Making a class. */

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
    lower_names(names);
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

static struct network_set *networks_make(char **texts) {
    struct network network;
    if (texts == NULL)
        return NULL;
    struct network_set *set = network_set_new();
    for (; *texts != NULL; texts++) {
        ASSERT(network_parse(&network, slice_from(*texts)));
        network_set_add(set, &network);
    }
    network_set_seal(set);
    return set;
}

static void ports_make(struct url_class *url_class) {
    char **texts = url_class->conditions.ports;
    url_class->port_count = url_class_values(texts);
    url_class->ports = xcalloc(url_class->port_count + 1, sizeof *url_class->ports);
    for (size_t i = 0; i < url_class->port_count; i++)
        ASSERT(url_class_parse_ports(texts[i], &url_class->ports[i].from, &url_class->ports[i].to));
}

static void names_make(struct name_table *table, char **names) {
    for (; names != NULL && *names != NULL; names++)
        name_table_add(table, slice_from(*names), 0);
    name_table_seal(table);
}

static void hours_make(struct url_class *url_class) {
    char error[300];
    if (url_class->conditions.times == NULL)
        return;
    url_class->hours = xcalloc(1, sizeof *url_class->hours);
    for (char **text = url_class->conditions.times; *text != NULL; text++)
        ASSERT(class_hours_add(url_class->hours, *text, error, sizeof error));
}

static bool asks_for_server(const struct url_class_conditions *stated) {
    return stated->hosts != NULL || stated->domains != NULL || stated->host_files != NULL ||
           stated->domain_files != NULL || stated->url_regexes != NULL ||
           stated->url_files != NULL || stated->snis != NULL;
}

static unsigned asks_of(const struct url_class_conditions *stated) {
    return (stated->users != NULL ? CLASS_ASKS_USER : 0u) |
           (stated->groups != NULL ? CLASS_ASKS_GROUP : 0u) |
           (stated->destinations != NULL || stated->destination_files != NULL
                ? CLASS_ASKS_DESTINATION
                : 0u) |
           (stated->content_types != NULL ? CLASS_ASKS_TYPE : 0u) |
           (stated->request_headers != NULL ? CLASS_ASKS_HEAD : 0u) |
           (stated->times != NULL ? CLASS_ASKS_TIME : 0u) |
           (stated->snis != NULL ? CLASS_ASKS_SNI : 0u) |
           (stated->certificates != NULL ? CLASS_ASKS_CERTIFICATE : 0u) |
           (stated->listeners != NULL ? CLASS_ASKS_LISTENER : 0u) |
           (stated->clients != NULL || stated->client_files != NULL ? CLASS_ASKS_CLIENT : 0u) |
           (asks_for_server(stated) ? CLASS_ASKS_SERVER : 0u);
}

static bool states_seldom(const struct url_class *url_class) {
    const struct url_class_conditions *stated = &url_class->conditions;
    const unsigned often = CLASS_ASKS_TYPE | CLASS_ASKS_SERVER | CLASS_ASKS_CLIENT;
    return (url_class->asks & ~often) != 0 || stated->snis != NULL || stated->ports != NULL ||
           stated->schemes != NULL || stated->nots != NULL || stated->any_ofs != NULL ||
           stated->url_files != NULL;
}

struct url_class *url_class_new(const char *name, const struct url_class_conditions *conditions,
                                char *error, size_t error_size) {
    struct url_class *url_class;
    if (!url_class_conditions_check(conditions, error, error_size))
        return NULL;
    ALLOC_OBJ(url_class, URL_CLASS_MAGIC);
    struct url_class_conditions *own = &url_class->conditions;
    url_class->name = xstrdup(name);
    url_class_conditions_copy(own, conditions);
    host_condition_make(&url_class->hosts, own->hosts, false);
    host_condition_make(&url_class->domains, own->domains, true);
    host_condition_make(&url_class->snis, own->snis, false);
    regexes_compile(&url_class->path_regexes, own->path_regexes);
    regexes_compile(&url_class->url_regexes, own->url_regexes);
    url_class->clients = networks_make(own->clients);
    url_class->destinations = networks_make(own->destinations);
    ports_make(url_class);
    names_make(&url_class->users, own->users);
    names_make(&url_class->groups, own->groups);
    class_fields_compile(&url_class->fields, own->request_headers);
    hours_make(url_class);
    url_class->asks = asks_of(own);
    url_class->any_seldom = states_seldom(url_class);
    url_class->weight = 1;
    return url_class;
}

void url_class_free(struct url_class **url_classp) {
    struct url_class *url_class = *url_classp;
    *url_classp = NULL;
    if (url_class == NULL)
        return;
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    url_class_conditions_release(&url_class->conditions);
    host_condition_release(&url_class->hosts);
    host_condition_release(&url_class->domains);
    host_condition_release(&url_class->snis);
    regexes_release(&url_class->path_regexes);
    regexes_release(&url_class->url_regexes);
    network_set_free(&url_class->clients);
    network_set_free(&url_class->destinations);
    name_table_release(&url_class->users);
    name_table_release(&url_class->groups);
    class_fields_release(&url_class->fields);
    for (int i = 0; i < LISTS_OF_ALL; i++)
        free(url_class->lists[i].each);
    free(url_class->any_of.each);
    free(url_class->none_of.each);
    free(url_class->ports);
    free(url_class->hours);
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

unsigned url_class_asks(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return url_class->asks;
}

const struct class_list_array *url_class_lists(const struct url_class *url_class,
                                               enum class_lists_of of) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return &url_class->lists[of];
}

const struct class_references *url_class_any_of(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return &url_class->any_of;
}

/* Lists and other classes. */

struct class_lists *class_lists_new(bool skips_files) {
    PARTS_FOR_EACH (part, lists)
        return part_table[part]->lists->make(skips_files);
    return NULL;
}

static bool open_lists(struct class_list_array *array, enum class_list_kind kind, char **paths,
                       struct class_lists *lists, char *error, size_t error_size) {
    array->each = xcalloc(url_class_values(paths) + 1, sizeof *array->each);
    for (; paths != NULL && *paths != NULL; paths++) {
        const struct class_list *list = class_lists_open(lists, kind, *paths, error, error_size);
        if (list == NULL)
            return false;
        array->each[array->count++] = list;
    }
    return true;
}

static bool find_references(const struct url_class *url_class, struct class_references *references,
                            const char *condition, char **names,
                            const struct url_class_surroundings *around, char *error,
                            size_t error_size) {
    references->each = xcalloc(url_class_values(names) + 1, sizeof *references->each);
    for (; names != NULL && *names != NULL; names++) {
        struct url_class *found = around->find(around->arg, *names);
        if (found == NULL) {
            snprintf(error, error_size,
                     "url_class \"%s\": %s: there is no url_class \"%s\"; add one or correct the "
                     "name",
                     url_class->name, condition, *names);
            return false;
        }
        references->each[references->count++] = found;
    }
    return true;
}

bool url_class_link(struct url_class *url_class, const struct url_class_surroundings *around,
                    char *error, size_t error_size) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    const struct url_class_conditions *stated = &url_class->conditions;
    char **const paths[LISTS_OF_ALL] = {
        [LISTS_OF_HOSTS] = stated->host_files,
        [LISTS_OF_DOMAINS] = stated->domain_files,
        [LISTS_OF_CLIENTS] = stated->client_files,
        [LISTS_OF_DESTINATIONS] = stated->destination_files,
        [LISTS_OF_URLS] = stated->url_files,
    };
    static const enum class_list_kind kinds[LISTS_OF_ALL] = {
        [LISTS_OF_HOSTS] = CLASS_LIST_HOSTS,      [LISTS_OF_DOMAINS] = CLASS_LIST_DOMAINS,
        [LISTS_OF_CLIENTS] = CLASS_LIST_NETWORKS, [LISTS_OF_DESTINATIONS] = CLASS_LIST_NETWORKS,
        [LISTS_OF_URLS] = CLASS_LIST_URLS,
    };
    for (int i = 0; i < LISTS_OF_ALL; i++)
        if (!open_lists(&url_class->lists[i], kinds[i], paths[i], around->lists, error, error_size))
            return false;
    return find_references(url_class, &url_class->any_of, "any_of", stated->any_ofs, around, error,
                           error_size) &&
           find_references(url_class, &url_class->none_of, "not", stated->nots, around, error,
                           error_size);
}

/* Matching. */

static enum class_answer answer_of(bool yes) {
    return yes ? CLASS_YES : CLASS_NO;
}

/* The answer to two conditions that must both match. */
static enum class_answer both(enum class_answer a, enum class_answer b) {
    if (a == CLASS_NO || b == CLASS_NO)
        return CLASS_NO;
    return a == CLASS_YES ? b : CLASS_UNKNOWN;
}

static bool method_matches(char **methods, struct slice method) {
    for (size_t i = 0; methods[i] != NULL; i++)
        if (slice_equal_nocase(slice_from(methods[i]), method))
            return true;
    return false;
}

static bool is_one_of(char **texts, struct slice text) {
    for (; *texts != NULL; texts++)
        if (slice_equal_nocase(slice_from(*texts), text))
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

static bool lists_have_host(const struct class_list_array *lists, struct slice host) {
    for (size_t i = 0; i < lists->count; i++)
        if (class_list_has_host(lists->each[i], host))
            return true;
    return false;
}

static bool lists_have_url(const struct class_list_array *lists, struct slice url) {
    for (size_t i = 0; i < lists->count; i++)
        if (class_list_has_url(lists->each[i], url))
            return true;
    return false;
}

static bool networks_have(const struct network_set *networks, const struct class_list_array *lists,
                          const struct address *address) {
    if (networks != NULL && network_set_has(networks, address))
        return true;
    for (size_t i = 0; i < lists->count; i++)
        if (class_list_has_address(lists->each[i], address))
            return true;
    return false;
}

static bool hosts_match(const struct url_class *url_class, struct slice host) {
    const struct url_class_conditions *stated = &url_class->conditions;
    return (stated->hosts != NULL && host_condition_match(&url_class->hosts, host)) ||
           (stated->host_files != NULL && lists_have_host(&url_class->lists[LISTS_OF_HOSTS], host));
}

static bool domains_match(const struct url_class *url_class, struct slice host) {
    const struct url_class_conditions *stated = &url_class->conditions;
    return (stated->domains != NULL && host_condition_match(&url_class->domains, host)) ||
           (stated->domain_files != NULL &&
            lists_have_host(&url_class->lists[LISTS_OF_DOMAINS], host));
}

static bool client_matches(const struct url_class *url_class, const struct address *client) {
    return client != NULL &&
           networks_have(url_class->clients, &url_class->lists[LISTS_OF_CLIENTS], client);
}

static bool port_matches(const struct url_class *url_class, uint16_t port) {
    for (size_t i = 0; i < url_class->port_count; i++)
        if (port >= url_class->ports[i].from && port <= url_class->ports[i].to)
            return true;
    return false;
}

/* The end of an attribute in a subject as RFC 4514 writes it: an unescaped ',' or '+'. */
static size_t attribute_length(struct slice subject) {
    size_t i = 0;
    while (i < subject.length && subject.base[i] != ',' && subject.base[i] != '+')
        i += subject.base[i] == '\\' ? 2 : 1;
    return i < subject.length ? i : subject.length;
}

static struct slice common_name(struct slice subject) {
    while (subject.length > 0) {
        size_t length = attribute_length(subject);
        struct slice attribute = slice_trim(slice_make(subject.base, length));
        if (slice_starts_with_nocase(attribute, SLICE("CN=")))
            return slice_make(attribute.base + 3, attribute.length - 3);
        length += length < subject.length;
        subject = slice_make(subject.base + length, subject.length - length);
    }
    return subject;
}

static bool certificate_matches(char **wanted, struct slice subject) {
    struct slice name = common_name(subject);
    for (; subject.length > 0 && *wanted != NULL; wanted++)
        if (slice_equal_nocase(slice_from(*wanted), strchr(*wanted, '=') != NULL ? subject : name))
            return true;
    return false;
}

/* Conditions that are known with the request, but that few classes state. */
static bool seldom_match(const struct url_class *url_class, const struct class_subject *subject) {
    const struct url_class_conditions *stated = &url_class->conditions;
    return (stated->ports == NULL || port_matches(url_class, subject->port)) &&
           (stated->schemes == NULL || is_one_of(stated->schemes, subject->scheme)) &&
           (stated->listeners == NULL || is_one_of(stated->listeners, subject->listener)) &&
           (url_class->hours == NULL || class_hours_have(url_class->hours, subject->wall)) &&
           (stated->snis == NULL ||
            (subject->sni.length > 0 && host_condition_match(&url_class->snis, subject->sni))) &&
           (stated->certificates == NULL ||
            certificate_matches(stated->certificates, subject->certificate)) &&
           (stated->url_files == NULL ||
            lists_have_url(&url_class->lists[LISTS_OF_URLS], subject->url)) &&
           (stated->request_headers == NULL ||
            (subject->head != NULL && class_fields_find(&url_class->fields, subject->head)));
}

static bool has_user(const struct url_class *url_class, const struct class_user *user) {
    return name_table_find(&url_class->users, user->name).count > 0 ||
           name_table_find(&url_class->users, SLICE("*")).count > 0;
}

static bool has_group(const struct url_class *url_class, const struct class_user *user) {
    for (size_t i = 0; i < user->group_count; i++)
        if (name_table_find(&url_class->groups, user->groups[i]).count > 0)
            return true;
    return false;
}

static enum class_answer user_answer(const struct url_class *url_class,
                                     const struct class_subject *subject,
                                     enum url_class_known known) {
    const struct url_class_conditions *stated = &url_class->conditions;
    if (stated->users == NULL && stated->groups == NULL)
        return CLASS_YES;
    if (subject->user == NULL)
        return subject->user_pending ? CLASS_UNKNOWN : CLASS_NO;
    return answer_of((stated->users == NULL || known == URL_CLASS_KNOWN_USER ||
                      has_user(url_class, subject->user)) &&
                     (stated->groups == NULL || known == URL_CLASS_KNOWN_GROUP ||
                      has_group(url_class, subject->user)));
}

static enum class_answer destination_answer(const struct url_class *url_class,
                                            const struct class_subject *subject) {
    const struct class_list_array *lists = &url_class->lists[LISTS_OF_DESTINATIONS];
    if (url_class->destinations == NULL && lists->count == 0)
        return CLASS_YES;
    if (subject->destination_count == 0)
        return subject->destination_pending ? CLASS_UNKNOWN : CLASS_NO;
    for (size_t i = 0; i < subject->destination_count; i++)
        if (networks_have(url_class->destinations, lists, &subject->destinations[i]))
            return CLASS_YES;
    return CLASS_NO;
}

/* Does one of the classes match? */
static enum class_answer any_answer(const struct class_references *references,
                                    const struct class_subject *subject) {
    enum class_answer all = CLASS_NO;
    for (size_t i = 0; i < references->count && all != CLASS_YES; i++) {
        enum class_answer one =
            url_class_judge_request(references->each[i], subject, URL_CLASS_KNOWN_NOTHING);
        if (one != CLASS_NO)
            all = one;
    }
    return all;
}

static enum class_answer references_answer(const struct url_class *url_class,
                                           const struct class_subject *subject) {
    enum class_answer answer =
        url_class->conditions.any_ofs == NULL ? CLASS_YES : any_answer(&url_class->any_of, subject);
    if (answer == CLASS_NO || url_class->none_of.count == 0)
        return answer;
    enum class_answer none = any_answer(&url_class->none_of, subject);
    if (none != CLASS_UNKNOWN)
        none = answer_of(none == CLASS_NO);
    return both(answer, none);
}

static enum class_answer seldom_answer(const struct url_class *url_class,
                                       const struct class_subject *subject,
                                       enum url_class_known known) {
    if (!seldom_match(url_class, subject))
        return CLASS_NO;
    enum class_answer answer =
        both(user_answer(url_class, subject, known), destination_answer(url_class, subject));
    return answer == CLASS_NO ? answer : both(answer, references_answer(url_class, subject));
}

static bool expressions_match(const struct url_class *url_class,
                              const struct class_subject *subject) {
    const struct url_class_conditions *stated = &url_class->conditions;
    return (stated->path_regexes == NULL ||
            regexes_find(&url_class->path_regexes, subject->path)) &&
           (stated->url_regexes == NULL || regexes_find(&url_class->url_regexes, subject->url));
}

/* Compares the cheap conditions first and the regular expressions last. */
enum class_answer url_class_judge_request(const struct url_class *url_class,
                                          const struct class_subject *subject,
                                          enum url_class_known known) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    const struct url_class_conditions *stated = &url_class->conditions;
    enum class_answer answer = CLASS_YES;
    if (stated->methods != NULL && !method_matches(stated->methods, subject->method))
        return CLASS_NO;
    if ((stated->hosts != NULL || stated->host_files != NULL) && known != URL_CLASS_KNOWN_HOST &&
        !hosts_match(url_class, subject->host))
        return CLASS_NO;
    if ((stated->domains != NULL || stated->domain_files != NULL) &&
        known != URL_CLASS_KNOWN_DOMAIN && !domains_match(url_class, subject->host))
        return CLASS_NO;
    if ((stated->clients != NULL || stated->client_files != NULL) &&
        known != URL_CLASS_KNOWN_CLIENT && !client_matches(url_class, subject->client))
        return CLASS_NO;
    if (url_class->any_seldom)
        answer = seldom_answer(url_class, subject, known);
    return answer != CLASS_NO && expressions_match(url_class, subject) ? answer : CLASS_NO;
}

static bool response_matches(const struct url_class *url_class,
                             const struct class_subject *subject) {
    char **types = url_class->conditions.content_types;
    if (types == NULL)
        return true;
    return subject->content_type.base == NULL ? subject->response_pending
                                              : content_type_matches(types, subject->content_type);
}

enum class_answer url_class_judge(const struct url_class *url_class,
                                  const struct class_subject *subject) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    return response_matches(url_class, subject)
               ? url_class_judge_request(url_class, subject, URL_CLASS_KNOWN_NOTHING)
               : CLASS_NO;
}

bool url_class_matches(const struct url_class *url_class, const struct class_subject *subject) {
    return url_class_judge(url_class, subject) == CLASS_YES;
}

/* What the conditions say by themselves. */

bool url_class_is_for_all(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    static const struct url_class_conditions none = {0};
    return memcmp(&url_class->conditions, &none, sizeof none) == 0;
}

static const char *unknown_of_references(const struct class_references *references) {
    for (size_t i = 0; i < references->count; i++) {
        const char *unknown = url_class_unknown_of_connection(references->each[i]);
        if (unknown != NULL)
            return unknown;
    }
    return NULL;
}

const char *url_class_unknown_of_connection(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    const struct url_class_conditions *stated = &url_class->conditions;
    if (stated->content_types != NULL)
        return "content_type";
    if (stated->path_regexes != NULL)
        return "path_regex";
    if (stated->url_files != NULL)
        return "url_file";
    if (stated->request_headers != NULL)
        return "request_header";
    if (stated->destinations != NULL || stated->destination_files != NULL)
        return "destination";
    const char *unknown = unknown_of_references(&url_class->any_of);
    return unknown != NULL ? unknown : unknown_of_references(&url_class->none_of);
}

/* Can none of the hosts be in one of the domains? */
static bool hosts_are_elsewhere(const struct url_class *url_class) {
    const struct url_class_conditions *stated = &url_class->conditions;
    if (stated->hosts == NULL || stated->domains == NULL || stated->host_files != NULL ||
        stated->domain_files != NULL)
        return false;
    for (char **host = stated->hosts; *host != NULL; host++) {
        bool star = strncmp(*host, "*.", 2) == 0;
        if (host_condition_match(&url_class->domains, slice_from(star ? *host + 2 : *host)))
            return false;
        for (char **domain = stated->domains; star && *domain != NULL; domain++)
            if (slice_ends_with_nocase(slice_from(*domain), slice_from(*host + 1)))
                return false; /* a domain below the star */
    }
    return true;
}

static bool asks_connect_for_scheme(const struct url_class_conditions *stated) {
    if (stated->methods == NULL || stated->schemes == NULL)
        return false;
    for (char **method = stated->methods; *method != NULL; method++)
        if (strcmp(*method, "CONNECT") != 0)
            return false;
    return true;
}

static bool all_never_match(const struct class_references *references) {
    for (size_t i = 0; i < references->count; i++)
        if (url_class_contradiction(references->each[i]) == NULL)
            return false;
    return references->count > 0;
}

const char *url_class_contradiction(const struct url_class *url_class) {
    CHECK_OBJ(url_class, URL_CLASS_MAGIC);
    if (hosts_are_elsewhere(url_class))
        return "none of its hosts is in one of its domains";
    if (asks_connect_for_scheme(&url_class->conditions))
        return "a CONNECT has no scheme";
    if (all_never_match(&url_class->any_of))
        return "none of the classes of any_of can match";
    for (size_t i = 0; i < url_class->none_of.count; i++)
        if (url_class_is_for_all(url_class->none_of.each[i]))
            return "not names a class that matches every request";
    return NULL;
}
