/*
 * What the lines of the event stream say: server-sent events as retort writes them, with all data of
 * an event in one line.
 *
 *     struct event_lines lines = {0};
 *     switch (event_lines_take(&lines, line)) {               the next line, without its end
 *     case EVENT_LINE_TRANSACTION: ... lines.data, lines.json ...
 *     case EVENT_LINE_LOSS: lost += event_lines_lost(&lines);
 *     ...
 *     event_lines_release(&lines);                            a stream that begins anew, and the end
 *
 * Bytes come from another process: no line makes more of itself than an event that is left out.
 *
 * Ownership: `data` points into the line, `json` stays until the next line with data. Threads:
 * values.
 */
#ifndef RETORT_TOOLS_EVENT_LINES_H
#define RETORT_TOOLS_EVENT_LINES_H

#include "base/slice.h"

#include <jansson.h>

enum event_line {
    EVENT_LINE_OTHER, /* a comment, an id, the end of an event */
    EVENT_LINE_TRANSACTION,
    EVENT_LINE_LOSS,
    EVENT_LINE_BAD, /* its data is no JSON object, or no count of losses */
};

struct event_lines {
    bool losses; /* the event under way is about losses */
    struct slice data;
    json_t *json;
};

enum event_line event_lines_take(struct event_lines *lines, struct slice line);
/* How many transactions were lost, after EVENT_LINE_LOSS. */
uint64_t event_lines_lost(const struct event_lines *lines);
void event_lines_release(struct event_lines *lines);

#endif
