#include "part.h"

#include "icap/adapter.h"
#include "settings/settings.h"

const struct part part_icap = {.services = {.kind = SERVICE_BY_ICAP, .class = &icap_adapter_class}};
