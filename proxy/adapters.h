/*
 * The kinds of adapters that there are (adapt/adapter.h), and which one serves a service. This is
 * the one place outside of icap/ that knows it; another kind is named here.
 *
 *     struct shared_services *services = shared_services_new(settings, adapters_class_of, NULL);
 *
 * Threads: any.
 */
#ifndef RETORT_ADAPTERS_H
#define RETORT_ADAPTERS_H

#include "adapt/shared_service.h"

const struct adapter_class *adapters_class_of(const struct icap_service_settings *settings);

#endif
