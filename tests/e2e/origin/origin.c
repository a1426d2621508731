/*
 * The programmable origin of the end-to-end tests: an HTTP server whose answers are written in the
 * URL that asks for them.
 *
 *     origin [ADDRESS]            listens on a free port of 127.0.0.1 or ADDRESS, prints "port N"
 *
 *     /bytes?n=N                  N bytes of the pattern, with Content-Length
 *     /chunked?n=N&piece=P&delay=MS   the same in chunks, a pause before each piece
 *     /drip?n=N&piece=P&delay=MS  the same with Content-Length
 *     /abort?n=N&after=A          promises N bytes and closes after A; chunked=1: in chunks
 *     /own/NAME?n=N               N bytes that no other answer has: see below
 *     /version                    the version of the newest answer of /own, as text
 *     /text?say=T                 T
 *     /echo                       the request as JSON: method, url, headers, length, crc32, body
 *                                 as hexadecimal digits
 *     /count?of=PATH              how many requests PATH has had, as text
 *     anything else               "path N\n" where N counts the requests of that path
 *
 * Everywhere: status=N, ms=N (waits before it answers), type=T (Content-Type), h=Name:Value (any
 * header, repeatable), cc=V (Cache-Control), vary=V, etag=V and lm=SECONDS (Last-Modified; both are
 * compared with the request's conditions: 304), fail304=1 (does not compare). Each answer has
 * X-Origin-Count, the number of requests that this path has had.
 *
 * Each answer of /own has a version, a number that grows with every one, in X-Origin-Count and in
 * its ETag ("v-VERSION"); requests are never answered with 304. Its body begins with the line "PATH
 * KIND VERSION", where KIND is the request's X-Kind or "-", and goes on with the pattern from a
 * place that the line's CRC-32 chooses: bytes of another path, kind, version or place can be told.
 *
 * One thread a connection: tests wait inside handlers.
 */
#include <jansson.h>
#include <microhttpd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { PATTERN = 65537, PATHS_MAX = 4096, BODY_SHOWN = 65536, DATE_TEXT = 64 };

static unsigned char pattern[PATTERN];

struct path_count {
    char *path;
    unsigned long count;
};

static struct path_count path_counts[PATHS_MAX];
static size_t path_count_used;
static pthread_mutex_t path_lock = PTHREAD_MUTEX_INITIALIZER;

/* What has come of a request's body. */
struct upload {
    uint64_t length;
    uint32_t crc;
    char shown[BODY_SHOWN];
    size_t shown_length;
};

/* A body on its way out. */
struct body {
    uint64_t length, abort_after;
    uint64_t piece, delay;
    bool aborts;
    char front[400]; /* what it begins with, before the pattern */
    size_t front_length, rotation;
};

static _Atomic unsigned long newest_version;

static void pattern_fill(void) {
    uint32_t state = 1;

    for (size_t i = 0; i < PATTERN; i++) {
        state = state * 1664525u + 1013904223u;
        pattern[i] = (unsigned char)(state >> 24);
    }
}

static uint32_t crc32_add(uint32_t crc, const char *data, size_t length) {
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xEDB88320u & -(crc & 1));
    }
    return ~crc;
}

static void pause_ms(uint64_t ms) {
    struct timespec wait = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&wait, NULL);
}

