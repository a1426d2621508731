#include "admin/request.h"

#include "admin/api.h"
#include "admin/audit.h"
#include "admin/page.h"
#include "admin/page_reply.h"
#include "admin/settings.h"
#include "admin/strict.h"
#include "admin/web_files.h"
#include "base/assert.h"
#include "base/clocks.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_AGAIN = 2000 }; /* milliseconds until a long answer needs the right to it again */

/* One request, between libmicrohttpd's calls about it. */
struct admin_request {
    unsigned magic;
#define ADMIN_REQUEST_MAGIC 0x41525153u
    struct admin_requests *requests;
    struct MHD_Connection *connection;
    bool begun;            /* the head has been checked */
    bool first;            /* of its connection */
    bool admitted;         /* and nothing was wrong with it */
    const char *complaint; /* why the request is refused; NULL: it is not */
    const char *target_end;
    const struct call *route;
    bool strict; /* of /v1 */
    struct admin_caller caller;
    uint64_t admitted_at; /* of a long answer, in milliseconds: when it last had the right to it */
    char *audit_path;     /* NULL: the log of errors */
    bool apart;           /* its page is or was made apart */
    bool made;            /* and has not been sent */
    struct page page;
    char *body;
    size_t length, capacity;
};

/* NULL: no memory. */
static struct MHD_Response *response_of(struct MHD_Connection *connection, struct page *page) {
    if (page->feed.class != NULL)
        return feed_reply_new(connection, &page->feed, page->may_still, page->may_still_arg);
    if (page->source.read != NULL)
        return source_reply_new(connection, &page->source, page->may_still, page->may_still_arg);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(page->length, page->text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        free(page->text);
    return response;
}

static enum MHD_Result send_page(struct MHD_Connection *connection, struct page *page) {
    json_decref(page->error);
    struct MHD_Response *response = response_of(connection, page);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->content_type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    /* What comes from the network stays text, also for who opens an answer in a browser. */
    MHD_add_response_header(response, "Content-Security-Policy",
                            "default-src 'none'; frame-ancestors 'none'; sandbox");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    if (page->download)
        MHD_add_response_header(response, "Content-Disposition", "attachment");
    if (page->allow[0] != '\0')
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, page->allow);
    if (page->repeat)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (page->status == MHD_HTTP_UNAUTHORIZED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                "Bearer realm=\"retort admin\"");
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    enum MHD_Result result = MHD_queue_response(connection, page->status, response);
    MHD_destroy_response(response);
    return result;
}

static const char too_long[] = "the request's body is longer than this request can need";

static bool announces_too_much(struct MHD_Connection *connection, size_t most) {
    uint64_t length;
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    return text != NULL && (!slice_to_uint64(slice_from(text), &length) || length > most);
}

static struct page page_for(struct MHD_Connection *connection) {
    return page_begin(
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
}

static enum MHD_Result admin_refuse(struct MHD_Connection *connection, unsigned status,
                                    const char *reason) {
    struct page page = page_for(connection);
    page_error(&page, status, reason);
    return send_page(connection, &page);
}

static bool keep_body(struct admin_request *request, const char *data, size_t size, size_t most) {
    if (size > most - request->length)
        return false;
    if (size > request->capacity - request->length) {
        request->capacity = (request->length + size) * 2;
        request->body = xrealloc(request->body, request->capacity);
    }
    memcpy(request->body + request->length, data, size);
    request->length += size;
    return true;
}

static const char *find_argument(void *arg, const char *name) {
    return MHD_lookup_connection_value(arg, MHD_GET_ARGUMENT_KIND, name);
}

struct argument_eye {
    page_see_argument *see;
    void *arg;
};

static enum MHD_Result on_argument(void *arg, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
    const struct argument_eye *eye = arg;
    (void)kind;
    return eye->see(eye->arg, name, value == NULL ? "" : value) ? MHD_YES : MHD_NO;
}

static void each_argument(void *arg, page_see_argument *see, void *see_arg) {
    struct argument_eye eye = {see, see_arg};
    MHD_get_connection_values(arg, MHD_GET_ARGUMENT_KIND, on_argument, &eye);
}

void admin_requests_on_connection(void *arg, struct MHD_Connection *connection, void **context,
                                  enum MHD_ConnectionNotificationCode code) {
    struct admin_requests *requests;
    CAST_OBJ(requests, arg, ADMIN_REQUESTS_MAGIC);
    struct admin_connection *known = *context;
    /* Taken at once: libmicrohttpd 1.0 writes what it is asked next to the same place. */
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        known = requests->guard.secure ? admin_connection_take(&requests->connections, fd)
                                       : admin_connection_add(&requests->connections, fd);
    } else if (known != NULL) {
        admin_connection_leave(&requests->connections, &known);
    }
    *context = known;
}

