/*
 * The class of adapters that run services inside the proxy (adapt/adapter.h).
 *
 *     .services = {.kind = SERVICE_INSIDE, .class = &inside_adapter_class}         parts/inside/part.c
 *
 * Threads: a constant.
 */
#ifndef RETORT_INSIDE_ADAPTER_H
#define RETORT_INSIDE_ADAPTER_H

#include "adapt/adapter.h"

extern const struct adapter_class inside_adapter_class;

#endif
