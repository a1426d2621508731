#include "admin/admin.h"

#include "admin/apart.h"
#include "admin/api.h"
#include "admin/audit.h"
#include "admin/connections.h"
#include "admin/feed_reply.h"
#include "admin/guard.h"
#include "admin/helper_numbers.h"
#include "admin/page.h"
#include "admin/part_pages.h"
#include "admin/sampler.h"
#include "admin/settings.h"
#include "admin/source_reply.h"
#include "admin/strict.h"
#include "admin/terminator.h"
#include "admin/web_files.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "net/listener.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ADMIN_CONNECTIONS = 2 * ADMIN_CONNECTIONS_MOST, /* includes connections that are closing */
    ADMIN_TIMEOUT_SECONDS = 15,
    ADMIN_MEMORY = 16 << 10, /* memory of a connection; it limits the head of a request */
    ADMIN_BACKLOG = 128,
    ADMIN_THREADS = 4,
    ADMIN_LOOK_AGAIN = 2000,  /* milliseconds until a long answer needs the right to it again */
    ADMIN_LAST_FEEDS = 500,   /* milliseconds for readers of feeds to read the end */
    ADMIN_LAST_ANSWERS = 500, /* and for those who wait for pages that are made apart, or by TLS */
};

struct admin {
    unsigned magic;
#define ADMIN_MAGIC 0x41444d4eu
    struct admin_calls calls;
    struct MHD_Daemon *daemon;     /* NULL: there is no admin plane */
    struct terminator *terminator; /* NULL: clear text, or no admin plane */
    int socket;                    /* that listens; -1: none, or it was given away */
    struct admin_connections connections;
    struct admin_guard guard;
    struct sampler *sampler; /* NULL: there is no admin plane */
    pthread_mutex_t lock;    /* all pages but those that are made apart are made one at a time */
    struct apart apart;
    char *path; /* path of the Unix socket while it belongs to this process */
    dev_t device;
    ino_t inode;
};

/* One request, between libmicrohttpd's calls about it. */
struct admin_request {
    unsigned magic;
#define ADMIN_REQUEST_MAGIC 0x41525153u
    struct admin *admin;
    struct MHD_Connection *connection;
    bool begun;            /* the head has been checked */
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

/* Answering. */

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

static void admin_on_connection(void *arg, struct MHD_Connection *connection, void **context,
                                enum MHD_ConnectionNotificationCode code) {
    struct admin *admin;
    CAST_OBJ(admin, arg, ADMIN_MAGIC);
    struct admin_connection *known = *context;
    /* Taken at once: libmicrohttpd 1.0 writes what it is asked next to the same place. */
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        known = admin->guard.secure ? admin_connection_take(&admin->connections, fd)
                                    : admin_connection_add(&admin->connections, fd);
    } else if (known != NULL) {
        admin_connection_leave(&admin->connections, &known);
    }
    *context = known;
}

