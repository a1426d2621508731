#include "ctl/access_command.h"

#include "ctl/answer.h"
#include "ctl/argument.h"
#include "ctl/http_call.h"
#include "ctl/terminal.h"
#include "http/url.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { ACCESS_USAGE = 2, NAMES = 16 };

static const char *access_text(const json_t *entry, const char *name) {
    const char *text = json_string_value(json_object_get(entry, name));
    return text != NULL ? text : "";
}

static long long access_number(const json_t *entry, const char *name) {
    return (long long)json_integer_value(json_object_get(entry, name));
}

static void show_sections(const json_t *answer) {
    size_t i;
    json_t *entry, *sections = json_object_get(answer, "access");
    if (json_array_size(sections) > 0)
        terminal_heading(stdout, "%3s  %-24s %-12s %12s", "NO.", "CLASS", "ACTION", "REQUESTS");
    json_array_foreach(sections, i, entry) {
        bool only = json_is_true(json_object_get(entry, "log_only"));
        printf("%3lld  %-24s %-12s %12lld %s\n", access_number(entry, "number"),
               access_text(entry, "class"), access_text(entry, "action"),
               access_number(entry, only ? "logged" : "decided"),
               only ? "would have been decided (log_only)" : "decided");
    }
    if (json_array_size(sections) == 0)
        puts("there are no access sections");
}

static void show_trial(const json_t *answer) {
    size_t i;
    json_t *entry, *sections = json_object_get(answer, "sections");
    if (json_array_size(sections) > 0)
        terminal_heading(stdout, "%3s  %-24s %-12s %s", "NO.", "CLASS", "ACTION", "FINDING");
    json_array_foreach(sections, i, entry) printf(
        "%3lld  %-24s %-12s %s\n", access_number(entry, "number"), access_text(entry, "class"),
        access_text(entry, "action"), access_text(entry, "finding"));
    printf("%s (%lld)", access_text(answer, "outcome"), access_number(answer, "status"));
    if (access_number(answer, "section") > 0)
        printf(" by section %lld, access %s", access_number(answer, "section"),
               access_text(answer, "class"));
    printf(": %s\n", access_text(answer, "why"));
}

static int access_call(const char *where, bool raw, const char *path) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call(&answer, where, "GET", path, error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    json_t *json = answer_load(answer.body, answer.length);
    if (raw)
        printf("%.*s\n", (int)answer.length, answer.body);
    else if (answer.status != 200)
        fprintf(stderr, "retortctl: %s\n", access_text(json, "error"));
    else if (json_object_get(json, "access") != NULL)
        show_sections(json);
    else
        show_trial(json);
    int status = answer.status == 200 ? EXIT_SUCCESS : EXIT_FAILURE;
    json_decref(json);
    http_answer_release(&answer);
    return status;
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

/* Several values of one argument, with something between them. */
struct values {
    const char *name, *between;
    const char *each[NAMES];
    unsigned count;
};

static void put_values(FILE *out, const struct values *values) {
    char *text;
    size_t length;
    FILE *joined = open_memstream(&text, &length);
    for (unsigned i = 0; joined != NULL && i < values->count; i++)
        fprintf(joined, "%s%s", i > 0 ? values->between : "", values->each[i]);
    if (joined == NULL || fclose(joined) != 0)
        return;
    if (values->count > 0)
        argument_put(out, values->name, text);
    free(text);
}

static const struct option test_options[] = {
    {"client", required_argument, NULL, 0},
    {"user", required_argument, NULL, 0},
    {"method", required_argument, NULL, 0},
    {"listener", required_argument, NULL, 0},
    {"sni", required_argument, NULL, 0},
    {"certificate", required_argument, NULL, 0},
    {"authenticator", required_argument, NULL, 0},
    {"group", required_argument, NULL, 'g'},
    {"header", required_argument, NULL, 'H'},
    {"destination", required_argument, NULL, 'd'},
    {"json", no_argument, NULL, 'j'},
    {NULL, 0, NULL, 0},
};

static bool add_value(struct values *values, const char *text) {
    if (values->count == NAMES)
        return false;
    values->each[values->count++] = text;
    return true;
}

/* False: the words are not understood. */
static bool write_test(FILE *out, bool *json, int argc, char **argv) {
    struct values groups = {"group", ",", {NULL}, 0}, fields = {"header", "\r\n", {NULL}, 0},
                  places = {"destination", ",", {NULL}, 0};
    int letter, which;
    bool good = true;
    optind = 0; /* begins anew, for options may stand behind the URL */
    fputs("/access/test?", out);
    while ((letter = getopt_long(argc, argv, "j", test_options, &which)) != -1) {
        switch (letter) {
        case 0: argument_put(out, test_options[which].name, optarg); break;
        case 'g': good = good && add_value(&groups, optarg); break;
        case 'H': good = good && add_value(&fields, optarg); break;
        case 'd': good = good && add_value(&places, optarg); break;
        case 'j': *json = true; break;
        default: return false;
        }
    }
    if (!good || argc - optind != 1)
        return false;
    argument_put(out, "url", argv[optind]);
    put_values(out, &groups);
    put_values(out, &fields);
    if (places.count > 0) {
        put_values(out, &places);
        return true;
    }
    fputs("destination=", out);
    put_addresses(argv[optind], out);
    return true;
}

static int access_test(const char *where, bool json, int argc, char **argv) {
    char *path = NULL;
    size_t length;
    FILE *out = open_memstream(&path, &length);
    if (out == NULL)
        return EXIT_FAILURE;
    bool known = write_test(out, &json, argc, argv);
    fclose(out);
    if (!known)
        fputs("retortctl: write \"access test URL\" with --client, --user and others; see "
              "retortctl --help\n",
              stderr);
    int status = known ? access_call(where, json, path) : ACCESS_USAGE;
    free(path);
    return status;
}

int access_command(const char *where, bool json, int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "test") == 0)
        return access_test(where, json, argc - 1, argv + 1);
    if (argc == 2 && (strcmp(argv[1], "--json") == 0 || strcmp(argv[1], "-j") == 0))
        return access_call(where, true, "/access");
    if (argc == 1)
        return access_call(where, json, "/access");
    fputs("retortctl: write \"access\" or \"access test URL\"; see retortctl --help\n", stderr);
    return ACCESS_USAGE;
}
