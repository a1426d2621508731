#include "events/tap.h"

#include "base/assert.h"

static uint32_t tap_consumers(const struct event_tap *tap, const struct access_entry *entry) {
    const struct event_watch *watch = tap->watch;
    uint32_t consumers = 0;
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if (watch->filters[i] != NULL &&
            event_filter_fits(watch->filters[i], entry, tap->classes[i]))
            consumers |= (uint32_t)1 << i;
    return consumers;
}

static void tap_lose(const struct event_watch *watch, struct event_ring *ring, uint32_t consumers) {
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if ((consumers >> i & 1) != 0)
            event_ring_lose(ring, i, watch->since[i]);
}

static void tap_on_entry(struct entry_watcher *watcher, struct transaction *transaction,
                         const struct access_entry *entry) {
    static const struct log_settings json = {.format = ACCESS_LOG_JSON};
    struct event_tap *tap = CONTAINER_OF(watcher, struct event_tap, watcher);
    (void)transaction;
    CHECK_OBJ(tap->watch, EVENT_WATCH_MAGIC);
    struct event_ring *ring = tap->watch->rings[tap->worker];
    struct event_head head = {entry->number, tap->watch->number, tap_consumers(tap, entry), 0};
    if (head.consumers == 0)
        return;
    char *line = event_ring_begin(ring);
    if (line == NULL) {
        tap_lose(tap->watch, ring, head.consumers);
        return;
    }
    head.length = (uint32_t)access_line_write(line, &json, entry, &tap->time) - 1; /* no '\n' */
    event_ring_end(ring, &head);
}

void event_tap_watch(struct event_tap *tap, struct event_watch *watch,
                     const struct settings *settings) {
    event_watch_release(&tap->watch);
    tap->watch = event_watch_reference(watch);
    tap->watcher.on_entry = tap_on_entry;
    event_tap_settings_changed(tap, settings);
}

void event_tap_settings_changed(struct event_tap *tap, const struct settings *settings) {
    tap->watcher.asks_class = false;
    for (unsigned i = 0; tap->watch != NULL && i < EVENT_CONSUMERS_MOST; i++) {
        const struct event_filter *filter = tap->watch->filters[i];
        const char *name = filter != NULL ? event_filter_class(filter) : NULL;
        tap->classes[i] = name != NULL ? settings_class(settings, name) : NULL;
        tap->watcher.asks_class |= name != NULL;
    }
}

struct entry_watcher *event_tap_watcher(struct event_tap *tap) {
    return tap->watch != NULL ? &tap->watcher : NULL;
}