/* libmicrohttpd calls this first for a request, with the target as it was sent. */
static void *on_target(void *arg, const char *uri, struct MHD_Connection *connection) {
    struct admin_request *request;
    (void)arg;
    (void)connection;
    ALLOC_OBJ(request, ADMIN_REQUEST_MAGIC);
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

static void write_audit(struct admin *admin, struct audit *audit,
                        const struct page_request *page_request, const struct page *page) {
    if (page->unchanged) {
        audit_close(audit);
        return;
    }
    const struct audit_entry entry = {page_request, page};
    atomic_fetch_add(&admin->guard.changes, 1);
    if (!audit_write(audit, &entry))
        atomic_fetch_add(&admin->guard.audit_lost, 1);
}

/* A change that the caller's role does not allow is in the audit log too. */
static void note_denied(struct admin *admin, const struct admin_request *request,
                        const struct page_request *page_request, const struct page *page) {
    struct audit audit;
    if (!request->route->changes)
        return;
    if (audit_open(&audit, request->audit_path))
        write_audit(admin, &audit, page_request, page);
    else
        atomic_fetch_add(&admin->guard.audit_lost, 1);
}

/* Who calls, what for, and may he? False: the page says no. */
static bool admin_admits(struct admin *admin, struct admin_request *request,
                         struct MHD_Connection *connection, const char *method, const char *path,
                         const struct settings *settings, struct page *page) {
    struct admin_denial denial;
    if (!admin_guard_admits(&admin->guard, connection, settings, &request->caller, &denial)) {
        page_error(page, denial.status, denial.reason);
        return false;
    }
    admin_connection_admit(&admin->connections, admin_connection_of(connection));
    if (!find_route(request, method, path, page))
        return false;
    const struct page_request asked = page_request_of(request, connection);
    if (admin_guard_allows(&admin->guard, &request->caller, api_role(request->route, &asked),
                           &denial))
        return true;
    page_error(page, denial.status, denial.reason);
    note_denied(admin, request, &asked, page);
    return false;
}

static enum MHD_Result send_web_file(struct admin *admin, struct MHD_Connection *connection,
                                     const struct web_file *file) {
    struct admin_denial denial;
    if (!admin_guard_shows(&admin->guard, connection, &denial))
        return admin_refuse(connection, denial.status, denial.reason);
    return web_files_send(connection, file);
}

/* Called when the head has arrived and the body has not. Answers unless it admits the request. */
static enum MHD_Result admin_begin(struct admin *admin, struct admin_request *request,
                                   struct MHD_Connection *connection, const char *method,
                                   const char *path, const char *version) {
    struct page page = page_for(connection);
    request->begun = true;
    request->admin = admin;
    request->connection = connection;
    request->complaint = head_fault(request, connection, method, version);
    if (request->complaint != NULL)
        return admin_refuse(connection, MHD_HTTP_BAD_REQUEST, request->complaint);
    const struct web_file *file = web_files_find(method, path);
    if (file != NULL)
        return send_web_file(admin, connection, file);
    struct settings *settings = admin->calls.settings(admin->calls.context);
    const char *audit_log = admin_settings_of(settings)->audit_log;
    if (audit_log != NULL)
        request->audit_path = xstrdup(audit_log);
    bool admitted = admin_admits(admin, request, connection, method, path, settings, &page);
    settings_release(&settings);
    if (!admitted)
        return send_page(connection, &page);
    if (announces_too_much(connection, request->route->body_max))
        return admin_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, too_long);
    request->admitted = true;
    return MHD_YES;
}

static void make_page(struct admin *admin, const struct admin_request *request,
                      const struct page_request *asked, struct page *page) {
    if (!api_check(request->route, request->strict, asked, page))
        return;
    if (!request->route->apart)
        pthread_mutex_lock(&admin->lock);
    api_make(request->route, page, &admin->calls, asked);
    if (!request->route->apart)
        pthread_mutex_unlock(&admin->lock);
}

/* The caller may have lost the right to it since the head came: a body takes its time, and so does a
 * feed. */
