/*
 * The libraries that retort runs with, for `retort --version`. Reports of bugs need their versions.
 *
 *     version_print("retort", libraries_list());
 */
#ifndef RETORT_LIBRARIES_H
#define RETORT_LIBRARIES_H

#include "base/version.h"

/* The versions are those of the loaded libraries, which may differ from those at build time. The
 * caller does not free the list. It is valid until the next call. Only one thread may call this. */
const struct version_library *libraries_list(void);

#endif
