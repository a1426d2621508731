/*
 * The class of adapters that ask an ICAP server (adapt/adapter.h).
 *
 *     .services = {.kind = SERVICE_BY_ICAP, .class = &icap_adapter_class}          parts/icap/part.c
 *
 * Threads: a constant.
 */
#ifndef RETORT_ICAP_ADAPTER_H
#define RETORT_ICAP_ADAPTER_H

#include "adapt/adapter.h"

extern const struct adapter_class icap_adapter_class;

#endif
