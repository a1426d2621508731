#include "ctl/metrics_json.h"

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

json_t *metrics_json(const char *text) {
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
