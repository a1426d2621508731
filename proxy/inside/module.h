/*
 * Modules of services: shared objects with a service of the interface of common/service/service.h, the
 * same code that a host of c-icap runs.
 *
 *     char error[INSIDE_ERROR];
 *     const struct service_ops *ops = inside_module_load("/usr/lib/retort/services/gray.so", error);
 *     if (ops == NULL) ...                                       error says why and what to do
 *
 * A file NAME.so defines the symbol retort_service_NAME (SERVICE_DEFINE). It has the rights of this
 * process: whoever may write the file is as powerful as the proxy. A module that has been loaded
 * stays, because code of it may have to run when a thread ends.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_INSIDE_MODULE_H
#define RETORT_INSIDE_MODULE_H

#include "service/service.h"

enum { INSIDE_ERROR = 640 };

const struct service_ops *inside_module_load(const char *path, char error[INSIDE_ERROR]);

#endif
