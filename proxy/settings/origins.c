#include "settings/origins.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static bool origins_complain(char *error, size_t error_size, const char *reason) {
    snprintf(error, error_size, "%s", reason);
    return false;
}

/* Cuts the next word off the front of the text; empty at the end. */
static struct slice origins_next_word(struct slice *rest) {
    *rest = slice_trim(*rest);
    size_t length = 0;
    while (length < rest->length && rest->base[length] != ' ' && rest->base[length] != '\t')
        length++;
    struct slice word = slice_make(rest->base, length);
    *rest = slice_make(rest->base + length, rest->length - length);
    return word;
}

static bool parse_word(struct origin_server_settings *server, struct slice word, char *error,
                       size_t error_size) {
    struct slice weight = SLICE("weight=");
    uint64_t value;
    if (slice_equal(word, SLICE("backup"))) {
        server->backup = true;
        return true;
    }
    if (slice_equal(word, SLICE("drain"))) {
        server->drain = true;
        return true;
    }
    if (!slice_starts_with(word, weight)) {
        snprintf(error, error_size,
                 "has \"%.*s\" after the URL; only weight=N, backup and drain may follow it",
                 SLICE_PRINT(word));
        return false;
    }
    word = slice_make(word.base + weight.length, word.length - weight.length);
    if (!slice_to_uint64(word, &value) || value < 1 || value > ORIGINS_WEIGHT_MAX)
        return origins_complain(error, error_size,
                                "has a weight that is not a number from 1 to 256");
    server->weight = (unsigned)value;
    return true;
}

static bool is_place(const struct url *url) {
    return url_is_web(url) && url->host.length <= 255 && url->port != 0 &&
           (url->path_query.length == 0 || slice_equal(url->path_query, SLICE("/")));
}

bool origins_parse_server(struct origin_server_settings *server, const char *text, char *error,
                          size_t error_size) {
    struct slice rest = slice_from(text), word = origins_next_word(&rest);
    *server = (struct origin_server_settings){.text = slice_dup(word), .weight = 1};
    if (!url_parse(&server->url, slice_from(server->text)) || !is_place(&server->url) ||
        strchr(server->text, '#') != NULL)
        return origins_complain(error, error_size,
                                "is not a server: write \"http://HOST:PORT\" or "
                                "\"https://HOST:PORT\" without a path, optionally followed by "
                                "weight=N, backup or drain");
    while ((word = origins_next_word(&rest)).length > 0)
        if (!parse_word(server, word, error, error_size))
            return false;
    return true;
}

void origins_release_server(struct origin_server_settings *server) {
    free(server->text);
    server->text = NULL;
}

bool origins_check_server(const char *text, char *error, size_t error_size) {
    struct origin_server_settings server;
    bool good = origins_parse_server(&server, text, error, error_size);
    origins_release_server(&server);
    return good;
}

bool origins_check_status(const char *text, char *error, size_t error_size) {
    uint64_t status;
    if (strcmp(text, "none") == 0 ||
        (slice_to_uint64(slice_from(text), &status) && status >= 500 && status <= 599))
        return true;
    return origins_complain(error, error_size, "is not a status from 500 to 599, or none");
}

bool origins_check_path(const char *text, char *error, size_t error_size) {
    if (text[0] == '/' && text[strcspn(text, " \t#")] == '\0')
        return true;
    return origins_complain(error, error_size, "is not a path: write \"/healthz\"");
}

bool origins_check_alias(const char *text, char *error, size_t error_size) {
    struct url url;
    bool web = url_parse(&url, slice_from(text)) && url_is_web(&url);
    if (strcmp(text, "none") == 0 || (web && strpbrk(text, "?#") == NULL))
        return true;
    return origins_complain(
        error, error_size,
        "is not the beginning of a URL: write \"http://HOST:PORT/PATH\", or none");
}
