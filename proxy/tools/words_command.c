#include "tools/commands.h"

#include "base/assert.h"
#include "http/url.h"
#include "tools/admin_page.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_USAGE = 2 };

static int words_misused(const char *message) {
    fprintf(stderr, "retortctl: %s\n", message);
    return WORDS_USAGE;
}

/* Changes of settings. */

/* The '=' behind the name. A name may have one between [ and ]. */
static char *sign_of(char *word) {
    char *key = strstr(word, "]=");
    return key != NULL && strchr(word, '[') != NULL && strchr(word, '[') < strchr(word, '=')
               ? key + 1
               : strchr(word, '=');
}

/* The values of a name that is there several times are a list. `value` NULL: null. False: the name
 * or the value is not UTF-8. */
static bool put_change(json_t *changes, const char *name, const char *value) {
    json_t *known = json_object_get(changes, name);
    json_t *text = value == NULL ? json_null() : json_string(value);
    if (text == NULL)
        return false;
    if (known == NULL || value == NULL)
        return json_object_set_new(changes, name, text) == 0;
    if (json_is_array(known))
        return json_array_append_new(known, text) == 0;
    return json_object_set_new(changes, name, json_pack("[O, o]", known, text)) == 0;
}

static bool put_change_of_word(json_t *changes, char *word, bool with_values) {
    char *sign = with_values ? sign_of(word) : NULL;
    if (with_values && (sign == NULL || sign == word)) {
        fprintf(stderr, "retortctl: \"%s\": write NAME=VALUE, as in cache.memory=1GB\n", word);
        return false;
    }
    if (sign != NULL)
        *sign = '\0';
    if (put_change(changes, word, sign == NULL ? NULL : sign + 1))
        return true;
    fprintf(stderr, "retortctl: \"%s\": a name or a value is not UTF-8; nothing was changed\n",
            word);
    return false;
}

/* NULL: after a message. The words are NAME=VALUE, or names that become null. */
static json_t *changes_of_words(char **words, bool with_values) {
    json_t *changes = json_object();
    for (; *words != NULL; words++)
        if (!put_change_of_word(changes, *words, with_values)) {
            json_decref(changes);
            return NULL;
        }
    return changes;
}

static int ask_change(const char *where, const struct command_line *line, bool with_values) {
    json_t *changes = changes_of_words(line->words, with_values);
    char *body = changes == NULL ? NULL : json_dumps(changes, JSON_COMPACT);
    const struct http_request request = {
        .method = "POST",
        .target = command_line_option(line, "save") != NULL ? "/settings?save=yes" : "/settings",
        .headers = "Content-Type: application/json\r\n",
        .body = body,
        .length = body == NULL ? 0 : strlen(body),
    };
    int status = body == NULL ? WORDS_USAGE : admin_page_ask(where, line->json, &request);
    json_decref(changes);
    free(body);
    return status;
}

int words_command_set(const char *where, const struct command_line *line) {
    return ask_change(where, line, true);
}

int words_command_unset(const char *where, const struct command_line *line) {
    bool all = command_line_option(line, "all") != NULL;
    if (all == (line->words[0] != NULL))
        return words_misused("write \"unset NAME...\" or \"unset --all\"");
    return all ? admin_page_command(where, line) : ask_change(where, line, false);
}

/* Those that something sets: the last column says what. */
static void print_unless_default(void *arg, const char *line, size_t length) {
    static const char end[] = " default\n";
    if (length < sizeof end || memcmp(line + length - sizeof end + 1, end, sizeof end - 1) != 0)
        fwrite(line, 1, length, arg);
}

int words_command_config_show(const char *where, const struct command_line *line) {
    bool effective = command_line_option(line, "effective") != NULL;
    const struct http_request request = {
        .method = "GET",
        .target = !line->json ? "/settings/options"
                  : effective ? "/settings/effective"
                              : "/settings",
    };
    if (line->json || effective)
        return admin_page_ask(where, line->json, &request);
    return admin_page_ask_for(where, &request, print_unless_default, stdout);
}