static bool admits_still(struct admin_request *request, struct admin_denial *denial) {
    struct admin *admin = request->admin;
    const struct page_request asked = page_request_of(request, request->connection);
    struct settings *settings = admin->calls.settings(admin->calls.context);
    bool still = admin_guard_admits(&admin->guard, request->connection, settings, &request->caller,
                                    denial) &&
                 admin_guard_allows(&admin->guard, &request->caller,
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
    admin_connection_block(&request->admin->connections, admin_connection_of(request->connection),
                           now);
    if (now - request->admitted_at < ADMIN_LOOK_AGAIN)
        return true;
    request->admitted_at = now;
    return admits_still(request, &denial);
}

/* In a thread of libmicrohttpd, or in one of its own. */
static void admin_make(void *arg) {
    struct admin_request *request;
    struct audit audit;
    CAST_OBJ(request, arg, ADMIN_REQUEST_MAGIC);
    struct admin *admin = request->admin;
    struct page *page = &request->page;
    const struct page_request asked = page_request_of(request, request->connection);
    request->made = true;
    *page = page_for(request->connection);
    page->shown.call = request->route;
    if (!request->route->changes) {
        make_page(admin, request, &asked, page);
    } else if (audit_open(&audit, request->audit_path)) {
        make_page(admin, request, &asked, page);
        write_audit(admin, &audit, &asked, page);
        json_decref(page->asked);
        json_decref(page->changed);
    } else {
        atomic_fetch_add(&admin->guard.audit_lost, 1);
        page_error(page, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "nothing was changed or shown, because admin.audit_log can not be opened: see "
                   "the error log");
    }
}

/* Whoever stops the admin plane need not wait for the request any more. */
static void admin_let_go(struct admin_request *request) {
    if (request->apart)
        apart_ended(&request->admin->apart);
    request->apart = false;
}

/* A feed and a long answer end when they are broken off. */
static enum MHD_Result admin_send(struct admin *admin, struct admin_request *request,
                                  struct MHD_Connection *connection) {
    struct page page = request->page;
    request->made = false;
    if (page.feed.class != NULL || page.source.read != NULL)
        admin_let_go(request);
    if (page.feed.class != NULL) {
        admin_connection_keep(&admin->connections, admin_connection_of(connection));
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
static enum MHD_Result admin_answer(struct admin *admin, struct admin_request *request,
                                    struct MHD_Connection *connection) {
    struct admin_denial denial;
    if (request->made)
        return admin_send(admin, request, connection);
    if (request->length > 0 && !admits_still(request, &denial))
        return admin_refuse(connection, denial.status, denial.reason);
    if (!request->route->apart) {
        admin_make(request);
        return admin_send(admin, request, connection);
    }
    request->apart = apart_begin(&admin->apart, connection, admin_make, request);
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

static enum MHD_Result admin_on_request(void *arg, struct MHD_Connection *connection,
                                        const char *path, const char *method, const char *version,
                                        const char *data, size_t *data_size, void **state) {
    struct admin *admin;
    struct admin_request *request;
    CAST_OBJ(admin, arg, ADMIN_MAGIC);
    CAST_OBJ(request, *state, ADMIN_REQUEST_MAGIC);
    if (admin_connection_of(connection) == NULL) /* the client has gone */
        return MHD_NO;
    if (!request->begun || *data_size == 0)
        admin_connection_used(&admin->connections, admin_connection_of(connection));
    if (!request->begun)
        return admin_begin(admin, request, connection, method, path, version);
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
    return admin_answer(admin, request, connection);
}

static void on_request_end(void *arg, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code) {
    struct admin_request *request = *state;
    (void)arg;
    (void)connection;
    (void)code;
    if (request == NULL)
        return;
    CHECK_OBJ(request, ADMIN_REQUEST_MAGIC);
    if (request->made)
        drop_page(&request->page);
    admin_let_go(request);
    free(request->audit_path);
    free(request->body);
    FREE_OBJ(request);
    *state = NULL;
}

/* libmicrohttpd's own messages, without their newline. */
static void on_complaint(void *arg, const char *format, va_list arguments) {
    char message[400];
    (void)arg;
    vsnprintf(message, sizeof message, format, arguments);
    message[strcspn(message, "\n")] = '\0';
    log_debug("admin: %s", message);
}

/* The socket. */

/* Checks what is at the path. Returns true for nothing, and for a socket without a server, which
 * is removed. Returns false for anything else, which must not be touched. */
static bool admin_make_room(const struct address *address, char *error) {
    struct stat status;
    const char *path = address->local.sun_path;
    if (lstat(path, &status) != 0)
        return true; /* bind reports any reason other than absence */
    if (!S_ISSOCK(status.st_mode)) {
        snprintf(error, SETTINGS_ERROR, "admin.listen: %s exists and is not a socket", path);
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = fd >= 0 && connect(fd, &address->any, address->length) != 0;
    int reason = refused ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (reason != ECONNREFUSED) {
        snprintf(error, SETTINGS_ERROR, "admin.listen: %s %s, or choose another path", path,
                 reason == EACCES
                     ? "belongs to another user: remove it if no retort of that user is running"
                     : "is in use: another retort seems to be running; stop it");
        return false;
    }
    unlink(path);
    return true;
}

bool admin_possible(const struct settings *settings, char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    struct stat status;
    const char *path = admin_settings_of(settings)->listen;
    char reason[LISTENER_ERROR];
    if (path == NULL)
        return true;
    if (path[0] != '/') {
        bool possible = listener_possible(&admin_settings_of(settings)->address, reason);
        snprintf(error, SETTINGS_ERROR, "admin.listen: %s", reason);
        return possible;
    }
    if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
        findings_add(&findings, "admin.listen: %s exists and is not a socket", path);
    else
        findings_of_directory(&findings, "admin.listen", path);
    if (findings.count > 0)
        snprintf(error, SETTINGS_ERROR, "%s", findings.text[0]);
    return findings.count == 0;
}

static int listen_at(const struct address *address, char *error) {
    char text[ADDRESS_TEXT];
    int one = 1, fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool local = address->any.sa_family == AF_UNIX;
    if (fd >= 0 && !local)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    mode_t mask = local ? umask(0177) : 0; /* mode 0600 from the first moment on */
    bool good = fd >= 0 && bind(fd, &address->any, address->length) == 0;
    int reason = errno;
    if (local)
        umask(mask);
    if (good && listen(fd, ADMIN_BACKLOG) == 0)
        return fd;
    reason = good ? errno : reason;
    address_format(address, text);
    snprintf(error, SETTINGS_ERROR, "admin.listen: %s can not be used: %s%s", text,
             strerror(reason),
             local ? "; create its directory, and let retort's user write to it" : "");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Remembers which file belongs to us, so that the file of a successor is not removed at the end. */
static void remember_path(struct admin *admin, const struct address *address) {
    struct stat status;
    if (stat(address->local.sun_path, &status) != 0)
        return;
    admin->path = xstrdup(address->local.sun_path);
    admin->device = status.st_dev;
    admin->inode = status.st_ino;
}

static void remove_path(struct admin *admin) {
    struct stat status;
    if (admin->path != NULL && lstat(admin->path, &status) == 0 && status.st_dev == admin->device &&
        status.st_ino == admin->inode)
        unlink(admin->path);
    free(admin->path);
}

/* With TLS the terminator listens. The threads inherit a mask that leaves all signals to the main
 * thread. */
static struct MHD_Daemon *start_daemon(struct admin *admin) {
    sigset_t all, before;
    const struct MHD_OptionItem listens[] = {
        {admin->guard.secure ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, admin->socket, NULL},
        {MHD_OPTION_END, 0, NULL}};
    const unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    struct MHD_Daemon *started = MHD_start_daemon(
        flags | (admin->guard.secure ? MHD_USE_NO_LISTEN_SOCKET : 0), 0, NULL, NULL,
        admin_on_request, admin, MHD_OPTION_EXTERNAL_LOGGER, on_complaint, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)ADMIN_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)ADMIN_TIMEOUT_SECONDS, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)ADMIN_THREADS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)ADMIN_MEMORY, MHD_OPTION_NOTIFY_COMPLETED,
        on_request_end, NULL, MHD_OPTION_NOTIFY_CONNECTION, admin_on_connection, admin,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, listens, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void admin_release(struct admin *admin) {
    sampler_stop(&admin->sampler);
    helper_numbers_free(&admin->calls.helpers);
    admin_connections_release(&admin->connections);
    admin_guard_release(&admin->guard);
    apart_release(&admin->apart);
    pthread_mutex_destroy(&admin->lock);
    FREE_OBJ(admin);
}

static bool start_threads(struct admin *admin, const struct settings *settings) {
    const struct admin_settings *mine = admin_settings_of(settings);
    uint64_t step = mine->history_step;
    admin->sampler = sampler_start(&admin->calls, &admin->lock, step);
    if (admin->sampler == NULL)
        return false;
    admin->calls.history = sampler_history(admin->sampler);
    admin->calls.history_step = step;
    admin->daemon = start_daemon(admin);
    if (admin->daemon == NULL || !admin->guard.secure)
        return admin->daemon != NULL;
    admin->terminator =
        terminator_start(admin->daemon, &admin->calls, &mine->address, admin->socket);
    return admin->terminator != NULL;
}

struct admin *admin_start(const struct settings *settings, const struct admin_calls *calls,
                          int inherited, char error[SETTINGS_ERROR]) {
    struct admin *admin;
    const struct address *address = &admin_settings_of(settings)->address;
    ALLOC_OBJ(admin, ADMIN_MAGIC);
    admin->calls = *calls;
    admin->calls.guard = &admin->guard;
    admin->calls.helpers = helper_numbers_new();
    admin->calls.connections = &admin->connections;
    admin_connections_init(&admin->connections);
    admin_guard_init(&admin->guard, settings);
    pthread_mutex_init(&admin->lock, NULL);
    apart_init(&admin->apart);
    admin->socket = -1;
    if (admin_settings_of(settings)->listen == NULL)
        return admin;
    int fd = inherited;
    if (fd < 0 && (!admin->guard.local || admin_make_room(address, error)))
        fd = listen_at(address, error);
    if (fd < 0) {
        admin_release(admin);
        return NULL;
    }
    admin->socket = fd;
    if (admin->guard.local && inherited < 0)
        remember_path(admin, address);
    if (!start_threads(admin, settings)) {
        snprintf(error, SETTINGS_ERROR, "admin.listen: its threads can not be started: %s",
                 strerror(errno));
        if (admin->daemon != NULL)
            MHD_stop_daemon(admin->daemon);
        close(fd);
        remove_path(admin);
        admin_release(admin);
        return NULL;
    }
    return admin;
}

int admin_socket(const struct admin *admin) {
    CHECK_OBJ(admin, ADMIN_MAGIC);
    return admin->socket;
}

void admin_own_file(struct admin *admin, const struct settings *settings) {
    CHECK_OBJ(admin, ADMIN_MAGIC);
    if (admin->guard.local && admin->path == NULL)
        remember_path(admin, &admin_settings_of(settings)->address);
}

/* MHD_stop_daemon would shut the socket down, also for other processes that have it. Returns the
 * socket, which is the caller's from now on, or -1. */
static int stop_accepting(struct admin *admin) {
    int fd = admin->socket;
    admin->socket = -1;
    if (fd >= 0 && admin->terminator != NULL)
        terminator_quiet(admin->terminator);
    else if (fd >= 0)
        MHD_quiesce_daemon(admin->daemon);
    return fd;
}

static void admin_close_socket(int fd) {
    if (fd >= 0)
        close(fd);
}

static void admin_end_feeds(struct admin *admin, unsigned patience) {
    PAGES_FOR_EACH (number, end_feeds)
        if (admin->calls.parts != NULL)
            part_pages_table[number]->end_feeds(admin->calls.parts[number], patience);
}

void admin_give_away(struct admin *admin) {
    CHECK_OBJ(admin, ADMIN_MAGIC);
    free(admin->path);
    admin->path = NULL;
    admin_close_socket(stop_accepting(admin));
    admin_end_feeds(admin, 0);
}

void admin_stop(struct admin **adminp) {
    struct admin *admin = *adminp;
    *adminp = NULL;
    if (admin == NULL)
        return;
    CHECK_OBJ(admin, ADMIN_MAGIC);
    /* The path is removed first, because a successor may use it from now on. */
    remove_path(admin);
    int fd = stop_accepting(admin);
    apart_stop(&admin->apart, ADMIN_LAST_ANSWERS);
    /* Also because no connection may be suspended below. */
    admin_end_feeds(admin, ADMIN_LAST_FEEDS);
    if (admin->terminator != NULL)
        terminator_detach(admin->terminator);
    if (admin->daemon != NULL)
        MHD_stop_daemon(admin->daemon);
    terminator_stop(&admin->terminator, ADMIN_LAST_ANSWERS);
    admin_close_socket(fd); /* its threads may have been using the number until they ended */
    admin_release(admin);
}