static const char *argument(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static uint64_t number(struct MHD_Connection *connection, const char *name, uint64_t otherwise) {
    const char *text = argument(connection, name);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static unsigned long count_of(const char *path, unsigned add) {
    unsigned long count = 0;
    size_t i;

    pthread_mutex_lock(&path_lock);
    for (i = 0; i < path_count_used; i++)
        if (strcmp(path_counts[i].path, path) == 0)
            break;
    if (i == path_count_used && add > 0 && i < PATHS_MAX) {
        path_counts[i].path = strdup(path);
        path_count_used++;
    }
    if (i < path_count_used)
        count = path_counts[i].count += add;
    pthread_mutex_unlock(&path_lock);
    return count;
}

static ssize_t body_read(void *context, uint64_t position, char *out, size_t capacity) {
    struct body *body = context;
    uint64_t left = body->length - position;
    size_t offset = (size_t)((position + body->rotation) % PATTERN), length = capacity;

    if (body->aborts && position >= body->abort_after)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (left == 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (body->delay > 0)
        pause_ms(body->delay);
    if (body->aborts && length > body->abort_after - position)
        length = (size_t)(body->abort_after - position);
    if (length > left)
        length = (size_t)left;
    if (body->piece > 0 && length > body->piece)
        length = (size_t)body->piece;
    if (position < body->front_length) {
        if (length > body->front_length - position)
            length = (size_t)(body->front_length - position);
        memcpy(out, body->front + position, length);
        return (ssize_t)length;
    }
    if (length > PATTERN - offset)
        length = PATTERN - offset;
    memcpy(out, pattern + offset, length);
    return (ssize_t)length;
}

static struct MHD_Response *respond_pattern(struct MHD_Connection *connection, bool chunked,
                                            const char *front) {
    struct body *body = calloc(1, sizeof *body);

    if (front != NULL) {
        body->front_length = (size_t)snprintf(body->front, sizeof body->front, "%s", front);
        body->rotation = crc32_add(0, body->front, body->front_length) % PATTERN;
    }
    body->length = number(connection, "n", 0);
    body->piece = number(connection, "piece", 0);
    body->delay = number(connection, "delay", 0);
    body->aborts = argument(connection, "after") != NULL;
    body->abort_after = number(connection, "after", 0);
    return MHD_create_response_from_callback(chunked ? MHD_SIZE_UNKNOWN : body->length, 65536,
                                             body_read, body, free);
}

static struct MHD_Response *respond_own(struct MHD_Connection *connection, const char *path,
                                        unsigned long own_version) {
    const char *kind = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "X-Kind");
    struct MHD_Response *response;
    char text[400];

    snprintf(text, sizeof text, "%.200s %.100s %lu\n", path, kind == NULL ? "-" : kind,
             own_version);
    response = respond_pattern(connection, argument(connection, "chunked") != NULL, text);
    snprintf(text, sizeof text, "\"v-%lu\"", own_version);
    MHD_add_response_header(response, "ETag", text);
    return response;
}

static struct MHD_Response *respond_text(const char *text) {
    return MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                           MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result add_header_json(void *context, enum MHD_ValueKind kind, const char *name,
                                       const char *value) {
    json_array_append_new(context, json_pack("[s, s]", name, value == NULL ? "" : value));
    return MHD_YES;
}

static enum MHD_Result add_argument_text(void *context, enum MHD_ValueKind kind, const char *name,
                                         const char *value) {
    json_array_append_new(context, value == NULL ? json_pack("[s, n]", name)
                                                 : json_pack("[s, s]", name, value));
    return MHD_YES;
}

static struct MHD_Response *respond_echo(struct MHD_Connection *connection, const char *method,
                                         const char *path, const struct upload *upload) {
    static const char digits[] = "0123456789abcdef";
    json_t *headers = json_array(), *arguments = json_array();
    char *hex = malloc(2 * upload->shown_length + 1), *text;
    struct MHD_Response *response;
    json_t *all;

    for (size_t i = 0; i < upload->shown_length; i++) {
        hex[2 * i] = digits[(unsigned char)upload->shown[i] >> 4];
        hex[2 * i + 1] = digits[upload->shown[i] & 15];
    }
    hex[2 * upload->shown_length] = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, add_header_json, headers);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument_text, arguments);
    all = json_pack("{s:s, s:s, s:o, s:o, s:I, s:I, s:s}", "method", method, "path", path,
                    "arguments", arguments, "headers", headers, "length",
                    (json_int_t)upload->length, "crc32", (json_int_t)upload->crc, "body", hex);
    text = json_dumps(all, JSON_COMPACT);
    response = respond_text(text);
    MHD_add_response_header(response, "Content-Type", "application/json");
    free(text);
    free(hex);
    json_decref(all);
    return response;
}

static enum MHD_Result add_header_argument(void *context, enum MHD_ValueKind kind, const char *name,
                                           const char *value) {
    char field[256];
    const char *colon = value == NULL ? NULL : strchr(value, ':');

    if (strcmp(name, "h") != 0 || colon == NULL)
        return MHD_YES;
    snprintf(field, sizeof field, "%.*s", (int)(colon - value), value);
    MHD_add_response_header(context, field, colon + 1 + strspn(colon + 1, " "));
    return MHD_YES;
}

static void date_format(char out[DATE_TEXT], time_t seconds) {
    struct tm tm;

    strftime(out, DATE_TEXT, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&seconds, &tm));
}

static void add_headers(struct MHD_Connection *connection, struct MHD_Response *response,
                        unsigned long count) {
    static const char *const plain[][2] = {
        {"cc", "Cache-Control"}, {"vary", "Vary"}, {"etag", "ETag"}, {"type", "Content-Type"}};
    char text[DATE_TEXT];

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (argument(connection, plain[i][0]) != NULL)
            MHD_add_response_header(response, plain[i][1], argument(connection, plain[i][0]));
    if (argument(connection, "lm") != NULL) {
        date_format(text, (time_t)number(connection, "lm", 0));
        MHD_add_response_header(response, "Last-Modified", text);
    }
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_header_argument, response);
    snprintf(text, sizeof text, "%lu", count);
    MHD_add_response_header(response, "X-Origin-Count", text);
}

