/*
 * retortctl page: says how a browser reaches the web page of the admin plane, and as whom.
 *
 *     return page_command("/run/retort/retort.sock", json);
 *
 * Returns the exit status: 0, or 1 when the admin plane can't be reached or refuses (stderr says
 * why).
 */
#ifndef RETORT_CTL_PAGE_COMMAND_H
#define RETORT_CTL_PAGE_COMMAND_H

#include <stdbool.h>

int page_command(const char *where, bool json);

#endif
