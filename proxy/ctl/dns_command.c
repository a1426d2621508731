#include "ctl/dns_command.h"

#include "base/plural.h"
#include "ctl/admin_page.h"
#include "ctl/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { DNS_USAGE = 2 };

static void dns_show_name(const json_t *entry) {
    size_t i;
    json_t *address, *addresses = json_object_get(entry, "addresses");
    bool has_addresses = json_array_size(addresses) > 0;
    printf("%-40s worker %lld  %7.1f s ", admin_page_text(entry, "name"),
           admin_page_number(entry, "worker"),
           json_real_value(json_object_get(entry, "expires_in")));
    json_array_foreach(addresses, i, address) printf(" %s", json_string_value(address));
    if (!has_addresses)
        printf(" %s", admin_page_text(entry, "error"));
    if (json_is_true(json_object_get(entry, "failing")))
        printf("  (name servers fail; old addresses serve for %.0f s)",
               json_real_value(json_object_get(entry, "stale_for")));
    if (json_is_true(json_object_get(entry, "asking")))
        printf("  (being asked for)");
    puts(json_is_true(json_object_get(entry, "kept")) ? "  (of the configuration)" : "");
}

static int dns_show(const json_t *answer) {
    size_t i;
    json_t *entry, *names = json_object_get(answer, "names");
    long long left_off = admin_page_number(answer, "left_off"),
              silent = admin_page_number(answer, "workers_silent");
    if (json_array_size(names) > 0)
        terminal_heading(stdout, "%-40s %-8s %9s  %s", "NAME", "WORKER", "EXPIRES", "ADDRESSES");
    json_array_foreach(names, i, entry) dns_show_name(entry);
    if (json_array_size(names) == 0)
        puts("nothing is remembered");
    if (left_off > 0)
        printf("%lld more %s used longer ago; ask for one by its name\n", left_off,
               plural(left_off, "name was", "names were"));
    if (silent > 0)
        printf("%lld %s did not answer in time\n", silent, plural(silent, "worker", "workers"));
    return EXIT_SUCCESS;
}

static int dns_show_cleared(const json_t *answer) {
    long long cleared = admin_page_number(answer, "cleared");
    printf("%lld %s cleared\n", cleared, plural(cleared, "name", "names"));
    return EXIT_SUCCESS;
}

int dns_command(const char *where, const struct command_line *line) {
    bool clear = strcmp(line->command->name, "dns clear") == 0;
    bool all = clear && command_line_option(line, "all") != NULL;
    const char *name = line->words[0];
    if (clear && all == (name != NULL)) {
        fputs("retortctl: write \"dns clear NAME\" or \"dns clear --all\"\n", stderr);
        return DNS_USAGE;
    }
    char *path = admin_page_path(clear ? "/dns/clear?" : "/dns?", "name", name, "all",
                                 all ? "yes" : NULL, NULL);
    const struct admin_page page = {
        .method = clear ? "POST" : "GET",
        .path = path,
        .show = clear ? dns_show_cleared : dns_show,
    };
    int status = admin_page_ask(where, line->json, &page);
    free(path);
    return status;
}
