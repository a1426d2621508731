#include "tools/admin_page.h"
#include "tools/commands.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_LINE_MAX = 4096 };

/* Reads "text" with its escapes into `out`, which is as long as the line. NULL: it has no end. */
static const char *metrics_json_take_quoted(const char *at, char *out) {
    for (at++; *at != '"'; at++) {
        bool escaped = *at == '\\';
        at += escaped;
        if (*at == '\0')
            return NULL;
        *out++ = escaped && *at == 'n' ? '\n' : *at;
    }
    *out = '\0';
    return at + 1;
}

/* {a="b",c="d"}; NULL: broken. */
static const char *take_labels(const char *at, json_t *labels) {
    char name[METRICS_LINE_MAX], value[METRICS_LINE_MAX];
    for (at++; *at != '}';) {
        size_t length = strcspn(at, "=}");
        if (at[length] != '=' || at[length + 1] != '"')
            return NULL;
        memcpy(name, at, length);
        name[length] = '\0';
        at = metrics_json_take_quoted(at + length + 1, value);
        if (at == NULL)
            return NULL;
        json_object_set_new(labels, name, json_string(value));
        at += *at == ',';
    }
    return at + 1;
}

static json_t *value_of(const char *text) {
    char *end;
    double value = strtod(text, &end);
    return end != text && isfinite(value) ? json_real(value) : json_string(text);
}

static void take_metric(json_t *list, const char *line) {
    size_t length = strcspn(line, "{ ");
    json_t *labels = json_object();
    const char *at = line + length;
    if (*at == '{')
        at = take_labels(at, labels);
    if (line[0] != '#' && at != NULL && *at == ' ')
        json_array_append_new(list, json_pack("{s:s%, s:O, s:o}", "name", line, length, "labels",
                                              labels, "value", value_of(at + 1)));
    json_decref(labels);
}

static json_t *metrics_json(const char *text) {
    char line[METRICS_LINE_MAX];
    json_t *list = json_array();
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (length < sizeof line) {
            memcpy(line, text, length);
            line[length] = '\0';
            take_metric(list, line);
        }
        text += length + (text[length] != '\0');
    }
    return list;
}

static void print_metrics_json(const struct http_answer *answer) {
    json_t *json = metrics_json(answer->body);
    json_dumpf(json, stdout, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}

/* The page is no JSON. */
int metrics_json_command(const char *admin) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    int status = EXIT_SUCCESS;
    if (!http_call(&answer, admin, "GET", "/metrics", error)) {
        fprintf(stderr, "retortctl: %s\n", error);
        return EXIT_FAILURE;
    }
    if (answer.status != 200)
        status = admin_page_refused(&answer);
    else
        print_metrics_json(&answer);
    http_answer_release(&answer);
    return status;
}
