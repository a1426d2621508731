/*
 * The libraries that retort runs with, for `retort --version`: what whoever reads a report of a fault
 * asks for first.
 *
 *     version_print("retort", libraries_list());
 */
#ifndef RETORT_LIBRARIES_H
#define RETORT_LIBRARIES_H

#include "base/version.h"

/* As they were loaded, not as they were when retort was built. The caller does not free it; valid
 * until the next call; called by one thread. */
const struct version_library *libraries_list(void);

#endif
