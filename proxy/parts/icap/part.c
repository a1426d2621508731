#include "part.h"

#include "icap/adapter.h"
#include "icap/settings.h"
#include "settings/settings.h"

const struct part part_icap = {
    .settings = &icap_part_settings,
    .services = {.kind = SERVICE_BY_ICAP, .class = &icap_adapter_class},
};
