#include "ctl/dns_command.h"

#include "ctl/answer.h"
#include "ctl/argument.h"
#include "ctl/http_call.h"
#include "ctl/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { DNS_USAGE = 2 };

static int dns_usage(void) {
    fputs("retortctl: write \"dns show [NAME]\", \"dns clear NAME\" or \"dns clear --all\"\n",
          stderr);
    return DNS_USAGE;
}

static const char *dns_text(const json_t *entry, const char *name) {
    const char *text = json_string_value(json_object_get(entry, name));
    return text != NULL ? text : "";
}

static void dns_show_name(const json_t *entry) {
    size_t i;
    json_t *address, *addresses = json_object_get(entry, "addresses");
    bool has_addresses = json_array_size(addresses) > 0;
    printf("%-40s worker %lld  %7.1f s ", dns_text(entry, "name"),
           (long long)json_integer_value(json_object_get(entry, "worker")),
           json_real_value(json_object_get(entry, "expires_in")));
    json_array_foreach(addresses, i, address) printf(" %s", json_string_value(address));
    if (!has_addresses)
        printf(" %s", dns_text(entry, "error"));
    if (json_is_true(json_object_get(entry, "failing")))
        printf("  (name servers fail; old addresses serve for %.0f s)",
               json_real_value(json_object_get(entry, "stale_for")));
    if (json_is_true(json_object_get(entry, "asking")))
        printf("  (being asked for)");
    puts(json_is_true(json_object_get(entry, "kept")) ? "  (of the configuration)" : "");
}

static void dns_show(const json_t *answer) {
    size_t i;
    json_t *entry, *names = json_object_get(answer, "names");
    long long left_off = json_integer_value(json_object_get(answer, "left_off")),
              silent = json_integer_value(json_object_get(answer, "workers_silent"));
    if (json_array_size(names) > 0)
        terminal_heading(stdout, "%-40s %-8s %9s  %s", "NAME", "WORKER", "EXPIRES", "ADDRESSES");
    json_array_foreach(names, i, entry) dns_show_name(entry);
    if (json_array_size(names) == 0)
        puts("nothing is remembered");
    if (left_off > 0)
        printf("%lld names more, which were used longer ago; ask for one by its name\n", left_off);
    if (silent > 0)
        printf("%lld workers did not answer in time\n", silent);
}

static int dns_show_answer(const struct http_answer *answer, bool raw) {
    json_t *json = answer_load(answer->body, answer->length);
    const json_t *cleared = json_object_get(json, "cleared");
    if (raw)
        printf("%.*s\n", (int)answer->length, answer->body);
    else if (answer->status != 200)
        fprintf(stderr, "retortctl: %s\n", dns_text(json, "error"));
    else if (cleared != NULL)
        printf("%lld names cleared\n", (long long)json_integer_value(cleared));
    else
        dns_show(json);
    json_decref(json);
    return answer->status == 200 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* NULL: the words are not understood. The caller frees the path. */
static char *dns_path(bool clear, int argc, char **argv, bool *json) {
    char *path = NULL;
    size_t length;
    const char *name = NULL;
    bool all = false, known = true;
    FILE *out = open_memstream(&path, &length);
    if (out == NULL)
        return NULL;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "-j") == 0)
            *json = true;
        else if (clear && strcmp(argv[i], "--all") == 0)
            all = true;
        else if (argv[i][0] != '-' && argv[i][0] != '\0' && name == NULL)
            name = argv[i];
        else
            known = false;
    }
    fputs(clear ? "/dns/clear?" : "/dns?", out);
    if (all)
        argument_put(out, "all", "yes");
    if (name != NULL)
        argument_put(out, "name", name);
    fclose(out);
    if (known && (!clear || all != (name != NULL)))
        return path;
    free(path);
    return NULL;
}

int dns_command(const char *where, bool json, int argc, char **argv) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    bool clear = argc > 1 && strcmp(argv[1], "clear") == 0;
    int first = clear || (argc > 1 && strcmp(argv[1], "show") == 0) ? 2 : 1;
    char *path = dns_path(clear, argc - first, argv + first, &json);
    if (path == NULL)
        return dns_usage();
    bool asked = http_call(&answer, where, clear ? "POST" : "GET", path, error);
    free(path);
    if (!asked) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    int status = dns_show_answer(&answer, json);
    http_answer_release(&answer);
    return status;
}
