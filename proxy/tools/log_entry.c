#include "tools/log_entry.h"

#include <stdlib.h>
#include <string.h>

/* The host of a URL, or of HOST:PORT, without the port; empty: it has none. */
static struct slice host_of(struct slice url) {
    const char *scheme = memmem(url.base, url.length, "://", 3);
    const char *at = scheme != NULL ? scheme + 3 : url.base, *end = url.base + url.length;
    size_t length = 0, left = (size_t)(end - at);
    if (scheme == NULL && (left == 0 || *at == '/' || memchr(at, ':', left) == NULL))
        return slice_make("", 0);
    while (length < left && strchr("/?#", at[length]) == NULL)
        length++;
    const char *user = length > 0 ? memrchr(at, '@', length) : NULL;
    if (user != NULL) {
        length -= (size_t)(user + 1 - at);
        at = user + 1;
    }
    const char *close = length > 0 && *at == '[' ? memchr(at, ']', length) : NULL;
    if (close != NULL)
        return slice_make(at, (size_t)(close + 1 - at));
    const char *colon = length > 0 ? memchr(at, ':', length) : NULL;
    return slice_make(at, colon != NULL ? (size_t)(colon - at) : length);
}

static bool log_entry_is_hit(struct slice result) {
    static const char *const hits[] = {"HIT", "STALE", "REVALIDATED", "TCP_REFRESH_UNMODIFIED"};
    for (size_t i = 0; i < sizeof hits / sizeof *hits; i++)
        if (slice_equal(result, slice_from(hits[i])))
            return true;
    return slice_ends_with_nocase(result, SLICE("_HIT"));
}

static bool log_entry_take_status(struct log_entry *record, uint64_t status) {
    record->status = (unsigned)status;
    return status <= 999;
}

/* JSON. */

static struct slice json_slice(const json_t *object, const char *name) {
    const json_t *text = json_object_get(object, name);
    return json_is_string(text) ? slice_make(json_string_value(text), json_string_length(text))
                                : slice_make("", 0);
}

static void take_services(struct log_entry *record, const json_t *list) {
    size_t i;
    const json_t *service;
    json_array_foreach(list, i, service) {
        if (record->service_count == LOG_ENTRY_SERVICES)
            return;
        record->services[record->service_count++] = (struct log_entry_service){
            .name = json_slice(service, "service"),
            .milliseconds = json_number_value(json_object_get(service, "ms")),
            .failed = json_object_get(service, "error") != NULL,
        };
    }
}

bool log_entry_of_json(struct log_entry *record, const json_t *json) {
    const json_t *status = json_object_get(json, "status");
    json_int_t bytes = json_integer_value(json_object_get(json, "bytes"));
    const json_t *duration = json_object_get(json, "ms");
    *record = (struct log_entry){
        .client = json_slice(json, "client"),
        .url = json_slice(json, "url"),
        .result = json_slice(json, "result"),
        .bytes = bytes > 0 ? (uint64_t)bytes : 0,
        .milliseconds = json_is_number(duration) ? json_number_value(duration) : -1,
    };
    record->host = host_of(record->url);
    record->hit = log_entry_is_hit(record->result);
    take_services(record, json_object_get(json, "icap"));
    return json_is_integer(status) && json_integer_value(status) >= 0 &&
           log_entry_take_status(record, (uint64_t)json_integer_value(status));
}

/* Words. */

/* Takes the word at the front, and the blanks around it. */
static struct slice take_word(struct slice *line) {
    const char *at = line->base, *end = at + line->length;
    while (at < end && *at == ' ')
        at++;
    const char *begin = at;
    while (at < end && *at != ' ')
        at++;
    *line = slice_make(at, (size_t)(end - at));
    return slice_make(begin, (size_t)(at - begin));
}

/* Takes what stands between the marks, behind blanks. A backslash takes the byte behind it. */
static bool take_between(struct slice *line, char open, char close, struct slice *inside) {
    const char *at = line->base, *end = at + line->length;
    while (at < end && *at == ' ')
        at++;
    if (at == end || *at != open)
        return false;
    const char *begin = ++at;
    while (at < end && *at != close)
        at += *at == '\\' && end - at > 1 ? 2 : 1;
    if (at >= end)
        return false;
    *inside = slice_make(begin, (size_t)(at - begin));
    *line = slice_make(at + 1, (size_t)(end - at - 1));
    return true;
}

