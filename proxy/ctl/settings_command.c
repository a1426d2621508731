#include "ctl/settings_command.h"

#include "base/assert.h"
#include "ctl/admin_page.h"
#include "ctl/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { SETTINGS_USAGE = 2 };

/* Showing. */

/* A value as it would be typed: without the quotes of JSON where it is one word. */
static char *typed(const json_t *value) {
    char *text;
    size_t length, i;
    json_t *element;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    if (json_is_string(value))
        fputs(json_string_length(value) == 0 ? "-" : json_string_value(value), out);
    else if (json_is_null(value) || value == NULL)
        fputs("-", out);
    else if (!json_is_array(value))
        json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    json_array_foreach(value, i, element) {
        fputs(i > 0 ? ", " : "", out);
        if (json_is_string(element))
            fputs(json_string_value(element), out);
        else
            json_dumpf(element, out, JSON_ENCODE_ANY);
    }
    ASSERT(fclose(out) == 0);
    return text;
}

static void show_option_line(const json_t *option) {
    const json_t *waits = json_object_get(option, "waits");
    char *value = typed(json_object_get(option, "value"));
    if (waits != NULL) {
        char *now = value, *later = typed(waits);
        ASSERT(asprintf(&value, "%s (%s at restart)", now, later) >= 0);
        free(now);
        free(later);
    }
    printf("%-44s %-24s %-8s %s\n", admin_page_text(option, "name"), value,
           admin_page_text(option, "change"), admin_page_text(option, "from"));
    free(value);
}

static void head_of_options(void) {
    terminal_heading(stdout, "%-44s %-24s %-8s %s", "OPTION", "VALUE", "CHANGE", "FROM");
}

static int show_options(const json_t *answer) {
    size_t i;
    json_t *option;
    head_of_options();
    json_array_foreach(json_object_get(answer, "options"), i, option) show_option_line(option);
    return EXIT_SUCCESS;
}

/* Those that something sets. */
static int show_set_options(const json_t *answer) {
    size_t i;
    json_t *option;
    head_of_options();
    json_array_foreach(json_object_get(answer, "options"), i,
                       option) if (strcmp(admin_page_text(option, "from"), "default") != 0)
        show_option_line(option);
    return EXIT_SUCCESS;
}

static int show_changes(const json_t *answer) {
    size_t i;
    json_t *change, *changes = json_object_get(answer, "changes");
    if (json_array_size(changes) == 0) {
        puts("nothing was changed at run time");
        return EXIT_SUCCESS;
    }
    terminal_heading(stdout, "%-44s %-20s %-20s %s", "OPTION", "CONFIGURED", "CHANGED TO", "SAVED");
    json_array_foreach(changes, i, change) {
        const json_t *changed = json_object_get(change, "value");
        char *value = json_is_null(changed) ? xstrdup("as configured") : typed(changed);
        char *configured = typed(json_object_get(change, "configured"));
        printf("%-44s %-20s %-20s %s\n", admin_page_text(change, "name"), configured, value,
               json_is_true(json_object_get(change, "saved")) ? "yes" : "no");
        free(value);
        free(configured);
    }
    return EXIT_SUCCESS;
}

static int show_whole(const json_t *answer) {
    json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
    putchar('\n');
    return EXIT_SUCCESS;
}

static void tell_each(const json_t *list, const char *before) {
    size_t i;
    json_t *text;
    json_array_foreach(list, i, text)
        fprintf(stderr, "retortctl: %s: %s\n", before, json_string_value(text));
}

static void show_difference(const json_t *change) {
    const json_t *waits = json_object_get(change, "waits");
    const char *name = admin_page_text(change, "name");
    char *old = typed(json_object_get(change, "old"));
    char *new = typed(json_object_get(change, "new"));
    if (json_is_true(waits))
        printf("%s: will be %s after a restart, is %s\n", name, new, old);
    else if (waits != NULL)
        printf("%s: stays %s\n", name, new);
    else
        printf("%s: %s, before %s\n", name, new, old);
    free(old);
    free(new);
}