static bool not_modified(struct MHD_Connection *connection) {
    const char *etag = argument(connection, "etag");
    const char *if_none_match =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");
    const char *since =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-Modified-Since");
    char text[DATE_TEXT];

    if (argument(connection, "fail304") != NULL)
        return false;
    if (if_none_match != NULL)
        return etag != NULL && strstr(if_none_match, etag) != NULL;
    if (since == NULL || argument(connection, "lm") == NULL)
        return false;
    date_format(text, (time_t)number(connection, "lm", 0));
    return strcmp(text, since) == 0;
}

static struct MHD_Response *respond(struct MHD_Connection *connection, const char *method,
                                    const char *path, const struct upload *upload,
                                    unsigned long count) {
    char text[4096];

    if (strncmp(path, "/bytes", 6) == 0 || strncmp(path, "/drip", 5) == 0)
        return respond_pattern(connection, false, NULL);
    if (strncmp(path, "/own", 4) == 0)
        return respond_own(connection, path, count);
    /* libmicrohttpd 0.9.75 sends the last chunk even after the head of an answer to HEAD. */
    if (strncmp(path, "/chunked", 8) == 0)
        return respond_pattern(connection, strcmp(method, "HEAD") != 0, NULL);
    if (strncmp(path, "/abort", 6) == 0)
        return respond_pattern(connection, argument(connection, "chunked") != NULL, NULL);
    if (strncmp(path, "/echo", 5) == 0)
        return respond_echo(connection, method, path, upload);
    if (strncmp(path, "/text", 5) == 0)
        return respond_text(argument(connection, "say") == NULL ? "" : argument(connection, "say"));
    if (strcmp(path, "/count") == 0) {
        const char *of = argument(connection, "of");
        snprintf(text, sizeof text, "%lu", of == NULL ? 0 : count_of(of, 0));
        return respond_text(text);
    }
    if (strcmp(path, "/version") == 0) {
        snprintf(text, sizeof text, "%lu", newest_version);
        return respond_text(text);
    }
    snprintf(text, sizeof text, "%s %lu\n", path, count);
    return respond_text(text);
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *method,
                              const char *path, const struct upload *upload) {
    unsigned long count = strcmp(path, "/count") == 0 ? 0 : count_of(path, 1);
    unsigned status = (unsigned)number(connection, "status", 200);
    struct MHD_Response *response;
    enum MHD_Result result;

    if (strncmp(path, "/own", 4) == 0)
        count = ++newest_version;
    pause_ms(number(connection, "ms", 0));
    if (not_modified(connection)) {
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
        status = 304;
    } else {
        response = respond(connection, method, path, upload, count);
    }
    add_headers(connection, response, count);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static void upload_add(struct upload *upload, const char *data, size_t length) {
    size_t room = BODY_SHOWN - upload->shown_length, shown = length < room ? length : room;

    memcpy(upload->shown + upload->shown_length, data, shown);
    upload->shown_length += shown;
    upload->crc = crc32_add(upload->crc, data, length);
    upload->length += length;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *length, void **request) {
    struct upload *upload = *request;

    if (upload == NULL) {
        *request = calloc(1, sizeof *upload);
        return *request == NULL ? MHD_NO : MHD_YES;
    }
    if (*length > 0) {
        upload_add(upload, data, *length);
        *length = 0;
        return MHD_YES;
    }
    return answer(connection, method, path, upload);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code) {
    free(*request);
    *request = NULL;
}

static struct MHD_Daemon *listen_on(const char *address) {
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    struct sockaddr *where = (struct sockaddr *)&v4;

    if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1) {
        flags |= MHD_USE_IPv6;
        where = (struct sockaddr *)&v6;
    } else if (inet_pton(AF_INET, address, &v4.sin_addr) != 1) {
        return NULL;
    }
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR, where,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
                            MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_LISTEN_BACKLOG_SIZE,
                            1024u, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)262144,
                            MHD_OPTION_END);
}

int main(int argc, char **argv) {
    struct MHD_Daemon *daemon;
    sigset_t stop;
    int number_of_signal;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    pattern_fill();
    daemon = listen_on(argc > 1 ? argv[1] : "127.0.0.1");
    if (daemon == NULL) {
        fprintf(stderr, "origin: cannot listen on %s\n", argc > 1 ? argv[1] : "127.0.0.1");
        return 1;
    }
    printf("port %u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    sigwait(&stop, &number_of_signal);
    _exit(0); /* connections may be waiting in handlers */
}
