#include "admin/page.h"
#include "admin/part_pages.h"
#include "events/stream.h"

#include <inttypes.h>

/* The part events in the admin plane: the page that is the event stream. */

static void feed_bind(void *arg, int fd, void (*wake)(void *wake_arg), void *wake_arg) {
    event_consumer_bind(arg, fd, wake, wake_arg);
}

static ssize_t feed_read(void *arg, char *bytes, size_t most, void (*pause)(void *wake_arg)) {
    return event_consumer_read(arg, bytes, most, pause);
}

static void feed_release(void *arg) {
    struct event_consumer *consumer = arg;
    event_consumer_leave(&consumer);
}

static bool class_exists(const struct admin_calls *calls, const char *name) {
    struct settings *settings = calls->settings(calls->context);
    bool exists = settings_class(settings, name) != NULL;
    settings_release(&settings);
    return exists;
}

/* False: an answer has been made. */
static bool take_filter(struct page *page, const struct admin_calls *calls,
                        const struct page_request *request, struct event_filter *filter) {
    char error[EVENT_FILTER_ERROR];
    for (const char *const *name = event_filter_names; *name != NULL; name++) {
        const char *value = page_argument(request, *name);
        if (value == NULL || value[0] == '\0' || event_filter_set(filter, *name, value, error))
            continue;
        page_error(page, 400, error);
        return false;
    }
    const char *url_class = event_filter_class(filter);
    if (url_class == NULL || class_exists(calls, url_class))
        return true;
    page_error(page, 404, "there is no url_class of this name; retortctl settings shows them");
    return false;
}

static void events_answer(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request) {
    static const struct page_feed_class feed = {feed_bind, feed_read, feed_release};
    struct event_filter *filter = event_filter_new();
    if (take_filter(page, calls, request, filter)) {
        struct event_consumer *consumer = event_stream_join(calls->parts[PART_EVENTS], &filter);
        page->status = 200;
        page->content_type = "text/event-stream";
        if (consumer != NULL)
            page->feed = (struct page_feed){consumer, &feed};
        else
            page_error(page, 503,
                       "no more consumers may read the event stream now: end another one, or raise "
                       "admin.event_consumers and restart");
    }
    event_filter_release(&filter);
}

static void events_print_metrics(FILE *out, void *state) {
    struct event_numbers numbers;
    event_stream_numbers(state, &numbers);
    fprintf(out,
            "# HELP retort_event_consumers Consumers that read the event stream now.\n"
            "# TYPE retort_event_consumers gauge\nretort_event_consumers %u\n"
            "# HELP retort_event_consumers_refused_total Consumers of the event stream that were "
            "refused because of admin.event_consumers, or because no memory was left.\n"
            "# TYPE retort_event_consumers_refused_total counter\n"
            "retort_event_consumers_refused_total %" PRIu64 "\n"
            "# HELP retort_events_sent_total Events that were given to consumers of the event "
            "stream; an event for two counts twice.\n"
            "# TYPE retort_events_sent_total counter\nretort_events_sent_total %" PRIu64 "\n"
            "# HELP retort_events_lost_total Events that consumers of the event stream lost "
            "because they read too slowly.\n"
            "# TYPE retort_events_lost_total counter\nretort_events_lost_total %" PRIu64 "\n",
            numbers.consumers, numbers.refused, numbers.sent, numbers.lost);
}

static void events_end_feeds(void *state, unsigned patience) {
    event_stream_end(state, patience);
}

const struct part_pages events_pages = {
    .answer = events_answer,
    .print_metrics = events_print_metrics,
    .end_feeds = events_end_feeds,
};
