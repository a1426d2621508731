/*
 * The reply whose bytes come from a page's source (admin/page.h): libmicrohttpd asks for a block when
 * it has sent the one before. So a reader that is slow keeps a block in memory, and no more.
 *
 *     struct MHD_Response *response = source_reply_new(&page->source);
 *     ... MHD_queue_response, MHD_destroy_response: the end of the response releases the source
 *
 * Threads: those of libmicrohttpd. Errors: where the source can't be read, the connection is closed
 * before the length that the head has told.
 */
#ifndef RETORT_ADMIN_SOURCE_REPLY_H
#define RETORT_ADMIN_SOURCE_REPLY_H

#include "admin/page.h"

#include <microhttpd.h>

/* Owns what the source has. NULL: there is no memory, and the source has been released. */
struct MHD_Response *source_reply_new(const struct page_source *source);

#endif
