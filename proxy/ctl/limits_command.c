#include "ctl/limits_command.h"

#include "base/plural.h"
#include "ctl/admin_page.h"

#include <stdlib.h>
#include <string.h>

static void limits_show_section(const json_t *section) {
    const char *name;
    json_t *count;
    printf("%s%s:", admin_page_text(section, "name"),
           json_is_true(json_object_get(section, "current")) ? "" : " (no longer configured)");
    json_object_foreach(json_object_get(section, "refused"), name,
                        count) if (json_integer_value(count) > 0)
        printf(" %lld refused (%s)", (long long)json_integer_value(count), name);
    putchar('\n');
}

static void limits_show_entry(const json_t *entry) {
    static const char *const times[] = {"requests_back", "download_back", "upload_back"};
    static const char *const of[] = {"requests", "downloads", "uploads"};
    printf("  %-34s %-28s %4lld %s  %6lld in all  %6lld refused", admin_page_text(entry, "section"),
           admin_page_text(entry, "client"), admin_page_number(entry, "active"),
           json_is_true(json_object_get(entry, "connections")) ? "connections" : "active     ",
           admin_page_number(entry, "taken"), admin_page_number(entry, "refused"));
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        double time = json_real_value(json_object_get(entry, times[i]));
        if (time > 0)
            printf("  %s: all back in %.1f s", of[i], time);
    }
    putchar('\n');
}

static int limits_show(const json_t *answer) {
    size_t i;
    json_t *element, *list = json_object_get(answer, "list");
    json_array_foreach(json_object_get(answer, "sections"), i, element)
        limits_show_section(element);
    long long entries = admin_page_number(answer, "entries");
    printf("%lld %s\n", entries, plural(entries, "entry", "entries"));
    json_array_foreach(list, i, element) limits_show_entry(element);
    return EXIT_SUCCESS;
}

static int limits_show_cleared(const json_t *answer) {
    long long cleared = admin_page_number(answer, "cleared");
    printf("%lld %s cleared\n", cleared, plural(cleared, "entry", "entries"));
    return EXIT_SUCCESS;
}

int limits_command(const char *where, const struct command_line *line) {
    bool clear = strcmp(line->command->name, "limits clear") == 0;
    char *path = admin_page_path(clear ? "/limits/clear?" : "/limits?", "section",
                                 command_line_option(line, "section"), "client",
                                 command_line_option(line, "client"), NULL);
    const struct admin_page page = {
        .method = clear ? "POST" : "GET",
        .path = path,
        .show = clear ? limits_show_cleared : limits_show,
    };
    int status = admin_page_ask(where, line->json, &page);
    free(path);
    return status;
}