/* It is JSON for people, too. */
int words_command_config_schema(const char *where, const struct command_line *line) {
    const struct http_request request = {.method = "GET", .target = line->command->path};
    return admin_page_ask(where, true, &request);
}

/* Access. */

/* Writes the addresses of the URL's host, as this machine resolves it. */
static void put_addresses(const char *url_text, FILE *out) {
    struct url url;
    struct addrinfo *list, hints = {.ai_socktype = SOCK_STREAM};
    struct slice text = slice_from(url_text);
    char host[256], name[NI_MAXHOST];
    if (!url_parse(&url, text) && !url_parse_authority(&url, text, 0))
        return;
    if (url.host.length >= sizeof host)
        return;
    memcpy(host, url.host.base, url.host.length);
    host[url.host.length] = '\0';
    if (getaddrinfo(host, NULL, &hints, &list) != 0)
        return;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next)
        if (getnameinfo(at->ai_addr, at->ai_addrlen, name, sizeof name, NULL, 0, NI_NUMERICHOST) ==
            0)
            fprintf(out, "%s%s", at == list ? "" : ",", name);
    freeaddrinfo(list);
}

/* Several values of one option, with something between them. */
struct values {
    const char *between;
    FILE *out;
    unsigned count;
};

static void add_value(void *arg, const char *value) {
    struct values *values = arg;
    fprintf(values->out, "%s%s", values->count++ > 0 ? values->between : "", value);
}

/* False: the option was not given. */
static bool put_values(FILE *out, const struct command_line *line, const char *name,
                       const char *between) {
    char *text;
    size_t length;
    struct values values = {.between = between, .out = open_memstream(&text, &length)};
    ASSERT(values.out != NULL);
    command_line_each(line, name, add_value, &values);
    ASSERT(fclose(values.out) == 0);
    if (values.count > 0)
        admin_page_put(out, name, text);
    free(text);
    return values.count > 0;
}

int words_command_access_test(const char *where, const struct command_line *line) {
    static const char *const once[] = {"client", "user",        "method",       "listener",
                                       "sni",    "certificate", "authenticator"};
    char *path;
    size_t length;
    FILE *out = open_memstream(&path, &length);
    ASSERT(out != NULL);
    fputs("/access/test?", out);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        admin_page_put(out, once[i], command_line_option(line, once[i]));
    admin_page_put(out, "url", line->words[0]);
    put_values(out, line, "group", ",");
    put_values(out, line, "header", "\r\n");
    if (!put_values(out, line, "destination", ",")) {
        fputs("destination=", out);
        put_addresses(line->words[0], out);
    }
    ASSERT(fclose(out) == 0);
    const struct http_request request = {.method = "GET", .target = path};
    int status = admin_page_ask(where, line->json, &request);
    free(path);
    return status;
}

/* What is to be forgotten. */

int words_command_intercept_clear(const char *where, const struct command_line *line) {
    const char *client = NULL, *host = NULL;
    bool known = true;
    char *target;
    size_t length;
    for (char **word = line->words; *word != NULL; word++) {
        if (strncmp(*word, "client=", 7) == 0)
            client = *word + 7;
        else if (strncmp(*word, "host=", 5) == 0)
            host = *word + 5;
        else
            known = known && strcmp(*word, "all") == 0 && line->words[1] == NULL;
    }
    if (!known)
        return words_misused("write \"intercept clear all\", or \"intercept clear\" with "
                             "client=ADDRESS, host=HOST, or both");
    FILE *out = open_memstream(&target, &length);
    ASSERT(out != NULL);
    fputs("/intercept/clear?", out);
    admin_page_put(out, "client", client);
    admin_page_put(out, "host", host);
    ASSERT(fclose(out) == 0);
    const struct http_request request = {.method = "POST", .target = target};
    int status = admin_page_ask(where, line->json, &request);
    free(target);
    return status;
}

int words_command_dns_clear(const char *where, const struct command_line *line) {
    if ((command_line_option(line, "all") != NULL) == (line->words[0] != NULL))
        return words_misused("write \"dns clear NAME\" or \"dns clear --all\"");
    return admin_page_command(where, line);
}
