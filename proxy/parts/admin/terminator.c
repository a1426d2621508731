#include "admin/terminator.h"

#include "admin/connections.h"
#include "admin/guard.h"
#include "base/assert.h"
#include "base/threads.h"
#include "event/mailbox.h"
#include "net/listener.h"
#include "transaction/relay.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* In milliseconds: how long an alert has to reach the client; and a relay has no limit of its own. */
enum { LINGER_TIME = 1000, RELAY_IDLE = 1 << 30 };
/* In bytes: what is read away after a failure, and what waits in each socket of a pair. */
enum { LINGER_BYTES = 64 * 1024, PAIR_ROOM = 64 * 1024 };

struct terminator {
    unsigned magic;
#define TERMINATOR_MAGIC 0x7e4317a0u
    pthread_mutex_t lock;
    struct MHD_Daemon *daemon; /* under the lock; NULL: it stops */
    struct admin_calls calls;
    struct thread thread;
    struct loop loop;
    struct mailbox mailbox;
    struct message quiet, stop;
    struct net_context net;
    struct listener *listener; /* NULL: it accepts no more */
    struct list_link sessions;
    struct admin_tls *tls;     /* the latest */
    struct tls_server *server; /* of it */
    unsigned served;           /* connections so far */
    _Atomic bool is_quiet;
    bool stops;
    uint64_t patience; /* milliseconds, for what is sent when it stops */
    struct timer end;
};

enum session_state {
    SESSION_SILENT, /* no byte has come */
    SESSION_HANDSHAKE,
    SESSION_LINGERING, /* the handshake has failed; what still comes is read away */
    SESSION_OPEN
};

/* The connection of a client. */
struct session {
    unsigned magic;
#define SESSION_MAGIC 0x5e5510a0u
    enum session_state state;
    struct terminator *terminator;
    struct list_link link;
    struct admin_connection *known;
    struct connection *client; /* NULL: the relay has it */
    struct admin_tls *tls;     /* of the handshake */
    struct timer timer;
    size_t lingered;     /* bytes */
    struct relay *relay; /* NULL: not open */
    struct task task;    /* the relay is over */
    uint64_t relayed;    /* to the client, when the timer ran last */
};

static void session_free(struct session *session) {
    struct terminator *terminator = session->terminator;
    list_remove(&session->link);
    timer_cancel(&terminator->loop.timers, &session->timer);
    task_cancel(&session->task);
    relay_free(&session->relay);
    connection_close(&session->client);
    admin_connection_leave(terminator->calls.connections, &session->known);
    admin_tls_release(&session->tls);
    FREE_OBJ(session);
}

static void session_note(const struct session *session, enum admin_handshake end,
                         const char *reason) {
    admin_connection_note(session->terminator->calls.connections, session->known, end, reason);
}

/* Closing a socket with unread bytes would reset the connection before the client has seen our
 * alert. */
static void terminator_linger(struct session *session) {
    char scrap[4096];
    size_t got;
    while (session->client->readable) {
        enum io_status status = connection_read(session->client, scrap, sizeof scrap, &got);
        session->lingered += got;
        if (status == IO_WAIT)
            return;
        if (status != IO_DONE || session->lingered > LINGER_BYTES) {
            session_free(session);
            return;
        }
    }
}

/* What follows on the connection is clear text that nobody reads. */
static void session_turn_away(struct session *session) {
    tls_stream_free(&session->client->tls);
    connection_shutdown(session->client);
    session->state = SESSION_LINGERING;
    loop_timer_after(&session->terminator->loop, &session->timer, LINGER_TIME);
    terminator_linger(session);
}

static void answer_clear_text(struct session *session) {
    static const char body[] = "{\"error\": \"the admin plane speaks TLS at this address: write "
                               "https:// in place of http://\"}\n";
    char answer[512];
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          sizeof body - 1, body);
    struct iovec piece = {answer, (size_t)length};
    size_t put;
    session_note(session, ADMIN_HANDSHAKE_CLEAR_TEXT, NULL);
    connection_write(session->client, &piece, 1, &put);
    session_turn_away(session);
}

/* The handshake has failed. */
static void session_fail(struct session *session) {
    const struct tls_stream *stream = session->client->tls;
    enum tls_failure failure = stream != NULL ? tls_stream_failure(stream) : TLS_FAILURE_OTHER;
    const char *distrust = NULL;
    if (failure == TLS_FAILURE_CLOSED) {
        session_note(session, ADMIN_HANDSHAKE_LATE, NULL);
        session_free(session);
        return;
    }
    if (failure == TLS_FAILURE_CERTIFICATE)
        distrust = tls_stream_distrust(stream);
    if (distrust == NULL)
        distrust = "it showed no certificate, which admin.client_certificate = required demands";
    session_note(session,
                 failure == TLS_FAILURE_CERTIFICATE ? ADMIN_HANDSHAKE_CERTIFICATE
                                                    : ADMIN_HANDSHAKE_OTHER,
                 distrust);
    session_turn_away(session);
}

