/*
 * The code of modules: what a file has now, also where the process has loaded an older file of the
 * same name.
 *
 *     const struct service_ops *ops = inside_code_load("/usr/lib/retort/gray.so", error);
 *     ... the file is replaced: a new one is renamed to this name ...
 *     ops = inside_code_load("/usr/lib/retort/gray.so", error);       those of the new file
 *
 * dlopen knows a loaded file by its name and gives the old code again. So a file that is another one
 * (by its device and its number, which no new file gets while the old one is mapped) is loaded by
 * another spelling of its path, such as /usr/lib/retort/./gray.so. A debugger opens such a path as
 * well, unlike /proc/self/fd/7; perf and valgrind know the file by its mapping. The first one is loaded by
 * the path as it is.
 *
 * Old code stays loaded (service/module.h). A file that is overwritten in place is the same file: its
 * code changes under whoever runs it, which no program survives.
 *
 * Threads: any. Memory: some bytes for each file that was loaded, which stay as the code does. Errors: NULL and a
 * sentence, as service_module_load.
 */
#ifndef RETORT_INSIDE_CODE_H
#define RETORT_INSIDE_CODE_H

#include "service/module.h"

#include <stdbool.h>
#include <stdint.h>

const struct service_ops *inside_code_load(const char *path, char error[SERVICE_MODULE_ERROR]);

/*
 * A start of a module in this process (runs = worker or thread). A module that does not come back from it,
 * or from its constructors, must not keep the proxy from ending, and nobody can end a thread. So it starts in
 * a thread of its own, which is left behind when the proxy ends (false: the context is its thread's then).
 * inside_runners_await knows threads that are left behind.
 *
 * Who waits for it waits as long as it takes; after `patience` the log names the service, once. `run` is
 * called in another thread, and `leave` too; by the caller, where no thread can be started.
 */

struct inside_start_order {
    void (*run)(void *context);
    void (*leave)(void *context); /* after `run`, where nobody waits for it any more */
    const char *name;             /* of the service */
    uint64_t patience;            /* milliseconds */
};

bool inside_start_run(const struct inside_start_order *order, void *context);

#endif
