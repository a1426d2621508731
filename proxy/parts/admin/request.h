/*
 * The requests to the admin plane, as libmicrohttpd calls about them: the head comes, and the guard says who calls and what he
 * may; then the body; then the page is made, and sent. The web page's own files need no token.
 *
 *     struct admin_requests requests;
 *     admin_requests_init(&requests, settings, &calls);
 *     MHD_start_daemon(..., admin_requests_on_data, &requests,
 *                      MHD_OPTION_URI_LOG_CALLBACK, admin_requests_on_target, &requests,
 *                      MHD_OPTION_NOTIFY_COMPLETED, admin_requests_on_end, NULL,
 *                      MHD_OPTION_NOTIFY_CONNECTION, admin_requests_on_connection, &requests, ...);
 *     admin_requests_release(&requests);                        when the daemon has stopped
 *
 * Threads: those of libmicrohttpd, and for pages that are made apart one each (admin/apart.h).
 */
#ifndef RETORT_ADMIN_REQUEST_H
#define RETORT_ADMIN_REQUEST_H

#include "admin/admin.h"
#include "admin/apart.h"
#include "admin/connections.h"
#include "admin/guard.h"

struct admin_requests {
    unsigned magic;
#define ADMIN_REQUESTS_MAGIC 0x41525150u
    struct admin_calls calls;
    struct admin_connections connections;
    struct admin_guard guard;
    pthread_mutex_t lock; /* all pages but those that are made apart are made one at a time */
    struct apart apart;
    _Atomic bool ending; /* only who has connected before is still answered */
};

void admin_requests_init(struct admin_requests *requests, const struct settings *settings,
                         const struct admin_calls *calls);
void admin_requests_release(struct admin_requests *requests);

/* The state of a request. The target is as it was sent. */
void *admin_requests_on_target(void *arg, const char *uri, struct MHD_Connection *connection);
void admin_requests_on_connection(void *arg, struct MHD_Connection *connection, void **context,
                                  enum MHD_ConnectionNotificationCode code);
enum MHD_Result admin_requests_on_data(void *arg, struct MHD_Connection *connection,
                                       const char *path, const char *method, const char *version,
                                       const char *data, size_t *data_size, void **state);
void admin_requests_on_end(void *arg, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code);

#endif
