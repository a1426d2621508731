#include "part.h"

#include "base/assert.h"
#include "base/findings.h"
#include "events/stream.h"
#include "events/watch.h"
#include "server.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "transaction/transaction.h"
#include "transaction/watcher.h"

#include <stddef.h>
#include <stdint.h>

/* The options of the event stream, which stand in the section admin. */

struct event_settings {
    unsigned consumers; /* at a time */
    size_t queue;       /* bytes that wait for each */
    uint64_t heartbeat; /* milliseconds */
};

static const struct option rows[] = {
    {ONE("admin", struct event_settings, consumers), .name = "event_consumers", BY_FILE_AT_START,
     COUNT(0, 32), DEFAULT("8"),
     DOC
     "Sets how many may read the event stream (/v1/events) at a time. Further ones are refused, "
     "and retort_event_consumers_refused_total counts them. 0 refuses all. A reload does not "
     "change this setting.",
     .example = "16"},
    {ONE("admin", struct event_settings, heartbeat), .name = "event_heartbeat", BY_FILE_AT_START,
     TIME_OF(SECOND, 20 * SECOND), DEFAULT("10s"),
     DOC "Sets after how much time without an event a consumer of the event stream gets a comment. "
         "It shows that the stream is alive, and keeps connections through gateways open. "
         "retortctl connects again when nothing came for 30 seconds. A reload does not change this "
         "setting.",
     .example = "\"5s\""},
    {ONE("admin", struct event_settings, queue), .name = "event_queue", BY_FILE_AT_START,
     SIZE_OF(256 * KB, GB), DEFAULT("1MB"),
     DOC
     "Sets how many bytes of events may wait for each consumer of the event stream, and in each "
     "worker. No request waits: an event without room is lost, the consumer is told how many "
     "were, and retort_events_lost_total counts them. A worker takes this memory when somebody "
     "reads the stream for the first time. A reload does not change this setting.",
     .example = "\"4MB\""},
    {.name = NULL},
};

static bool events_load(struct load *load, void *mine) {
    return load_values(load, document_section(load->document, "admin", NULL), "admin", mine);
}

static void events_compare(const void *first, const void *new, struct findings *left) {
    const struct event_settings *before = first, *after = new;
    if (before->consumers != after->consumers || before->queue != after->queue ||
        before->heartbeat != after->heartbeat)
        findings_add(left, "admin.event_consumers, admin.event_queue and admin.event_heartbeat are "
                           "still as they were at the start: restart retort to apply the change");
}

static const struct part_settings events_part_settings = {
    .options = rows,
    .size = sizeof(struct event_settings),
    .load = events_load,
    .compare = events_compare,
};

/*
 * The tap of a worker: it sees each transaction that ends while somebody reads the event stream, and
 * writes those that a consumer wants into the worker's ring, as lines of the JSON access log.
 */

struct event_tap {
    struct entry_watcher watcher;
    unsigned worker;                                       /* its ring in watch->rings */
    struct event_watch *watch;                             /* referenced; NULL: nobody listens */
    const struct url_class *classes[EVENT_CONSUMERS_MOST]; /* of the settings */
    struct access_log_line_time time;
};

static uint32_t tap_consumers(const struct event_tap *tap, const struct journal *journal) {
    const struct event_watch *watch = tap->watch;
    uint32_t consumers = 0;
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if (watch->filters[i] != NULL &&
            event_filter_fits(watch->filters[i], journal, tap->classes[i]))
            consumers |= (uint32_t)1 << i;
    return consumers;
}

static void tap_lose(const struct event_watch *watch, struct event_ring *ring, uint32_t consumers) {
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        if ((consumers >> i & 1) != 0)
            event_ring_lose(ring, i, watch->since[i]);
}

