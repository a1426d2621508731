#include "ctl/services_command.h"

#include "base/assert.h"
#include "ctl/admin_page.h"
#include "ctl/settings_command.h"

#include <stdlib.h>
#include <string.h>

/* What is not as one may think, behind the change itself. */
static void services_show_notes(const json_t *answer) {
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(answer, "notes"), i, note)
        fprintf(stderr, "retortctl: note: %s\n", json_string_value(note));
}

static int show_loaded(const json_t *answer) {
    int status = settings_command_outcome(answer);
    if (json_object_get(answer, "service") == NULL)
        return status;
    printf("%s is loaded: its settings, its lists and its module were read again\n",
           admin_page_text(answer, "service"));
    services_show_notes(answer);
    return status;
}

static int show_unloaded(const json_t *answer) {
    int status = settings_command_outcome(answer);
    if (json_object_get(answer, "service") != NULL)
        printf("%s is unloaded: no new request passes through it\n",
               admin_page_text(answer, "service"));
    return status;
}

static int show_order(const json_t *answer) {
    return settings_command_outcome(answer);
}

static const struct services_verb {
    const char *name, *path, *first, *second;
    int (*show)(const json_t *answer);
} services_verbs[] = {
    {"services load", "/v1/services/load?", "name", NULL, show_loaded},
    {"services unload", "/v1/services/unload?", "name", NULL, show_unloaded},
    {"services order", "/v1/services/order?", "class", "services", show_order},
};

static int ask_verb(const char *where, const struct command_line *line,
                    const struct services_verb *verb) {
    const char *save = command_line_option(line, "save") != NULL ? "yes" : NULL;
    char *path = verb->second == NULL
                     ? admin_page_path(verb->path, verb->first, line->words[0], "save", save, NULL)
                     : admin_page_path(verb->path, verb->first, line->words[0], verb->second,
                                       line->words[1], "save", save, NULL);
    const struct admin_page page = {
        .method = "POST", .path = path, .show = verb->show, .shown_status = 409};
    int status = admin_page_ask(where, line->json, &page);
    free(path);
    return status;
}

int services_command(const char *where, const struct command_line *line) {
    for (size_t i = 0; i < sizeof services_verbs / sizeof *services_verbs; i++)
        if (strcmp(line->command->name, services_verbs[i].name) == 0)
            return ask_verb(where, line, &services_verbs[i]);
    ASSERT(!"a command of the table has no function");
    return EXIT_FAILURE;
}
