/*
 * The class of adapters that ask an ICAP server (adapt/adapter.h).
 *
 *     return &icap_adapter_class;                    proxy/adapters.c, for icap: and icaps: services
 *
 * Threads: a constant.
 */
#ifndef RETORT_ICAP_ADAPTER_H
#define RETORT_ICAP_ADAPTER_H

#include "adapt/adapter.h"

extern const struct adapter_class icap_adapter_class;

#endif