/* What has changed goes to stdout, what was not applied to stderr, each with the words of `but`. */
static int show_outcome(const json_t *answer, const char *but) {
    size_t i;
    json_t *change, *changed = json_object_get(answer, "changed");
    const json_t *refused = json_object_get(answer, "refused");
    if (changed == NULL || refused == NULL) {
        tell_each(json_object_get(answer, "errors"), "refused");
        return EXIT_FAILURE;
    }
    json_array_foreach(changed, i, change) show_difference(change);
    tell_each(json_object_get(answer, "waits_for_restart"), "waits for a restart");
    tell_each(refused, but);
    return json_array_size(refused) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int settings_command_outcome(const json_t *answer) {
    return show_outcome(answer, "the change is made, but");
}

static int show_reload(const json_t *answer) {
    int status = show_outcome(answer, "refused");
    if (json_object_get(answer, "reloaded") == NULL)
        return status;
    if (status == EXIT_SUCCESS &&
        json_array_size(json_object_get(answer, "waits_for_restart")) == 0)
        puts("the configuration was read again and is in use");
    else
        puts("the configuration was read again, and its other changes are in use");
    return status;
}

/* Asking. */

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
    bool save = command_line_option(line, "save") != NULL;
    const struct admin_page page = {
        .method = "POST",
        .path = save ? "/v1/settings?save=yes" : "/v1/settings",
        .body = body,
        .show = settings_command_outcome,
        .shown_status = 409,
    };
    int status = body == NULL ? SETTINGS_USAGE : admin_page_ask(where, line->json, &page);
    json_decref(changes);
    free(body);
    return status;
}

static int command_set(const char *where, const struct command_line *line) {
    return ask_change(where, line, true);
}

static int command_unset(const char *where, const struct command_line *line) {
    bool all = command_line_option(line, "all") != NULL;
    if (all == (line->words[0] != NULL)) {
        fputs("retortctl: write \"unset NAME...\" or \"unset --all\"\n", stderr);
        return SETTINGS_USAGE;
    }
    if (!all)
        return ask_change(where, line, false);
    const struct admin_page page = {
        .method = "DELETE",
        .path = command_line_option(line, "save") != NULL ? "/v1/settings?all=yes&save=yes"
                                                          : "/v1/settings?all=yes",
        .show = settings_command_outcome,
        .shown_status = 409,
    };
    return admin_page_ask(where, line->json, &page);
}

static int show_page(const char *where, const struct command_line *line, const char *path,
                     int (*show)(const json_t *answer)) {
    const struct admin_page page = {.method = "GET", .path = path, .show = show};
    return admin_page_ask(where, line->json, &page);
}

static int command_get(const char *where, const struct command_line *line) {
    char *path = admin_page_path("/v1/settings/options?", "name", line->words[0], NULL);
    path[strlen(path) - 1] = '\0'; /* the last & or the ? */
    int status = show_page(where, line, path, show_options);
    free(path);
    return status;
}

static int command_diff(const char *where, const struct command_line *line) {
    return show_page(where, line, "/v1/settings/changes", show_changes);
}

static int command_config_show(const char *where, const struct command_line *line) {
    bool effective = command_line_option(line, "effective") != NULL;
    if (line->json && effective)
        return show_page(where, line, "/v1/settings/effective", show_whole);
    return show_page(where, line, line->json ? "/v1/settings" : "/v1/settings/options",
                     effective ? show_options : show_set_options);
}

static int command_config_schema(const char *where, const struct command_line *line) {
    return show_page(where, line, "/v1/settings/schema", show_whole);
}

static int command_reload(const char *where, const struct command_line *line) {
    const struct admin_page page = {
        .method = "POST", .path = "/v1/reload", .show = show_reload, .shown_status = 409};
    return admin_page_ask(where, line->json, &page);
}

int settings_command(const char *where, const struct command_line *line) {
    static const struct {
        const char *name;
        int (*run)(const char *where, const struct command_line *line);
    } commands_here[] = {
        {"set", command_set},
        {"unset", command_unset},
        {"get", command_get},
        {"diff", command_diff},
        {"config show", command_config_show},
        {"config schema", command_config_schema},
        {"reload", command_reload},
    };
    for (size_t i = 0; i < sizeof commands_here / sizeof *commands_here; i++)
        if (strcmp(line->command->name, commands_here[i].name) == 0)
            return commands_here[i].run(where, line);
    ASSERT(!"a command of the table has no function");
    return EXIT_FAILURE;
}
