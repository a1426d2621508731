#include "ctl/limits_command.h"

#include "ctl/answer.h"
#include "ctl/argument.h"
#include "ctl/http_call.h"

#include <stdlib.h>
#include <string.h>

enum { LIMITS_USAGE = 2 };

static int limits_usage(void) {
    fputs("retortctl: write \"limits show\" or \"limits clear\", with --section SECTION, --client "
          "ADDRESS, or both\n",
          stderr);
    return LIMITS_USAGE;
}

static long long limits_number(const json_t *entry, const char *name) {
    return json_integer_value(json_object_get(entry, name));
}

static const char *limits_text(const json_t *entry, const char *name) {
    const char *text = json_string_value(json_object_get(entry, name));
    return text != NULL ? text : "";
}

static void limits_show_section(const json_t *section) {
    const char *name;
    json_t *count;
    printf("%s%s:", limits_text(section, "name"),
           json_is_true(json_object_get(section, "current")) ? "" : " (no longer configured)");
    json_object_foreach(json_object_get(section, "refused"), name,
                        count) if (json_integer_value(count) > 0)
        printf(" %lld refused (%s)", (long long)json_integer_value(count), name);
    putchar('\n');
}

static void limits_show_entry(const json_t *entry) {
    static const char *const times[] = {"requests_back", "download_back", "upload_back"};
    static const char *const of[] = {"requests", "downloads", "uploads"};
    printf("  %-34s %-28s %4lld %s  %6lld in all  %6lld refused", limits_text(entry, "section"),
           limits_text(entry, "client"), limits_number(entry, "active"),
           json_is_true(json_object_get(entry, "connections")) ? "connections" : "active     ",
           limits_number(entry, "taken"), limits_number(entry, "refused"));
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        double time = json_real_value(json_object_get(entry, times[i]));
        if (time > 0)
            printf("  %s: all back in %.1f s", of[i], time);
    }
    putchar('\n');
}

static void limits_show(const json_t *answer) {
    size_t i;
    json_t *element, *list = json_object_get(answer, "list");
    json_array_foreach(json_object_get(answer, "sections"), i, element)
        limits_show_section(element);
    printf("%lld entries\n", limits_number(answer, "entries"));
    json_array_foreach(list, i, element) limits_show_entry(element);
}

static int limits_show_answer(const struct http_answer *answer, bool raw) {
    json_t *json = answer_load(answer->body, answer->length);
    const json_t *cleared = json_object_get(json, "cleared");
    if (raw)
        printf("%.*s\n", (int)answer->length, answer->body);
    else if (answer->status != 200)
        fprintf(stderr, "retortctl: %s\n", limits_text(json, "error"));
    else if (cleared != NULL)
        printf("%lld entries cleared\n", (long long)json_integer_value(cleared));
    else
        limits_show(json);
    json_decref(json);
    return answer->status == 200 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int limits_call(const char *where, bool raw, const char *method, const char *path) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call(&answer, where, method, path, error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    int status = limits_show_answer(&answer, raw);
    http_answer_release(&answer);
    return status;
}

/* NULL: a word is not understood. The caller frees the path. */
static char *limits_path(bool clear, int argc, char **argv, bool *json) {
    char *path = NULL;
    size_t length;
    bool known = true;
    FILE *out = open_memstream(&path, &length);
    if (out == NULL)
        return NULL;
    fputs(clear ? "/limits/clear?" : "/limits?", out);
    for (int i = 0; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--section") == 0 && more)
            argument_put(out, "section", argv[++i]);
        else if (strcmp(argv[i], "--client") == 0 && more)
            argument_put(out, "client", argv[++i]);
        else if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "-j") == 0)
            *json = true;
        else
            known = false;
    }
    fclose(out);
    if (!known) {
        free(path);
        path = NULL;
    }
    return path;
}

int limits_command(const char *where, bool json, int argc, char **argv) {
    bool clear = argc > 1 && strcmp(argv[1], "clear") == 0;
    int first = clear || (argc > 1 && strcmp(argv[1], "show") == 0) ? 2 : 1;
    char *path = limits_path(clear, argc - first, argv + first, &json);
    if (path == NULL)
        return limits_usage();
    int status = limits_call(where, json, clear ? "POST" : "GET", path);
    free(path);
    return status;
}
