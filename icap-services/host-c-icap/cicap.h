/*
 * Includes the headers of c-icap. Only the files of this folder include it, because these headers
 * bring names and warnings that the rest of Retort shall not see.
 */
#ifndef RETORT_HOST_CICAP_H
#define RETORT_HOST_CICAP_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wpointer-arith"
#pragma GCC diagnostic ignored "-Wshadow"
#include <c-icap.h>

#include <debug.h>
#include <request.h>
#include <service.h>
#include <simple_api.h>
#include <stats.h>
#pragma GCC diagnostic pop

#endif