/* "gray:MODIFIED:12,gzip:UNMODIFIED:3", or "-" */
static void take_words_of_services(struct log_entry *record, struct slice words) {
    const char *at = words.base, *end = at + words.length;
    while (at < end && record->service_count < LOG_ENTRY_SERVICES) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        const char *first = memchr(at, ':', (size_t)(stop - at));
        const char *second = first ? memchr(first + 1, ':', (size_t)(stop - first - 1)) : NULL;
        uint64_t milliseconds;
        if (second == NULL ||
            !slice_to_uint64(slice_make(second + 1, (size_t)(stop - second - 1)), &milliseconds))
            return;
        record->services[record->service_count++] = (struct log_entry_service){
            .name = slice_make(at, (size_t)(first - at)),
            .milliseconds = (double)milliseconds,
            .failed =
                slice_equal(slice_make(first + 1, (size_t)(second - first - 1)), SLICE("FAILED")),
        };
        at = comma != NULL ? comma + 1 : end;
    }
}

static bool is_time(struct slice word) {
    const char *point = word.length > 0 ? memchr(word.base, '.', word.length) : NULL;
    uint64_t number;
    return point != NULL &&
           slice_to_uint64(slice_make(word.base, (size_t)(point - word.base)), &number);
}

/* "1764012345.678     17 192.0.2.7 TCP_MISS/200 512 GET http://a.org/ - HIER_DIRECT/1.2.3.4 text/html",
 * then perhaps an id and the services. */
static bool of_squid(struct log_entry *record, struct slice line) {
    uint64_t elapsed, status;
    if (!is_time(take_word(&line)) || !slice_to_uint64(take_word(&line), &elapsed))
        return false;
    record->milliseconds = (double)elapsed;
    record->client = take_word(&line);
    struct slice code = take_word(&line);
    const char *slash = code.length > 0 ? memchr(code.base, '/', code.length) : NULL;
    if (slash == NULL || !slice_to_uint64(take_word(&line), &record->bytes))
        return false;
    record->result = slice_make(code.base, (size_t)(slash - code.base));
    record->hit = log_entry_is_hit(record->result);
    slash++;
    take_word(&line); /* the method */
    record->url = take_word(&line);
    record->host = host_of(record->url);
    for (int i = 0; i < 4; i++) /* user, peer, type, id */
        take_word(&line);
    take_words_of_services(record, take_word(&line));
    return record->url.length > 0 &&
           slice_to_uint64(slice_make(slash, (size_t)(code.base + code.length - slash)), &status) &&
           log_entry_take_status(record, status);
}

/* "192.0.2.7 - anna [21/Nov/2026:09:15:00 +0000] \"GET http://a.org/ HTTP/1.1\" 200 512 \"-\" \"curl\"",
 * then perhaps a result, an id and the services. */
static bool of_combined(struct log_entry *record, struct slice line) {
    struct slice skipped, asked;
    uint64_t status;
    record->milliseconds = -1;
    record->client = take_word(&line);
    take_word(&line);
    take_word(&line);
    if (!take_between(&line, '[', ']', &skipped) || !take_between(&line, '"', '"', &asked) ||
        !slice_to_uint64(take_word(&line), &status) || !log_entry_take_status(record, status))
        return false;
    if (!slice_to_uint64(take_word(&line), &record->bytes))
        record->bytes = 0; /* Apache's "-" */
    take_word(&asked);
    record->url = take_word(&asked);
    record->host = host_of(record->url);
    if (take_between(&line, '"', '"', &skipped) && take_between(&line, '"', '"', &skipped)) {
        record->result = take_word(&line);
        record->hit = log_entry_is_hit(record->result);
        take_word(&line);
        take_words_of_services(record, take_word(&line));
    }
    return true;
}

bool log_entry_of_line(struct log_entry *record, const char *line, size_t length) {
    *record = (struct log_entry){.status = 0};
    if (length > 0 && line[0] == '{') {
        json_t *json = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
        bool good = json_is_object(json) && log_entry_of_json(record, json);
        record->json = json;
        return good;
    }
    if (of_squid(record, slice_make(line, length)))
        return true;
    *record = (struct log_entry){.status = 0};
    return of_combined(record, slice_make(line, length));
}

void log_entry_release(struct log_entry *record) {
    json_decref(record->json);
    record->json = NULL;
}
