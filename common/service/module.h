/*
 * Modules of services: shared objects with a service of service/service.h. A host that loads
 * services while it runs finds the functions of a service here.
 *
 *     char error[SERVICE_MODULE_ERROR];
 *     const struct service_ops *ops = service_module_load("/usr/lib/retort/gray.so", error);
 *     if (ops == NULL) ...                                 error says why and what to do
 *
 * The file is called NAME.so, or srv_NAME.so like a module for c-icap, and defines the symbol
 * retort_service_NAME (SERVICE_DEFINE). A module for c-icap can be loaded too if it is linked
 * with c-icap's library, as Retort's own are; its service is the same. Before the ops are returned
 * they are checked: the version of the interface, the name, and whether all functions are there
 * that a host calls.
 *
 * A module has all rights of the process: whoever may write the file is as powerful as the process.
 * It stays loaded, because code of it may have to run when a thread ends. So a path that is loaded
 * again gives the code that was loaded first, even if the file has been replaced; a host that replaces
 * modules gives another spelling of the path.
 *
 * Threads: one at a time. Errors: NULL and a sentence without a full stop.
 */
#ifndef RETORT_SERVICE_MODULE_H
#define RETORT_SERVICE_MODULE_H

#include "service/service.h"

#include <sys/stat.h>

enum {
    SERVICE_MODULE_ERROR = 640,
    SERVICE_MODULE_NAME = 64,     /* bytes of a name, with its NUL */
    SERVICE_MODULE_COUNTERS = 16, /* counters of a service at most */
    SERVICE_MODULE_OPTIONS = 32,  /* options of a service at most */
};

/* A path without a slash is a file of the current directory. */
const struct service_ops *service_module_load(const char *path, char error[SERVICE_MODULE_ERROR]);

/* Is it a file that this user may read? A pipe, for example, would be waited for. False: the error says
 * what to do. */
bool service_module_readable(const char *path, struct stat *status,
                             char error[SERVICE_MODULE_ERROR]);

/* The check of the ops alone. `path` is used in the sentence. */
bool service_module_check(const struct service_ops *ops, const char *path, const char *name,
                          char error[SERVICE_MODULE_ERROR]);

/* Mixes into a service's fingerprint which code it is: its .build, or else the build ID of the file
 * that it stands in, or else the code itself. Hosts do it first, so that the same module has the same
 * version under all of them. */
void service_module_mix_build(uint64_t *fingerprint, const struct service_ops *ops);

/* "gray" of "/usr/lib/retort/gray.so" and of "srv_gray.so". False: it is no name of a module. */
bool service_module_name(const char *path, char name[SERVICE_MODULE_NAME]);

#endif
