#include "tools/event_lines.h"

#include <string.h>

/* Takes the words "event: " off the front. */
static bool event_lines_is_field(struct slice *line, struct slice name) {
    if (line->length < name.length || memcmp(line->base, name.base, name.length) != 0)
        return false;
    *line = slice_make(line->base + name.length, line->length - name.length);
    return true;
}

static enum event_line event_lines_take_data(struct event_lines *lines, struct slice data) {
    json_decref(lines->json);
    lines->data = data;
    lines->json = json_loadb(data.base, data.length, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(lines->json))
        return EVENT_LINE_BAD;
    if (!lines->losses)
        return EVENT_LINE_TRANSACTION;
    return event_lines_lost(lines) > 0 ? EVENT_LINE_LOSS : EVENT_LINE_BAD;
}

enum event_line event_lines_take(struct event_lines *lines, struct slice line) {
    if (line.length == 0)
        lines->losses = false;
    else if (event_lines_is_field(&line, SLICE("event: ")))
        lines->losses = slice_equal(line, SLICE("lost"));
    else if (event_lines_is_field(&line, SLICE("data: ")))
        return event_lines_take_data(lines, line);
    return EVENT_LINE_OTHER;
}

uint64_t event_lines_lost(const struct event_lines *lines) {
    json_int_t lost = json_integer_value(json_object_get(lines->json, "lost"));
    return lost > 0 ? (uint64_t)lost : 0;
}

void event_lines_release(struct event_lines *lines) {
    json_decref(lines->json);
    *lines = (struct event_lines){0};
}
