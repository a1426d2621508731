/*
 * The libraries that read and write pictures, for `gray-helper --version`.
 *
 *     version_print("gray-helper", picture_libraries());
 */
#ifndef RETORT_GRAY_PICTURE_LIBRARIES_H
#define RETORT_GRAY_PICTURE_LIBRARIES_H

#include "base/version.h"

/* Valid until the next call; called by one thread. */
const struct version_library *picture_libraries(void);

#endif
