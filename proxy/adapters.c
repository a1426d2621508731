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

void adapters_await_end(unsigned milliseconds) {
    if (!inside_runners_await(milliseconds))
        log_warn("a service that runs in a thread or process of its own did not end; it is left "
                 "behind");
}