/* libmicrohttpd calls this first for a request, with the target as it was sent. */
void *admin_requests_on_target(void *arg, const char *uri, struct MHD_Connection *connection) {
    struct admin_requests *requests;
    struct admin_request *request;
    struct admin_connection *known = admin_connection_of(connection);
    CAST_OBJ(requests, arg, ADMIN_REQUESTS_MAGIC);
    ALLOC_OBJ(request, ADMIN_REQUEST_MAGIC);
    request->requests = requests;
    request->first = known != NULL && admin_connection_asks(&requests->connections, known);
    request->complaint = strict_target(uri);
    request->target_end = uri + strlen(uri);
    return request;
}

/* libmicrohttpd keeps the bytes of the request line, so a target that ends before the space
 * contains a zero byte. */
static const char *head_fault(const struct admin_request *request,
                              struct MHD_Connection *connection, const char *method,
                              const char *version) {
    if (request->complaint != NULL)
        return request->complaint;
    if (version != request->target_end + 1)
        return "the request line is not METHOD TARGET HTTP/1.1, with a space between";
    return strict_fields(connection, method, version);
}

static bool find_route(struct admin_request *request, const char *method, const char *path,
                       struct page *page) {
    request->route = api_find(method, api_path(path, &request->strict), page->allow);
    if (request->route != NULL)
        return true;
    if (page->allow[0] == '\0')
        page_error(page, MHD_HTTP_NOT_FOUND, "there is no such page; /v1/help lists them");
    else
        page_error(page, MHD_HTTP_METHOD_NOT_ALLOWED,
                   "the page is not for this method; the Allow field lists those that it is for");
    return false;
}

static struct page_request page_request_of(const struct admin_request *request,
                                           struct MHD_Connection *connection) {
    return (struct page_request){
        .method = request->route->method,
        .path = request->route->path,
        .body = slice_make(request->body, request->length),
        .caller = &request->caller,
        .accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept"),
        .argument = find_argument,
        .arguments = each_argument,
        .arg = connection,
    };
}

static void write_audit(struct admin_requests *requests, struct audit *audit,
                        const struct page_request *page_request, const struct page *page) {
    if (page->unchanged) {
        audit_close(audit);
        return;
    }
    const struct audit_entry entry = {page_request, page};
    atomic_fetch_add(&requests->guard.changes, 1);
    if (!audit_write(audit, &entry))
        atomic_fetch_add(&requests->guard.audit_lost, 1);
}

/* A change that the caller's role does not allow is in the audit log too. */
static void note_denied(struct admin_requests *requests, const struct admin_request *request,
                        const struct page_request *page_request, const struct page *page) {
    struct audit audit;
    if (!request->route->changes)
        return;
    if (audit_open(&audit, request->audit_path))
        write_audit(requests, &audit, page_request, page);
    else
        atomic_fetch_add(&requests->guard.audit_lost, 1);
}

/* Who calls, what for, and may he? False: the page says no. */
static bool admin_admits(struct admin_requests *requests, struct admin_request *request,
                         struct MHD_Connection *connection, const char *method, const char *path,
                         const struct settings *settings, struct page *page) {
    struct admin_denial denial;
    if (!admin_guard_admits(&requests->guard, connection, settings, &request->caller, &denial)) {
        page_error(page, denial.status, denial.reason);
        return false;
    }
    admin_connection_admit(&requests->connections, admin_connection_of(connection));
    if (!find_route(request, method, path, page))
        return false;
    const struct page_request asked = page_request_of(request, connection);
    if (admin_guard_allows(&requests->guard, &request->caller, api_role(request->route, &asked),
                           &denial))
        return true;
    page_error(page, denial.status, denial.reason);
    note_denied(requests, request, &asked, page);
    return false;
}