static void session_on_over(struct task *task) {
    struct session *session = CONTAINER_OF(task, struct session, task);
    CHECK_OBJ(session, SESSION_MAGIC);
    session_note(session, ADMIN_HANDSHAKE_DONE, NULL);
    session_free(session);
}

/* libmicrohttpd has four threads, and chooses one by the number of the descriptor. Connections that
 * come one after another are to be in different ones: a page that waits keeps the others waiting. */
static void spread_over_threads(struct terminator *terminator, int *fd) {
    enum { THREADS = 4 };
    int wish = *fd / THREADS * THREADS + THREADS + (int)(terminator->served++ % THREADS);
    int other = fcntl(*fd, F_DUPFD_CLOEXEC, wish);
    if (other < 0)
        return;
    close(*fd);
    *fd = other;
}

/* libmicrohttpd gets one socket of a pair, with what is known of the client, and closes it in any
 * case. */
static void session_serve(struct session *session, int pair[2]) {
    const struct sockaddr address = {.sa_family = AF_UNIX};
    struct terminator *terminator = session->terminator;
    struct shown_certificate *shown = tls_stream_shown(session->client->tls);
    const int room = PAIR_ROOM;
    spread_over_threads(terminator, &pair[1]);
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    admin_connection_serve(terminator->calls.connections, session->known, pair[1], session->tls,
                           &shown);
    pthread_mutex_lock(&terminator->lock);
    if (terminator->daemon != NULL)
        MHD_add_connection(terminator->daemon, pair[1], &address, sizeof address);
    else
        close(pair[1]);
    pthread_mutex_unlock(&terminator->lock);
}

/* The handshake is complete. */
static void session_open(struct session *session) {
    struct terminator *terminator = session->terminator;
    struct pace *const paces[2] = {NULL, NULL};
    struct net_buffer *ahead = NULL;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        session_on_over(&session->task);
        return;
    }
    session_serve(session, pair);
    struct connection *clear = connection_adopt(&terminator->net, &pair[0], NULL, NULL);
    struct duplex *const sides[2] = {connection_duplex_new(&session->client, &ahead),
                                     connection_duplex_new(&clear, &ahead)};
    session->state = SESSION_OPEN;
    loop_timer_after(&terminator->loop, &session->timer, TERMINATOR_PATIENCE);
    session->relay =
        relay_new(&terminator->net, sides, NULL, paces, RELAY_IDLE, true, &session->task);
}

/* A connection begins under the certificates that count now. */
static void terminator_renew(struct terminator *terminator) {
    struct settings *settings = terminator->calls.settings(terminator->calls.context);
    struct admin_tls *latest = admin_guard_tls(terminator->calls.guard, settings);
    settings_release(&settings);
    if (latest != terminator->tls) {
        tls_server_release(&terminator->server);
        admin_tls_release(&terminator->tls);
        terminator->tls = admin_tls_reference(latest);
        terminator->server = admin_tls_server(latest);
    }
    admin_tls_release(&latest);
}

/* Looks at the first byte. False: there is none yet, or the session has ended. */
static bool session_begin(struct session *session) {
    char first;
    switch (connection_peek(session->client, &first)) {
    case IO_DONE: break;
    case IO_WAIT: return false;
    default:
        session_note(session, ADMIN_HANDSHAKE_LATE, NULL);
        session_free(session);
        return false;
    }
    if (first >= 'A' && first <= 'Z') {
        answer_clear_text(session);
        return false;
    }
    terminator_renew(session->terminator);
    session->tls = admin_tls_reference(session->terminator->tls);
    session->state = SESSION_HANDSHAKE;
    return true;
}

static void session_go_on(struct session *session) {
    if (session->state == SESSION_SILENT && !session_begin(session))
        return;
    switch (connection_accept_secure(session->client, session->terminator->server, SLICE(""))) {
    case IO_DONE: session_open(session); return;
    case IO_WAIT: return;
    default: session_fail(session);
    }
}

static void terminator_on_ready(struct connection *client) {
    struct session *session;
    CAST_OBJ(session, client->event.owner, SESSION_MAGIC);
    if (session->state == SESSION_LINGERING)
        terminator_linger(session);
    else
        session_go_on(session);
}

/* libmicrohttpd has closed its end, and the client has taken nothing since the timer ran last. */
static bool session_is_stuck(struct session *session) {
    uint64_t before = session->relayed;
    session->relayed = session->relay->bytes[1];
    return session->relayed == before &&
           !admin_connection_is_served(session->terminator->calls.connections, session->known);
}

static void session_on_timeout(struct timer *timer) {
    struct session *session = CONTAINER_OF(timer, struct session, timer);
    CHECK_OBJ(session, SESSION_MAGIC);
    if (session->state != SESSION_OPEN) {
        if (session->state != SESSION_LINGERING)
            session_note(session, ADMIN_HANDSHAKE_LATE, NULL);
        session_free(session);
        return;
    }
    if (session_is_stuck(session)) {
        if (!session->relay->ways[1].ended) /* else the kernel has all of it, and goes on */
            duplex_abort(session->relay->sides[0]);
        session_on_over(&session->task);
        return;
    }
    loop_timer_after(&session->terminator->loop, &session->timer, TERMINATOR_PATIENCE);
}

