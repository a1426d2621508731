#include "match/class_conditions.h"

#include "base/assert.h"
#include "base/failure.h"
#include "match/regex.h"
#include "net/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { LISTS = sizeof(struct url_class_conditions) / sizeof(char **) };

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
    return failure(error, error_size,
                   "is not a host: write a name without scheme, port and path, as in "
                   "\"www.example.com\" or \"*.example.com\"");
}

bool url_class_check_domain(const char *text, char *error, size_t error_size) {
    if (url_class_is_address(text) || url_class_is_host_name(text))
        return true;
    return failure(error, error_size,
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
    return failure(error, error_size, "is not a request method");
}

bool url_class_check_content_type(const char *text, char *error, size_t error_size) {
    const char *slash = strchr(text, '/');
    if (slash != NULL && strlen(text) < URL_CLASS_TYPE_MAX / 2 &&
        url_class_is_token(text, (size_t)(slash - text)) &&
        url_class_is_token(slash + 1, strlen(slash + 1)))
        return true;
    return failure(error, error_size,
                   "is not a media type: write it without parameters, as in \"text/html\" or "
                   "\"image/*\"");
}

bool url_class_check_client(const char *text, char *error, size_t error_size) {
    struct network network;
    char reason[NETWORK_REASON];
    return network_read(&network, slice_from(text), reason) ||
           failure(error, error_size, "%s", reason);
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
    return failure(error, error_size,
                   "is not a port from 1 to 65535: write \"443\" or \"8000-8999\"");
}

bool url_class_check_scheme(const char *text, char *error, size_t error_size) {
    if (strcmp(text, "http") == 0 || strcmp(text, "https") == 0)
        return true;
    return failure(error, error_size,
                   "is not a scheme of requests: write http or https. For CONNECT, use method");
}

bool url_class_check_time(const char *text, char *error, size_t error_size) {
    struct class_hours hours;
    class_hours_clear(&hours);
    return class_hours_add(&hours, text, error, error_size);
}

bool url_class_check_text(const char *text, char *error, size_t error_size) {
    return text[0] != '\0' || failure(error, error_size, "is empty");
}

bool url_class_check_path(const char *text, char *error, size_t error_size) {
    return text[0] == '/' ||
           failure(error, error_size, "is not the path of a list: begin it with a slash");
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
        if (!condition->check(values[i], reason, sizeof reason))
            return failure(error, error_size, "%s \"%s\" %s", condition->name, values[i], reason);
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

struct class_field {
    char *name;
    enum http_name id; /* HTTP_OTHER: the name is compared */
    struct regexes value;
};

static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* The expression in "Name: REGEX"; NULL: there is no name before a colon. */
static const char *expression_in(const char *text, size_t *name_length) {
    *name_length = strspn(text, token);
    if (*name_length == 0 || text[*name_length] != ':')
        return NULL;
    const char *expression = text + *name_length + 1;
    return expression + strspn(expression, " ");
}

bool class_fields_check(const char *text, char *error, size_t error_size) {
    size_t length;
    const char *expression = expression_in(text, &length);
    if (expression != NULL)
        return regex_check(expression, error, error_size);
    return failure(
        error, error_size,
        "is not a condition on a field: write its name, a colon and a regular expression, as "
        "in 'User-Agent: ^curl/'");
}

void class_fields_compile(struct class_fields *fields, char **texts) {
    *fields = (struct class_fields){0};
    while (texts != NULL && texts[fields->count] != NULL)
        fields->count++;
    fields->each = xcalloc(fields->count + 1, sizeof *fields->each);
    for (size_t i = 0; i < fields->count; i++) {
        size_t length;
        const char *expression = expression_in(texts[i], &length);
        char *one[] = {(char *)(uintptr_t)expression, NULL};
        ASSERT(expression != NULL);
        fields->each[i].name = slice_dup(slice_make(texts[i], length));
        fields->each[i].id = http_name_lookup(slice_make(texts[i], length));
        regexes_compile(&fields->each[i].value, one);
    }
}

void class_fields_release(struct class_fields *fields) {
    for (size_t i = 0; i < fields->count; i++) {
        free(fields->each[i].name);
        regexes_release(&fields->each[i].value);
    }
    free(fields->each);
    *fields = (struct class_fields){0};
}

static bool field_has_name(const struct class_field *field, const struct http_field *sent) {
    return field->id != HTTP_OTHER
               ? sent->id == field->id
               : sent->id == HTTP_OTHER && slice_equal_nocase(slice_from(field->name), sent->name);
}

static bool field_find(const struct class_field *field, const struct http_head *head) {
    if (field->id != HTTP_OTHER && !http_head_has(head, field->id))
        return false;
    for (unsigned i = 0; i < head->field_count; i++)
        if (field_has_name(field, &head->fields[i]) &&
            regexes_find(&field->value, head->fields[i].value))
            return true;
    return false;
}

bool class_fields_find(const struct class_fields *fields, const struct http_head *head) {
    for (size_t i = 0; i < fields->count; i++)
        if (field_find(&fields->each[i], head))
            return true;
    return false;
}

static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const char form[] =
    "is not a time: write days, a time of day, or both, as in \"mon-fri 08:00-17:30\", \"sat,sun\" "
    "or \"22:00-06:00\"";

void class_hours_clear(struct class_hours *hours) {
    memset(hours, 0, sizeof *hours);
}

static const char *hours_skip_blanks(const char *text) {
    return text + strspn(text, " \t");
}

/* Moves behind the name of a day; -1: there is none. */
static int take_day(const char **text) {
    for (int day = 0; day < 7; day++)
        if (strncasecmp(*text, day_names[day], 3) == 0) {
            *text += 3;
            return day;
        }
    return -1;
}

/* "mon", "mon-fri", "sat,sun": the days as bits. */
static bool take_days(const char **text, unsigned *days) {
    do {
        int from = take_day(text), to = from;
        if (from < 0)
            return false;
        if (**text == '-') {
            ++*text;
            to = take_day(text);
        }
        if (to < 0)
            return false;
        for (int day = from;; day = (day + 1) % 7) {
            *days |= 1u << day;
            if (day == to)
                break;
        }
    } while (**text == ',' && *++*text != '\0');
    return (*text)[-1] != ',';
}

static bool hours_is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* "08:30": minutes of the day, at most 24:00. */
static bool hours_take_time(const char **text, unsigned *minutes) {
    const char *t = *text;
    if (!hours_is_digit(t[0]) || !hours_is_digit(t[1]) || t[2] != ':' || !hours_is_digit(t[3]) ||
        !hours_is_digit(t[4]))
        return false;
    unsigned hour = (unsigned)(t[0] - '0') * 10 + (unsigned)(t[1] - '0');
    unsigned minute = (unsigned)(t[3] - '0') * 10 + (unsigned)(t[4] - '0');
    *minutes = hour * 60 + minute;
    *text += strlen("08:30");
    return minute < 60 && *minutes <= MINUTES_OF_DAY;
}

static bool hours_take_times(const char **text, unsigned *from, unsigned *to) {
    return hours_take_time(text, from) && *(*text)++ == '-' && hours_take_time(text, to);
}

static void set_minutes(struct class_hours *hours, unsigned day, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        unsigned minute = (day * MINUTES_OF_DAY + i) % MINUTES_OF_WEEK;
        hours->minutes[minute / 64] |= UINT64_C(1) << minute % 64;
    }
}

bool class_hours_add(struct class_hours *hours, const char *text, char *error, size_t error_size) {
    enum { ALL_DAYS = 0x7f };
    unsigned days = 0, from = 0, to = MINUTES_OF_DAY;
    const char *at = hours_skip_blanks(text);
    if (!hours_is_digit(*at) && !take_days(&at, &days))
        return failure(error, error_size, "%s", form);
    bool any_days = days != 0;
    const char *times = hours_skip_blanks(at);
    if (*times != '\0' && ((any_days && times == at) || !hours_take_times(&times, &from, &to)))
        return failure(error, error_size, "%s", form);
    if (*hours_skip_blanks(times) != '\0' || (!any_days && times == at))
        return failure(error, error_size, "%s", form);
    if (from == to)
        return failure(error, error_size,
                       "is a time that never comes: it ends when it begins; the whole day is "
                       "00:00-24:00");
    for (unsigned day = 0; day < 7; day++)
        if (((any_days ? days : ALL_DAYS) >> day & 1) != 0)
            set_minutes(hours, day, from, to > from ? to : to + MINUTES_OF_DAY);
    return true;
}

/* The minute of the week in the machine's time zone; -1: there is no such time. */
static int minute_of_week(int64_t wall) {
    static _Thread_local int64_t last_minute = -1; /* since 1970 */
    static _Thread_local int last;
    if (wall / 60 != last_minute) {
        time_t seconds = (time_t)wall;
        struct tm local;
        last = localtime_r(&seconds, &local) == NULL
                   ? -1
                   : local.tm_wday * MINUTES_OF_DAY + local.tm_hour * 60 + local.tm_min;
        last_minute = wall / 60;
    }
    return last;
}

bool class_hours_have(const struct class_hours *hours, int64_t wall) {
    int minute = wall <= 0 ? -1 : minute_of_week(wall);
    return minute >= 0 && (hours->minutes[minute / 64] >> minute % 64 & 1) != 0;
}
