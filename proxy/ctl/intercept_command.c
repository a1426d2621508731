#include "ctl/intercept_command.h"

#include "base/plural.h"
#include "ctl/admin_page.h"
#include "ctl/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { INTERCEPT_USAGE = 2 };

static int show_list(const json_t *answer) {
    size_t i;
    json_t *entry, *refusals = json_object_get(answer, "refusals");
    json_t *asking = json_object_get(answer, "asking");
    if (json_array_size(refusals) + json_array_size(asking) > 0)
        terminal_heading(stdout, "%-40s %-40s %s", "CLIENT", "HOST", "STATE");
    json_array_foreach(refusals, i, entry)
        printf("%-40s %-40s refused %lld times, %s\n", admin_page_text(entry, "client"),
               admin_page_text(entry, "host"), admin_page_number(entry, "count"),
               json_is_true(json_object_get(entry, "spliced")) ? "spliced" : "still opened");
    json_array_foreach(asking, i, entry)
        printf("%-40s %-40s asks for client certificates, %s\n", "all clients",
               admin_page_text(entry, "host"),
               json_is_true(json_object_get(entry, "spliced")) ? "spliced" : "still opened");
    if (json_array_size(refusals) + json_array_size(asking) == 0)
        puts("no client has refused a certificate, and no server has asked for one");
    return EXIT_SUCCESS;
}

static int show_cleared(const json_t *answer) {
    long long cleared = admin_page_number(answer, "cleared");
    printf("%lld %s cleared\n", cleared, plural(cleared, "entry", "entries"));
    return EXIT_SUCCESS;
}

static int intercept_clear(const char *where, const struct command_line *line) {
    const char *client = NULL, *host = NULL;
    bool known = true;
    for (char **word = line->words; *word != NULL; word++) {
        if (strncmp(*word, "client=", 7) == 0)
            client = *word + 7;
        else if (strncmp(*word, "host=", 5) == 0)
            host = *word + 5;
        else
            known = known && strcmp(*word, "all") == 0 && line->words[1] == NULL;
    }
    if (!known) {
        fputs("retortctl: write \"intercept clear all\", or \"intercept clear\" with "
              "client=ADDRESS, host=HOST, or both\n",
              stderr);
        return INTERCEPT_USAGE;
    }
    char *path = admin_page_path("/intercept/clear?", "client", client, "host", host, NULL);
    const struct admin_page page = {.method = "POST", .path = path, .show = show_cleared};
    int status = admin_page_ask(where, line->json, &page);
    free(path);
    return status;
}

int intercept_command(const char *where, const struct command_line *line) {
    const struct admin_page page = {.method = "GET", .path = "/intercept", .show = show_list};
    if (strcmp(line->command->name, "intercept clear") == 0)
        return intercept_clear(where, line);
    return admin_page_ask(where, line->json, &page);
}