static void terminator_on_accept(struct listener *listener, int fd, const struct address *client,
                                 void *arg) {
    struct terminator *terminator;
    struct session *session;
    (void)listener;
    (void)client;
    CAST_OBJ(terminator, arg, TERMINATOR_MAGIC);
    ALLOC_OBJ(session, SESSION_MAGIC);
    session->terminator = terminator;
    session->known = admin_connection_add(terminator->calls.connections, fd);
    session->client = connection_adopt(&terminator->net, &fd, terminator_on_ready, session);
    list_append(&terminator->sessions, &session->link);
    task_init(&session->task, session_on_over);
    timer_init(&session->timer, session_on_timeout);
    loop_timer_after(&terminator->loop, &session->timer, TERMINATOR_PATIENCE);
    if (connection_watch(session->client))
        session_go_on(session);
    else
        session_free(session);
}

static void terminator_on_quiet(struct message *message) {
    struct terminator *terminator = CONTAINER_OF(message, struct terminator, quiet);
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    listener_close(&terminator->listener);
    atomic_store(&terminator->is_quiet, true);
}

static void terminator_on_end(struct timer *timer) {
    struct terminator *terminator = CONTAINER_OF(timer, struct terminator, end);
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    while (!list_empty(&terminator->sessions))
        session_free(CONTAINER_OF(terminator->sessions.next, struct session, link));
}

static void terminator_on_stop(struct message *message) {
    struct terminator *terminator = CONTAINER_OF(message, struct terminator, stop);
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    listener_close(&terminator->listener);
    loop_timer_after(&terminator->loop, &terminator->end, terminator->patience);
    terminator->stops = true;
}

/* Has every client what it was answered? */
static bool terminator_is_over(struct terminator *terminator) {
    LIST_FOR_EACH_SAFE (link, next, &terminator->sessions) {
        struct session *session = CONTAINER_OF(link, struct session, link);
        if (session->relay == NULL || session->relay->ways[1].ended)
            session_free(session);
    }
    return list_empty(&terminator->sessions);
}

static void terminator_run(void *arg) {
    struct terminator *terminator;
    CAST_OBJ(terminator, arg, TERMINATOR_MAGIC);
    do
        loop_run_once(&terminator->loop);
    while (!terminator->stops || !terminator_is_over(terminator));
}

static void terminator_release(struct terminator *terminator) {
    listener_close(&terminator->listener);
    timer_cancel(&terminator->loop.timers, &terminator->end);
    tls_server_release(&terminator->server);
    admin_tls_release(&terminator->tls);
    net_context_release(&terminator->net);
    mailbox_release(&terminator->mailbox);
    loop_release(&terminator->loop);
    pthread_mutex_destroy(&terminator->lock);
    FREE_OBJ(terminator);
}

static bool terminator_listen(struct terminator *terminator, const struct address *address,
                              int socket) {
    char error[LISTENER_ERROR];
    int copy = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    listener_adopt(socket);
    if (copy >= 0)
        terminator->listener =
            listener_open(&terminator->net, address, copy, terminator_on_accept, terminator, error);
    return terminator->listener != NULL;
}

struct terminator *terminator_start(struct MHD_Daemon *daemon, const struct admin_calls *calls,
                                    const struct address *address, int socket) {
    struct terminator *terminator;
    ALLOC_OBJ(terminator, TERMINATOR_MAGIC);
    terminator->daemon = daemon;
    pthread_mutex_init(&terminator->lock, NULL);
    terminator->calls = *calls;
    list_init(&terminator->sessions);
    timer_init(&terminator->end, terminator_on_end);
    terminator->quiet.deliver = terminator_on_quiet;
    terminator->stop.deliver = terminator_on_stop;
    if (!loop_init(&terminator->loop)) {
        FREE_OBJ(terminator);
        return NULL;
    }
    net_context_init(&terminator->net, &terminator->loop);
    if (!mailbox_init(&terminator->mailbox, &terminator->loop)) {
        loop_release(&terminator->loop);
        FREE_OBJ(terminator);
        return NULL;
    }
    if (terminator_listen(terminator, address, socket) &&
        thread_start(&terminator->thread, terminator_run, terminator, "rt-admin-tls"))
        return terminator;
    terminator_release(terminator);
    return NULL;
}

void terminator_quiet(struct terminator *terminator) {
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    mailbox_post(&terminator->mailbox, &terminator->quiet);
}

bool terminator_is_quiet(const struct terminator *terminator) {
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    return atomic_load(&terminator->is_quiet);
}

void terminator_detach(struct terminator *terminator) {
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    pthread_mutex_lock(&terminator->lock);
    terminator->daemon = NULL;
    pthread_mutex_unlock(&terminator->lock);
}

void terminator_stop(struct terminator **terminatorp, unsigned patience) {
    struct terminator *terminator = *terminatorp;
    *terminatorp = NULL;
    if (terminator == NULL)
        return;
    CHECK_OBJ(terminator, TERMINATOR_MAGIC);
    terminator->patience = patience;
    mailbox_post(&terminator->mailbox, &terminator->stop);
    thread_join(&terminator->thread);
    terminator_release(terminator);
}
