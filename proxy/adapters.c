#include "adapters.h"

#include "base/log.h"
#include "icap/adapter.h"
#include "inside/adapter.h"
#include "inside/runners.h"

const struct adapter_class *adapters_class_of(const struct service_settings *settings) {
    return settings->kind == SERVICE_INSIDE ? &inside_adapter_class : &icap_adapter_class;
}

void adapters_use_content(struct content_room *room) {
    inside_adapter_use_content(room);
}

void adapters_abandon_starts(void) {
    inside_starts_abandon();
}

bool adapters_starts_are_abandoned(void) {
    return inside_starts_abandoned();
}

/* They start in turns (inside/runners.h). */
uint64_t adapters_start_time(const struct settings *settings) {
    uint64_t longest = 0, count = 0, turns = inside_start_turns();
    for (size_t i = 0; i < settings->service_count; i++) {
        const struct service_settings *service = &settings->services[i];
        if (service->kind != SERVICE_INSIDE || service->runs != SERVICE_RUNS_PROCESS ||
            service->disabled)
            continue;
        count += service->threads;
        longest = service->start_timeout > longest ? service->start_timeout : longest;
    }
    return (count + turns - 1) / turns * longest;
}

void adapters_await_end(unsigned milliseconds) {
    if (!inside_runners_await(milliseconds))
        log_warn("a service that runs in a thread or process of its own did not end; it is left "
                 "behind");
}
