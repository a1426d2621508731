#include "log/place.h"

#include "base/failure.h"
#include "base/slice.h"

#include <stdio.h>

/* PATH_MOST: that of a socket (sun_path). */
enum { PATH_MOST = 107, PROGRAM_MOST = LOG_PLACE_TEXT - 1 };

static const struct place_form {
    const char *prefix;
    enum log_place_kind kind;
    const char *otherwise; /* the path or the port that may be left out; NULL: none may */
    bool is_path;
} forms[] = {
    {"syslog+tcp://", LOG_PLACE_SYSLOG_TCP, "601", false},
    {"syslog+tls://", LOG_PLACE_SYSLOG_TLS, "6514", false},
    {"syslog://", LOG_PLACE_SYSLOG_UDP, "514", false},
    {"syslog:", LOG_PLACE_SYSLOG_UNIX, "/dev/log", true},
    {"journald:", LOG_PLACE_JOURNALD, "/run/systemd/journal/socket", true},
    {"tcp://", LOG_PLACE_TCP, NULL, false},
    {"tls://", LOG_PLACE_TLS, NULL, false},
    {"pipe:", LOG_PLACE_PIPE, NULL, true},
    {"|", LOG_PLACE_PROGRAM, NULL, true},
};

static bool place_fail(char *error, const char *text, const char *reason) {
    return failure(error, LOG_PLACE_ERROR, "\"%.150s\" %s", text, reason);
}

static bool place_take_path(struct log_place *place, const struct place_form *form,
                            const char *text, const char *rest, char *error) {
    if (rest[0] == '\0' && form->otherwise != NULL)
        rest = form->otherwise;
    size_t most = form->kind == LOG_PLACE_PROGRAM ? PROGRAM_MOST : PATH_MOST;
    if (rest[0] != '/' || strlen(rest) > most)
        return place_fail(error, text,
                          "needs an absolute path of at most 107 bytes, or a program with its "
                          "arguments of at most 255");
    snprintf(place->host, sizeof place->host, "%s", rest);
    return true;
}

/* "host:port", "[::1]:port". */
static bool place_take_host(struct log_place *place, const struct place_form *form,
                            const char *text, const char *rest, char *error) {
    bool bracket = rest[0] == '[';
    size_t length = bracket ? strcspn(rest, "]") : strcspn(rest, ":");
    const char *behind = rest + length + (bracket && rest[length] == ']');
    const char *port = behind[0] == ':' ? behind + 1 : form->otherwise;
    uint64_t number;
    if (length <= bracket || length - bracket >= sizeof place->host || port == NULL ||
        (behind[0] != ':' && behind[0] != '\0') || !slice_to_uint64(slice_from(port), &number) ||
        number == 0 || number > 65535)
        return place_fail(error, text, "needs a host and a port, as in tcp://192.0.2.1:5170");
    snprintf(place->host, sizeof place->host, "%.*s", (int)(length - bracket), rest + bracket);
    snprintf(place->port, sizeof place->port, "%u", (unsigned)number);
    return true;
}

bool log_place_parse(struct log_place *place, const char *text, char error[LOG_PLACE_ERROR]) {
    *place = (struct log_place){.kind = LOG_PLACE_FILE};
    if (text[0] == '\0')
        return place_fail(error, text, "is empty: write a path");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct place_form *form = &forms[i];
        size_t length = strlen(form->prefix);
        if (strncmp(text, form->prefix, length) != 0)
            continue;
        place->kind = form->kind;
        return form->is_path ? place_take_path(place, form, text, text + length, error)
                             : place_take_host(place, form, text, text + length, error);
    }
    const char *scheme = strstr(text, "://");
    if (scheme != NULL && memchr(text, '/', (size_t)(scheme - text)) == NULL)
        return place_fail(error, text,
                          "names no place that is known: write a path, syslog:, syslog://HOST, "
                          "syslog+tcp://HOST, syslog+tls://HOST, journald:, tcp://HOST:PORT, "
                          "tls://HOST:PORT, pipe:/PATH or |PROGRAM");
    return true;
}
