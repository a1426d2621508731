/* The options of the event stream, which stand in the section admin. */
#include "events/settings.h"

#include "base/findings.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

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

const struct part_settings events_part_settings = {
    .options = rows,
    .size = sizeof(struct event_settings),
    .load = events_load,
    .compare = events_compare,
};
