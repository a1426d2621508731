/*
 * The reply whose bytes come from a page's source (admin/page.h): libmicrohttpd asks for a block when
 * it has sent the one before. So a reader that is slow keeps a block in memory, and no more.
 *
 *     response = source_reply_new(connection, &page->source, may_still, request);
 *     ... MHD_queue_response, MHD_destroy_response: the end of the response releases the source
 *
 * A long answer to a slow reader takes minutes, so it has more time than others: see
 * admin/connections.h. A reload may take the reader's token or role away meanwhile. So the reply asks
 * before each block whether there may be more, and breaks the answer off when not.
 *
 * Threads: those of libmicrohttpd. Errors: where the source can't be read, the connection is closed
 * before the length that the head has told.
 */
#ifndef RETORT_ADMIN_SOURCE_REPLY_H
#define RETORT_ADMIN_SOURCE_REPLY_H

#include "admin/page.h"

#include <microhttpd.h>

/* Owns what the source has. may_still(arg) is called until the request ends. NULL: there is no memory, and the source has been released. */
struct MHD_Response *source_reply_new(struct MHD_Connection *connection,
                                      const struct page_source *source,
                                      bool (*may_still)(void *arg), void *arg);

#endif