static void tap_on_entry(struct entry_watcher *watcher, struct transaction *transaction,
                         const struct journal *journal) {
    static const struct log_settings json = {.format = ACCESS_LOG_JSON};
    struct event_tap *tap = CONTAINER_OF(watcher, struct event_tap, watcher);
    (void)transaction;
    CHECK_OBJ(tap->watch, EVENT_WATCH_MAGIC);
    struct event_ring *ring = tap->watch->rings[tap->worker];
    struct event_head head = {journal->number, tap->watch->number, tap_consumers(tap, journal), 0};
    if (head.consumers == 0)
        return;
    char *line = event_ring_begin(ring);
    if (line == NULL) {
        tap_lose(tap->watch, ring, head.consumers);
        return;
    }
    head.length =
        (uint32_t)access_log_line_write(line, &json, journal, &tap->time) - 1; /* no '\n' */
    event_ring_end(ring, &head);
}

static void event_tap_settings_changed(struct event_tap *tap, const struct settings *settings) {
    tap->watcher.asks_class = false;
    for (unsigned i = 0; tap->watch != NULL && i < EVENT_CONSUMERS_MOST; i++) {
        const struct event_filter *filter = tap->watch->filters[i];
        const char *name = filter != NULL ? event_filter_class(filter) : NULL;
        tap->classes[i] = name != NULL ? settings_class(settings, name) : NULL;
        tap->watcher.asks_class |= name != NULL;
    }
}

/* The settings of the host outlive this watch, or event_tap_settings_changed comes before their end. */
static void event_tap_watch(struct event_tap *tap, struct event_watch *watch,
                            struct transaction_host *host) {
    event_watch_release(&tap->watch);
    tap->watch = event_watch_reference(watch);
    tap->watcher.on_entry = tap_on_entry;
    event_tap_settings_changed(tap, host->net->settings);
    if (watch != NULL)
        entry_watcher_join(&host->watcher, &tap->watcher);
    else
        entry_watcher_leave(&host->watcher, &tap->watcher);
}

/* The part events: what it does in the server and in a worker. */

/* ---- the server -------------------------------------------------------------------------------- */

/* In the worker's thread. */
static void events_on_watch(struct transaction_host *host, void *arg) {
    struct event_watch *watch = arg;
    event_tap_watch(host->parts[PART_EVENTS], watch, host);
    event_watch_release(&watch);
}

static void events_publish(void *context, struct event_watch *watch) {
    struct server *server = context;
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_post(server->workers[i], events_on_watch, event_watch_reference(watch));
}

static void events_await(void *context) {
    server_await_workers(context);
}

static void events_open(struct server *server) {
    const struct event_settings *settings = server->settings->parts[PART_EVENTS];
    const struct event_demand demand = {
        .workers = server->settings->workers,
        .consumers = settings->consumers,
        .queue = settings->queue,
        .heartbeat = settings->heartbeat,
        .context = server,
        .publish = events_publish,
        .await = events_await,
    };
    server->parts[PART_EVENTS] = event_stream_new(&demand);
}

static void events_close(struct server *server) {
    struct event_stream *stream = server->parts[PART_EVENTS];
    server->parts[PART_EVENTS] = NULL;
    event_stream_free(&stream);
}

/* ---- a worker ---------------------------------------------------------------------------------- */

static void events_join(struct transaction_host *host, void *state) {
    (void)state;
    struct event_tap *tap = xcalloc(1, sizeof *tap);
    tap->worker = host->index;
    host->parts[PART_EVENTS] = tap;
}

static void events_change(struct transaction_host *host) {
    event_tap_settings_changed(host->parts[PART_EVENTS], host->net->settings);
}

static void events_leave(struct transaction_host *host) {
    struct event_tap *tap = host->parts[PART_EVENTS];
    if (tap != NULL)
        event_tap_watch(tap, NULL, host);
    free(tap);
    host->parts[PART_EVENTS] = NULL;
}

const struct part part_events = {
    .settings = &events_part_settings,
    .process = {.open = events_open, .close = events_close},
    .worker = {.join = events_join, .change = events_change, .leave = events_leave},
};
