#include "ctl/access_command.h"

#include "base/assert.h"
#include "ctl/admin_page.h"
#include "ctl/argument.h"
#include "ctl/terminal.h"
#include "http/url.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static int show_sections(const json_t *answer) {
    size_t i;
    json_t *entry, *sections = json_object_get(answer, "access");
    if (json_array_size(sections) > 0)
        terminal_heading(stdout, "%3s  %-24s %-12s %12s", "NO.", "CLASS", "ACTION", "REQUESTS");
    json_array_foreach(sections, i, entry) {
        bool only = json_is_true(json_object_get(entry, "log_only"));
        printf("%3lld  %-24s %-12s %12lld %s\n", admin_page_number(entry, "number"),
               admin_page_text(entry, "class"), admin_page_text(entry, "action"),
               admin_page_number(entry, only ? "logged" : "decided"),
               only ? "would have been decided (log_only)" : "decided");
    }
    if (json_array_size(sections) == 0)
        puts("there are no access sections");
    return EXIT_SUCCESS;
}

static int show_trial(const json_t *answer) {
    size_t i;
    json_t *entry, *sections = json_object_get(answer, "sections");
    if (json_array_size(sections) > 0)
        terminal_heading(stdout, "%3s  %-24s %-12s %s", "NO.", "CLASS", "ACTION", "FINDING");
    json_array_foreach(sections, i, entry)
        printf("%3lld  %-24s %-12s %s\n", admin_page_number(entry, "number"),
               admin_page_text(entry, "class"), admin_page_text(entry, "action"),
               admin_page_text(entry, "finding"));
    printf("%s (%lld)", admin_page_text(answer, "outcome"), admin_page_number(answer, "status"));
    if (admin_page_number(answer, "section") > 0)
        printf(" by section %lld, access %s", admin_page_number(answer, "section"),
               admin_page_text(answer, "class"));
    printf(": %s\n", admin_page_text(answer, "why"));
    return EXIT_SUCCESS;
}

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
        argument_put(out, name, text);
    free(text);
    return values.count > 0;
}

/* The caller frees it. */
static char *access_test_path(const struct command_line *line) {
    static const char *const once[] = {"client", "user",        "method",       "listener",
                                       "sni",    "certificate", "authenticator"};
    char *path;
    size_t length;
    FILE *out = open_memstream(&path, &length);
    ASSERT(out != NULL);
    fputs("/access/test?", out);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        argument_put(out, once[i], command_line_option(line, once[i]));
    argument_put(out, "url", line->words[0]);
    put_values(out, line, "group", ",");
    put_values(out, line, "header", "\r\n");
    if (!put_values(out, line, "destination", ",")) {
        fputs("destination=", out);
        put_addresses(line->words[0], out);
    }
    ASSERT(fclose(out) == 0);
    return path;
}

int access_command(const char *where, const struct command_line *line) {
    bool test = strcmp(line->command->name, "access test") == 0;
    char *path = test ? access_test_path(line) : xstrdup("/access");
    const struct admin_page page = {
        .method = "GET", .path = path, .show = test ? show_trial : show_sections};
    int status = admin_page_ask(where, line->json, &page);
    free(path);
    return status;
}
