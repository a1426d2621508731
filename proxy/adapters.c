#include "adapters.h"

#include "icap/adapter.h"

/* The settings accept only icap: and icaps: URIs. */
const struct adapter_class *adapters_class_of(const struct service_settings *settings) {
    (void)settings;
    return &icap_adapter_class;
}
