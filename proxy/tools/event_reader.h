/*
 * The event stream of a running retort (events/stream.h), read for a command. When the stream ends,
 * because retort is replaced, restarted or out of reach, the reader says so on standard error, and
 * connects again, each time after a longer pause.
 *
 *     struct event_reader *reader = event_reader_open(where, filters);       NULL: after a message
 *     while ((what = event_reader_next(reader, &event, 1000)) != EVENT_READER_END)
 *         if (what == EVENT_READER_TRANSACTION)
 *             puts(admin_page_text(event.json, "url"));
 *     event_reader_close(&reader);
 *
 * Losses and what is no event are told on standard error, too.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_TOOLS_EVENT_READER_H
#define RETORT_TOOLS_EVENT_READER_H

#include "base/slice.h"

#include <jansson.h>

enum event_reader_status {
    EVENT_READER_TRANSACTION,
    EVENT_READER_QUIET, /* none came in time */
    EVENT_READER_END,   /* retort refuses; after a message */
};

/* Both stay until the next call. */
struct event_read {
    struct slice line;  /* as it came: a line of the JSON access log */
    const json_t *json; /* without control characters: tools/answer.h */
};

struct event_reader;

/* `filters`: words NAME=VALUE, as the admin plane takes them; ends with NULL. `where` outlives the
 * reader. */
struct event_reader *event_reader_open(const char *where, char *const *filters);
enum event_reader_status event_reader_next(struct event_reader *reader, struct event_read *event,
                                           unsigned milliseconds);
/* Transactions that this reader has lost so far, as far as retort could count them. */
uint64_t event_reader_lost(const struct event_reader *reader);
bool event_reader_is_connected(const struct event_reader *reader);
void event_reader_close(struct event_reader **readerp);

#endif
