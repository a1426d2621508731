#include "part.h"

#include "inside/adapter.h"
#include "inside/runners.h"
#include "inside/settings.h"

/* The part inside: services that run in the proxy. */

/* The first starts of all processes: they start in turns (inside/runners.h). */
static uint64_t inside_start_time(const struct settings *settings) {
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

const struct part part_inside = {
    .settings = &inside_part_settings,
    .services =
        {
            .kind = SERVICE_INSIDE,
            .class = &inside_adapter_class,
            .start_time = inside_start_time,
        },
    .process = {.abandon_starts = inside_starts_abandon,
                .starts_are_abandoned = inside_starts_abandoned,
                .await_end = inside_runners_await},
};
