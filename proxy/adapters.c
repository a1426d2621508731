#include "adapters.h"

#include "icap/adapter.h"
#include "inside/adapter.h"

const struct adapter_class *adapters_class_of(const struct service_settings *settings) {
    return settings->kind == SERVICE_INSIDE ? &inside_adapter_class : &icap_adapter_class;
}

void adapters_use_content(struct content_room *room) {
    inside_adapter_use_content(room);
}
