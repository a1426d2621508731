#include "events/filter.h"

#include "base/assert.h"
#include "base/failure.h"
#include "transaction/access_log_choice.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each list: NULL-terminated; NULL: any value will do. */
struct event_filter {
    unsigned magic;
#define EVENT_FILTER_MAGIC 0xe4e4f117u
    _Atomic unsigned users;
    char *class_name, *user, *url;
    char **methods, **services, **hosts;
    struct log_statuses statuses[EVENT_FILTER_VALUES];
    size_t status_count;
    struct network clients[EVENT_FILTER_VALUES];
    size_t client_count;
    unsigned results; /* bits */
    uint64_t least;   /* microseconds */
};

const char *const event_filter_names[] = {"class",   "status", "method", "result",
                                          "service", "client", "user",   "host",
                                          "url",     "min_ms", NULL};

struct event_filter *event_filter_new(void) {
    struct event_filter *filter;
    ALLOC_OBJ(filter, EVENT_FILTER_MAGIC);
    filter->users = 1;
    filter->results = ~0u;
    return filter;
}

struct event_filter *event_filter_reference(struct event_filter *filter) {
    CHECK_OBJ(filter, EVENT_FILTER_MAGIC);
    atomic_fetch_add(&filter->users, 1);
    return filter;
}

static void free_list(char **list) {
    for (char **at = list; at != NULL && *at != NULL; at++)
        free(*at);
    free(list);
}

void event_filter_release(struct event_filter **filterp) {
    struct event_filter *filter = *filterp;
    *filterp = NULL;
    if (filter == NULL)
        return;
    CHECK_OBJ(filter, EVENT_FILTER_MAGIC);
    if (atomic_fetch_sub(&filter->users, 1) > 1)
        return;
    free(filter->class_name);
    free(filter->user);
    free(filter->url);
    free_list(filter->methods);
    free_list(filter->services);
    free_list(filter->hosts);
    FREE_OBJ(filter);
}

/* Setting. */

static bool filter_refuse(char *error, const char *name, const char *value, const char *reason) {
    return failure(error, EVENT_FILTER_ERROR, "%s: \"%.60s\" %s", name, value, reason);
}

/* The values between the commas. NULL: there are too many, or one is empty. */
static char **split_values(const char *value) {
    char **list = xcalloc(EVENT_FILTER_VALUES + 1, sizeof *list);
    const char *at = value;
    for (unsigned i = 0; i < EVENT_FILTER_VALUES; i++) {
        size_t length = strcspn(at, ",");
        if (length == 0)
            break;
        list[i] = slice_dup(slice_make(at, length));
        if (at[length] == '\0')
            return list;
        at += length + 1;
    }
    free_list(list);
    return NULL;
}

static bool take_list(char ***place, char ***list) {
    free_list(*place);
    *place = *list;
    *list = NULL;
    return true;
}

static bool take_text(char **place, const char *value) {
    free(*place);
    *place = xstrdup(value);
    return true;
}

static bool filter_set_statuses(struct event_filter *filter, char *const *list, char *error) {
    for (; *list != NULL; list++)
        if (!log_statuses_parse(*list, &filter->statuses[filter->status_count++]))
            return filter_refuse(error, "status", *list, "is no status: write 404, 5xx or 400-499");
    return true;
}

static bool set_results(struct event_filter *filter, char *const *list, char *error) {
    char reason[EVENT_FILTER_ERROR / 2];
    for (char *const *at = list; *at != NULL; at++)
        if (!option_check_log_result(*at, reason, sizeof reason))
            return filter_refuse(error, "result", *at, reason);
    filter->results = access_log_choice_results(list);
    return true;
}

static bool set_clients(struct event_filter *filter, char *const *list, char *error) {
    char reason[NETWORK_REASON];
    for (; *list != NULL; list++)
        if (!network_read(&filter->clients[filter->client_count++], slice_from(*list), reason))
            return filter_refuse(error, "client", *list, reason);
    return true;
}