static enum MHD_Result send_web_file(struct admin_requests *requests,
                                     struct MHD_Connection *connection,
                                     const struct web_file *file) {
    struct admin_denial denial;
    if (!admin_guard_shows(&requests->guard, connection, &denial))
        return admin_refuse(connection, denial.status, denial.reason);
    return web_files_send(connection, file);
}

/* Called when the head has arrived and the body has not. Answers unless it admits the request. */
static enum MHD_Result admin_begin(struct admin_requests *requests, struct admin_request *request,
                                   struct MHD_Connection *connection, const char *method,
                                   const char *path, const char *version) {
    struct page page = page_for(connection);
    request->begun = true;
    request->first = admin_connection_asks(&requests->connections, admin_connection_of(connection));
    request->connection = connection;
    request->complaint = head_fault(request, connection, method, version);
    if (request->complaint != NULL)
        return admin_refuse(connection, MHD_HTTP_BAD_REQUEST, request->complaint);
    const struct web_file *file = web_files_find(method, path);
    if (file != NULL)
        return send_web_file(requests, connection, file);
    struct settings *settings = requests->calls.settings(requests->calls.context);
    const char *audit_log = admin_settings_of(settings)->audit_log;
    if (audit_log != NULL)
        request->audit_path = xstrdup(audit_log);
    bool admitted = admin_admits(requests, request, connection, method, path, settings, &page);
    settings_release(&settings);
    if (!admitted)
        return send_page(connection, &page);
    if (announces_too_much(connection, request->route->body_max))
        return admin_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, too_long);
    request->admitted = true;
    return MHD_YES;
}

static void make_page(struct admin_requests *requests, const struct admin_request *request,
                      const struct page_request *asked, struct page *page) {
    if (!api_check(request->route, request->strict, asked, page))
        return;
    if (!request->route->apart)
        pthread_mutex_lock(&requests->lock);
    api_make(request->route, page, &requests->calls, asked);
    if (!request->route->apart)
        pthread_mutex_unlock(&requests->lock);
}

/* The caller may have lost the right to it since the head came: a body takes its time, and so does a
 * feed. */
static bool admits_still(struct admin_request *request, struct admin_denial *denial) {
    struct admin_requests *requests = request->requests;
    const struct page_request asked = page_request_of(request, request->connection);
    struct settings *settings = requests->calls.settings(requests->calls.context);
    bool still = admin_guard_admits(&requests->guard, request->connection, settings,
                                    &request->caller, denial) &&
                 admin_guard_allows(&requests->guard, &request->caller,
                                    api_role(request->route, &asked), denial);
    settings_release(&settings);
    return still;
}

static bool may_still(void *arg) {
    struct admin_request *request;
    struct admin_denial denial;
    CAST_OBJ(request, arg, ADMIN_REQUEST_MAGIC);
    return admits_still(request, &denial);
}

/* Of a long answer, which asks this before each block. */
static bool may_have_block(void *arg) {
    struct admin_request *request;
    struct admin_denial denial;
    CAST_OBJ(request, arg, ADMIN_REQUEST_MAGIC);
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    admin_connection_block(&request->requests->connections,
                           admin_connection_of(request->connection), now);
    if (now - request->admitted_at < LOOK_AGAIN)
        return true;
    request->admitted_at = now;
    return admits_still(request, &denial);
}

/* In a thread of libmicrohttpd, or in one of its own. */
static void admin_make(void *arg) {
    struct admin_request *request;
    struct audit audit;
    CAST_OBJ(request, arg, ADMIN_REQUEST_MAGIC);
    struct admin_requests *requests = request->requests;
    struct page *page = &request->page;
    const struct page_request asked = page_request_of(request, request->connection);
    request->made = true;
    *page = page_for(request->connection);
    page->shown.call = request->route;
    if (!request->route->changes) {
        make_page(requests, request, &asked, page);
    } else if (audit_open(&audit, request->audit_path)) {
        make_page(requests, request, &asked, page);
        write_audit(requests, &audit, &asked, page);
        json_decref(page->asked);
        json_decref(page->changed);
    } else {
        atomic_fetch_add(&requests->guard.audit_lost, 1);
        page_error(page, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "nothing was changed or shown, because admin.audit_log can not be opened: see "
                   "the error log");
    }
}

/* Whoever stops the admin plane need not wait for the request any more. */
static void admin_let_go(struct admin_request *request) {
    if (request->apart)
        apart_ended(&request->requests->apart);
    request->apart = false;
}

