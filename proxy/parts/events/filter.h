/*
 * A filter of the event stream: which finished transactions a consumer wants to see. What is set
 * must all fit; of a list one value must.
 *
 *     struct event_filter *filter = event_filter_new();
 *     if (!event_filter_set(filter, "status", "404,5xx", error)) ...      error says what to write
 *     if (event_filter_fits(filter, &journal, url_class)) ...
 *     event_filter_release(&filter);
 *
 * Threads: it is changed before it is shared, and only read from then on; references are counted.
 */
#ifndef RETORT_EVENTS_FILTER_H
#define RETORT_EVENTS_FILTER_H

#include "transaction/access_log_line.h"

enum { EVENT_FILTER_ERROR = 300, EVENT_FILTER_VALUES = 32 };

struct event_filter;

/* The names of what can be set; ends with NULL. */
extern const char *const event_filter_names[];

struct event_filter *event_filter_new(void);
bool event_filter_set(struct event_filter *filter, const char *name, const char *value,
                      char error[EVENT_FILTER_ERROR]);
struct event_filter *event_filter_reference(struct event_filter *filter);
void event_filter_release(struct event_filter **filterp);

/* The name of the class that is wanted; NULL: any. */
const char *event_filter_class(const struct event_filter *filter);
/* `url_class`: of that name, in the settings in use; NULL: there is none. */
bool event_filter_fits(const struct event_filter *filter, const struct journal *journal,
                       const struct url_class *url_class);

#endif