static bool set_least(struct event_filter *filter, const char *value, char *error) {
    enum { MOST = 86400 * 1000 };
    uint64_t milliseconds;
    if (!slice_to_uint64(slice_from(value), &milliseconds) || milliseconds > MOST)
        return filter_refuse(error, "min_ms", value, "is no number of milliseconds up to 86400000");
    filter->least = milliseconds * 1000;
    return true;
}

static bool set_from_list(struct event_filter *filter, const char *name, char ***list,
                          char *error) {
    if (strcmp(name, "status") == 0)
        return filter_set_statuses(filter, *list, error);
    if (strcmp(name, "result") == 0)
        return set_results(filter, *list, error);
    if (strcmp(name, "client") == 0)
        return set_clients(filter, *list, error);
    if (strcmp(name, "method") == 0)
        return take_list(&filter->methods, list);
    if (strcmp(name, "service") == 0)
        return take_list(&filter->services, list);
    ASSERT(strcmp(name, "host") == 0);
    return take_list(&filter->hosts, list);
}

bool event_filter_set(struct event_filter *filter, const char *name, const char *value,
                      char error[EVENT_FILTER_ERROR]) {
    CHECK_OBJ(filter, EVENT_FILTER_MAGIC);
    if (strcmp(name, "class") == 0)
        return take_text(&filter->class_name, value);
    if (strcmp(name, "user") == 0)
        return take_text(&filter->user, value);
    if (strcmp(name, "url") == 0)
        return take_text(&filter->url, value);
    if (strcmp(name, "min_ms") == 0)
        return set_least(filter, value, error);
    char **list = split_values(value);
    if (list == NULL)
        return filter_refuse(error, name, value, "is no list: write 1 to 32 values with commas");
    bool good = set_from_list(filter, name, &list, error);
    free_list(list);
    return good;
}

/* Fitting. */

const char *event_filter_class(const struct event_filter *filter) {
    return filter->class_name;
}

static bool filter_fits_method(const struct event_filter *filter, const struct journal *journal) {
    for (char **name = filter->methods; name != NULL; name++) {
        if (*name == NULL)
            return false;
        if (slice_equal(slice_from(*name), journal->method))
            break;
    }
    return true;
}

static bool fits_client(const struct event_filter *filter, const struct journal *journal) {
    if (filter->client_count == 0)
        return true;
    if (journal->client_address == NULL)
        return false;
    struct address address = *journal->client_address;
    address_unmap(&address);
    for (size_t i = 0; i < filter->client_count; i++)
        if (network_contains(&filter->clients[i], &address))
            return true;
    return false;
}

/* ".example.org" is the domain with all hosts in it. */
static bool is_host(const char *wanted, struct slice host) {
    struct slice domain = slice_from(wanted);
    if (domain.base[0] != '.' || slice_equal_nocase(domain, host))
        return slice_equal_nocase(domain, host);
    return slice_ends_with_nocase(host, domain) ||
           slice_equal_nocase(slice_make(domain.base + 1, domain.length - 1), host);
}

static bool fits_host(const struct event_filter *filter, const struct journal *journal) {
    for (char **name = filter->hosts; name != NULL; name++) {
        if (*name == NULL)
            return false;
        if (is_host(*name, journal->host))
            break;
    }
    return true;
}

static bool fits_url(const struct event_filter *filter, const struct journal *journal) {
    return filter->url == NULL ||
           memmem(journal->url.base, journal->url.length, filter->url, strlen(filter->url)) != NULL;
}

bool event_filter_fits(const struct event_filter *filter, const struct journal *journal,
                       const struct url_class *url_class) {
    return (filter->results >> journal->result & 1) != 0 && journal->duration >= filter->least &&
           access_log_choice_has_status(journal, filter->statuses, filter->status_count) &&
           filter_fits_method(filter, journal) &&
           (filter->user == NULL || slice_equal(slice_from(filter->user), journal->user)) &&
           access_log_choice_has_service(journal, filter->services) &&
           fits_client(filter, journal) && fits_host(filter, journal) &&
           fits_url(filter, journal) &&
           (filter->class_name == NULL || access_log_choice_is_in(journal, url_class));
}