/* A feed and a long answer end when they are broken off. */
static enum MHD_Result admin_send(struct admin_requests *requests, struct admin_request *request,
                                  struct MHD_Connection *connection) {
    struct page page = request->page;
    request->made = false;
    if (page.feed.class != NULL || page.source.read != NULL)
        admin_let_go(request);
    if (page.feed.class != NULL) {
        admin_connection_keep(&requests->connections, admin_connection_of(connection));
        page.may_still = may_still;
        page.may_still_arg = request;
    } else if (page.source.read != NULL) {
        request->admitted_at = clocks_milliseconds(CLOCK_MONOTONIC);
        page.may_still = may_have_block;
        page.may_still_arg = request;
    }
    return send_page(connection, &page);
}

/* libmicrohttpd calls again when a page that is made apart is made. */
static enum MHD_Result admin_answer(struct admin_requests *requests, struct admin_request *request,
                                    struct MHD_Connection *connection) {
    struct admin_denial denial;
    if (request->made)
        return admin_send(requests, request, connection);
    if (request->length > 0 && !admits_still(request, &denial))
        return admin_refuse(connection, denial.status, denial.reason);
    if (!request->route->apart) {
        admin_make(request);
        return admin_send(requests, request, connection);
    }
    request->apart = (request->first || !atomic_load(&requests->ending)) &&
                     apart_begin(&requests->apart, connection, admin_make, request);
    if (!request->apart)
        return admin_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "retort is stopping, or can't start a thread: nothing was done");
    return MHD_YES;
}

/* Of a page whose client has gone meanwhile. */
static void drop_page(struct page *page) {
    json_decref(page->error);
    if (page->feed.class != NULL)
        page->feed.class->release(page->feed.arg);
    else if (page->source.read != NULL)
        page->source.release(page->source.arg);
    else
        free(page->text);
}

enum MHD_Result admin_requests_on_data(void *arg, struct MHD_Connection *connection,
                                       const char *path, const char *method, const char *version,
                                       const char *data, size_t *data_size, void **state) {
    struct admin_requests *requests;
    struct admin_request *request;
    CAST_OBJ(requests, arg, ADMIN_REQUESTS_MAGIC);
    CAST_OBJ(request, *state, ADMIN_REQUEST_MAGIC);
    if (admin_connection_of(connection) == NULL) /* the client has gone */
        return MHD_NO;
    if (!request->begun || *data_size == 0)
        admin_connection_used(&requests->connections, admin_connection_of(connection));
    if (!request->begun)
        return admin_begin(requests, request, connection, method, path, version);
    if (!request->admitted) /* a daemon that is being stopped drops the answer, and goes on */
        return MHD_NO;
    if (*data_size > 0) {
        size_t size = *data_size;
        *data_size = 0;
        if (request->complaint == NULL && !keep_body(request, data, size, request->route->body_max))
            request->complaint = too_long;
        return MHD_YES;
    }
    if (request->complaint != NULL)
        return admin_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, request->complaint);
    return admin_answer(requests, request, connection);
}

void admin_requests_on_end(void *arg, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code) {
    struct admin_request *request = *state;
    struct admin_connection *known = admin_connection_of(connection);
    (void)arg;
    (void)code;
    if (request == NULL)
        return;
    CHECK_OBJ(request, ADMIN_REQUEST_MAGIC);
    if (known != NULL)
        admin_connection_answered(&request->requests->connections, known);
    if (request->made)
        drop_page(&request->page);
    admin_let_go(request);
    free(request->audit_path);
    free(request->body);
    FREE_OBJ(request);
    *state = NULL;
}

void admin_requests_init(struct admin_requests *requests, const struct settings *settings,
                         const struct admin_calls *calls) {
    *requests = (struct admin_requests){.magic = ADMIN_REQUESTS_MAGIC, .calls = *calls};
    requests->calls.guard = &requests->guard;
    requests->calls.connections = &requests->connections;
    admin_connections_init(&requests->connections);
    admin_guard_init(&requests->guard, settings);
    pthread_mutex_init(&requests->lock, NULL);
    apart_init(&requests->apart);
}

void admin_requests_release(struct admin_requests *requests) {
    admin_connections_release(&requests->connections);
    admin_guard_release(&requests->guard);
    apart_release(&requests->apart);
    pthread_mutex_destroy(&requests->lock);
}
