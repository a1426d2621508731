#include "ctl/intercept_command.h"

#include "ctl/answer.h"
#include "ctl/argument.h"
#include "ctl/http_call.h"
#include "ctl/terminal.h"

#include <stdlib.h>
#include <string.h>

enum { INTERCEPT_USAGE = 2 };

static int wrong_usage(void) {
    fputs("retortctl: write \"intercept\", \"intercept clear all\", or \"intercept clear\" with "
          "client=ADDRESS, host=HOST, or both\n",
          stderr);
    return INTERCEPT_USAGE;
}

static const char *text_in(const json_t *entry, const char *name) {
    const char *text = json_string_value(json_object_get(entry, name));
    return text != NULL ? text : "";
}

static int number_in(const json_t *entry, const char *name) {
    return (int)json_integer_value(json_object_get(entry, name));
}

static void show_list(const json_t *answer) {
    size_t i;
    json_t *entry, *refusals = json_object_get(answer, "refusals");
    json_t *asking = json_object_get(answer, "asking");
    if (json_array_size(refusals) + json_array_size(asking) > 0)
        terminal_heading(stdout, "%-40s %-40s %s", "CLIENT", "HOST", "STATE");
    json_array_foreach(refusals, i, entry)
        printf("%-40s %-40s refused %d times, %s\n", text_in(entry, "client"),
               text_in(entry, "host"), number_in(entry, "count"),
               json_is_true(json_object_get(entry, "spliced")) ? "spliced" : "still opened");
    json_array_foreach(asking, i, entry) printf(
        "%-40s %-40s asks for client certificates, %s\n", "all clients", text_in(entry, "host"),
        json_is_true(json_object_get(entry, "spliced")) ? "spliced" : "still opened");
    if (json_array_size(refusals) + json_array_size(asking) == 0)
        puts("no client has refused a certificate, and no server has asked for one");
}

static int intercept_show_answer(const struct http_answer *answer, bool raw) {
    json_t *json = answer_load(answer->body, answer->length);
    const json_t *cleared = json_object_get(json, "cleared");
    if (raw)
        printf("%.*s\n", (int)answer->length, answer->body);
    else if (answer->status != 200)
        fprintf(stderr, "retortctl: %s\n", text_in(json, "error"));
    else if (cleared != NULL)
        printf("%d entries cleared\n", (int)json_integer_value(cleared));
    else
        show_list(json);
    json_decref(json);
    return answer->status == 200 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int intercept_call(const char *where, bool raw, const char *method, const char *path) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call(&answer, where, method, path, error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    int status = intercept_show_answer(&answer, raw);
    http_answer_release(&answer);
    return status;
}

/* NULL: a word is not understood. The caller frees the path. */
static char *path_to_clear(int argc, char **argv) {
    char *path = NULL;
    size_t length;
    bool known = argc > 0;
    FILE *out = open_memstream(&path, &length);
    if (out == NULL)
        return NULL;
    fputs("/intercept/clear?", out);
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "client=", 7) == 0)
            argument_put(out, "client", argv[i] + 7);
        else if (strncmp(argv[i], "host=", 5) == 0)
            argument_put(out, "host", argv[i] + 5);
        else
            known = known && argc == 1 && strcmp(argv[i], "all") == 0;
    }
    fclose(out);
    if (!known) {
        free(path);
        path = NULL;
    }
    return path;
}

int intercept_command(const char *where, bool json, int argc, char **argv) {
    if (argc > 1 && (strcmp(argv[1], "--json") == 0 || strcmp(argv[1], "-j") == 0)) {
        json = true;
        argc--;
        argv++;
    }
    if (argc == 1)
        return intercept_call(where, json, "GET", "/intercept");
    if (strcmp(argv[1], "clear") != 0)
        return wrong_usage();
    char *path = path_to_clear(argc - 2, argv + 2);
    if (path == NULL)
        return wrong_usage();
    int status = intercept_call(where, json, "POST", path);
    free(path);
    return status;
}
