/*
 * The reply that a page's feed makes (admin/page.h), such as a stream of events. While there are no
 * bytes, libmicrohttpd suspends the connection, and no thread waits for it. A reader that does not read
 * only fills its own queue.
 *
 *     response = feed_reply_new(connection, &page->feed, may_still, request);
 *     ... MHD_queue_response, MHD_destroy_response: the end of the response ends the feed
 *
 * A reload may take a token or a certificate away. So the reply asks before each block whether there
 * may be more, and ends with the last block that its reader may have.
 *
 * Threads: those of libmicrohttpd.
 */
#ifndef RETORT_ADMIN_FEED_REPLY_H
#define RETORT_ADMIN_FEED_REPLY_H

#include "admin/page.h"

#include <microhttpd.h>

/* A reader that takes no byte for FEED_REPLY_PATIENCE seconds although some wait is closed. */
enum { FEED_REPLY_PATIENCE = 60 };

/* Owns what the feed has. may_still(arg) is called until the request ends. NULL: there is no memory, and
 * the feed has been released. */
struct MHD_Response *feed_reply_new(struct MHD_Connection *connection, const struct page_feed *feed,
                                    bool (*may_still)(void *arg), void *arg);

#endif
