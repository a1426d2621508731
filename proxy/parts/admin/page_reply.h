/*
 * Replies of libmicrohttpd whose bytes come while they are sent (admin/page.h).
 *
 *     response = feed_reply_new(connection, &page->feed, may_still, request);
 *     response = source_reply_new(connection, &page->source, may_still, request);
 *     ... MHD_queue_response, MHD_destroy_response: the end of the response ends the feed or the source
 *
 * A feed goes on, such as a stream of events. While there are no bytes, libmicrohttpd suspends the
 * connection, and no thread waits for it. A reader that does not read only fills its own queue.
 *
 * A source is a long answer: libmicrohttpd asks for a block when it has sent the one before, so a slow
 * reader keeps one block in memory. It has more time than others: see admin/connections.h. Where the
 * source can't be read, the connection is closed before the length that the head has told.
 *
 * A reload may take the reader's token, certificate or role away. So a reply asks before each block
 * whether there may be more, and ends when not. Both own what they are given; may_still(arg) is called
 * until the request ends. NULL: there is no memory, and the feed or source has been released.
 *
 * Threads: those of libmicrohttpd.
 */
#ifndef RETORT_ADMIN_PAGE_REPLY_H
#define RETORT_ADMIN_PAGE_REPLY_H

#include "admin/page.h"

#include <microhttpd.h>

/* A reader that takes no byte for FEED_REPLY_PATIENCE seconds although some wait is closed. */
enum { FEED_REPLY_PATIENCE = 60 };

struct MHD_Response *feed_reply_new(struct MHD_Connection *connection, const struct page_feed *feed,
                                    bool (*may_still)(void *arg), void *arg);
struct MHD_Response *source_reply_new(struct MHD_Connection *connection,
                                      const struct page_source *source,
                                      bool (*may_still)(void *arg), void *arg);

#endif
