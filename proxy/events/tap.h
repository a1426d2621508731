/*
 * The tap of a worker: it sees each transaction that ends while somebody reads the event stream, and
 * writes those that a consumer wants into the worker's ring, as lines of the JSON access log.
 *
 *     struct event_tap tap = {.worker = index};
 *     event_tap_watch(&tap, watch, settings);           somebody listens; NULL: nobody does
 *     host->watcher = event_tap_watcher(&tap);          the step LOG asks it; NULL: nobody listens
 *     event_tap_settings_changed(&tap, settings);       after a reload: classes are others now
 *     event_tap_watch(&tap, NULL, NULL);                at the end
 *
 * Threads: the worker's.
 */
#ifndef RETORT_EVENTS_TAP_H
#define RETORT_EVENTS_TAP_H

#include "events/watch.h"
#include "transaction/watcher.h"

struct event_tap {
    struct entry_watcher watcher;
    unsigned worker;                                       /* its ring in watch->rings */
    struct event_watch *watch;                             /* referenced; NULL: nobody listens */
    const struct url_class *classes[EVENT_CONSUMERS_MOST]; /* of the settings */
    struct access_line_time time;
};

/* `settings` outlive this watch, or event_tap_settings_changed comes before their end. */
void event_tap_watch(struct event_tap *tap, struct event_watch *watch,
                     const struct settings *settings);
void event_tap_settings_changed(struct event_tap *tap, const struct settings *settings);
struct entry_watcher *event_tap_watcher(struct event_tap *tap);

#endif
