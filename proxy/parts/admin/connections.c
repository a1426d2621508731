#include "admin/connections.h"

#include "base/assert.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TELL_AGAIN = 60 };

struct admin_connection {
    unsigned magic;
#define ADMIN_CONNECTION_MAGIC 0x47554553u
    struct list_link link;
    unsigned users;          /* under the lock */
    int fd;                  /* a copy of the client's socket; -1: no descriptor was left */
    int clear;               /* that libmicrohttpd has in its place; -1: none */
    uint64_t client;         /* equal for connections of one client */
    char from[ADDRESS_TEXT]; /* the address */
    struct admin_tls *tls;   /* NULL: clear text, or a handshake that is not complete */
    struct shown_certificate *shown;
    uint64_t deadline; /* for taking a block, in milliseconds; 0: it takes none */
    bool admitted;     /* a request of it was */
    bool asks;         /* a request has begun and not ended */
    bool answered;     /* one has ended */
    bool unlisted;     /* shut down, or kept */
};

void admin_connections_init(struct admin_connections *connections) {
    *connections = (struct admin_connections){0};
    pthread_mutex_init(&connections->lock, NULL);
    list_init(&connections->list);
}

void admin_connections_release(struct admin_connections *connections) {
    pthread_mutex_destroy(&connections->lock);
}

static void admin_connections_tell(struct admin_connections *connections) {
    time_t now = time(NULL);
    if (now - connections->warned_at < TELL_AGAIN)
        return;
    connections->warned_at = now;
    log_warn("admin: more than %d connections are open, so idle ones are closed: find the program "
             "that opens them and does not finish its requests (ss -xp, ss -tp)",
             (int)ADMIN_CONNECTIONS_MOST);
}

/* Under the lock. */
static void unlist(struct admin_connections *connections, struct admin_connection *connection) {
    list_remove(&connection->link);
    connections->count--;
    connection->unlisted = true;
}

static struct admin_connection *connection_at(struct list_link *link) {
    struct admin_connection *connection = CONTAINER_OF(link, struct admin_connection, link);
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    return connection;
}

static unsigned count_like(const struct admin_connections *connections,
                           const struct admin_connection *like) {
    unsigned count = 0;
    LIST_FOR_EACH (link, &connections->list)
        count += !connection_at(link)->admitted && connection_at(link)->client == like->client;
    return count;
}

/* Bytes of a request have come that nobody has looked at: where many connect at once, that may take a
 * while. */
static bool has_unread(const struct admin_connection *connection) {
    int bytes = 0;
    return ioctl(connection->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* Which one the header says. The first of the list has been idle for longest. NULL: all have bytes that
 * are not read yet. */
static struct admin_connection *find_idlest_of(const struct admin_connections *connections,
                                               bool unread) {
    struct admin_connection *found = NULL;
    unsigned most = 0;
    LIST_FOR_EACH (link, &connections->list) {
        struct admin_connection *connection = connection_at(link);
        if (!unread && has_unread(connection))
            continue;
        unsigned count = connection->admitted ? 0 : count_like(connections, connection);
        if (found == NULL || count > most) {
            found = connection;
            most = count;
        }
    }
    return found;
}

static struct admin_connection *find_idlest(const struct admin_connections *connections) {
    struct admin_connection *found = find_idlest_of(connections, false);
    return found != NULL ? found : find_idlest_of(connections, true);
}

static void shut_idlest_down(struct admin_connections *connections) {
    struct admin_connection *idlest = find_idlest(connections);
    unlist(connections, idlest);
    shutdown(idlest->fd, SHUT_RDWR);
    atomic_fetch_add(&connections->closed, 1);
    admin_connections_tell(connections);
}

static uint64_t first_bytes(const void *from, size_t length) {
    uint64_t number = 0;
    memcpy(&number, from, length);
    return number;
}

static void tell_client(struct admin_connection *connection, int fd) {
    struct address address = {.length = sizeof address.local};
    strcpy(connection->from, "unix");
    if (getpeername(fd, &address.any, &address.length) != 0 || address.any.sa_family == AF_UNIX)
        return;
    address_unmap(&address);
    address_format(&address, connection->from);
    if (address.any.sa_family == AF_INET)
        connection->client = first_bytes(&address.v4.sin_addr, sizeof address.v4.sin_addr);
    else
        connection->client = first_bytes(&address.v6.sin6_addr, sizeof(uint64_t));
}

struct admin_connection *admin_connection_add(struct admin_connections *connections, int fd) {
    struct admin_connection *connection;
    ALLOC_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    connection->users = 1;
    connection->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    connection->clear = -1;
    tell_client(connection, fd);
    pthread_mutex_lock(&connections->lock);
    if (connections->count == ADMIN_CONNECTIONS_MOST)
        shut_idlest_down(connections);
    list_append(&connections->list, &connection->link);
    connections->count++;
    pthread_mutex_unlock(&connections->lock);
    return connection;
}

/* NULL: there is none. Under the lock. */
static struct admin_connection *find_clear(const struct admin_connections *connections, int clear) {
    LIST_FOR_EACH (link, &connections->list)
        if (connection_at(link)->clear == clear)
            return connection_at(link);
    return NULL;
}

/* libmicrohttpd closes an end that it has no place for, and says nothing. So another connection may
 * still have the number. */
void admin_connection_serve(struct admin_connections *connections,
                            struct admin_connection *connection, int clear, struct admin_tls *tls,
                            struct shown_certificate **shownp) {
    struct admin_connection *earlier;
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    while ((earlier = find_clear(connections, clear)) != NULL)
        earlier->clear = -1;
    connection->clear = clear;
    connection->tls = admin_tls_reference(tls);
    connection->shown = *shownp;
    *shownp = NULL;
    pthread_mutex_unlock(&connections->lock);
}

bool admin_connection_is_served(struct admin_connections *connections,
                                const struct admin_connection *connection) {
    pthread_mutex_lock(&connections->lock);
    bool served = connection->clear >= 0;
    pthread_mutex_unlock(&connections->lock);
    return served;
}

struct admin_connection *admin_connection_take(struct admin_connections *connections, int clear) {
    pthread_mutex_lock(&connections->lock);
    struct admin_connection *connection = find_clear(connections, clear);
    if (connection != NULL)
        connection->users++;
    pthread_mutex_unlock(&connections->lock);
    return connection;
}

const char *admin_connection_from(const struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    return connection->from;
}

const struct shown_certificate *admin_connection_shown(const struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    return connection->shown;
}

const struct admin_tls *admin_connection_tls(const struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    return connection->tls;
}

struct admin_connection *admin_connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info->socket_context;
}

static void note_use(struct admin_connections *connections, struct admin_connection *connection,
                     uint64_t deadline) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    if (!connection->unlisted) {
        list_remove(&connection->link);
        list_append(&connections->list, &connection->link);
    }
    connection->deadline = deadline;
    pthread_mutex_unlock(&connections->lock);
}

void admin_connection_used(struct admin_connections *connections,
                           struct admin_connection *connection) {
    note_use(connections, connection, 0);
}

void admin_connection_block(struct admin_connections *connections,
                            struct admin_connection *connection, uint64_t now) {
    note_use(connections, connection, now + ADMIN_CONNECTION_PATIENCE * 1000);
}

/* NULL: there is none. */
static struct admin_connection *find_late(const struct admin_connections *connections,
                                          uint64_t now) {
    LIST_FOR_EACH (link, &connections->list) {
        struct admin_connection *connection = connection_at(link);
        if (connection->deadline != 0 && now >= connection->deadline)
            return connection;
    }
    return NULL;
}

void admin_connections_sweep(struct admin_connections *connections, uint64_t now) {
    struct admin_connection *late;
    pthread_mutex_lock(&connections->lock);
    while ((late = find_late(connections, now)) != NULL) {
        unlist(connections, late);
        shutdown(late->fd, SHUT_RDWR);
        log_info("admin: an answer to %s was broken off: it took less than %d KB within %d seconds",
                 late->from, ADMIN_CONNECTION_LEAST >> 10, (int)ADMIN_CONNECTION_PATIENCE);
    }
    pthread_mutex_unlock(&connections->lock);
}

void admin_connection_admit(struct admin_connections *connections,
                            struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    connection->admitted = true;
    pthread_mutex_unlock(&connections->lock);
}

bool admin_connection_asks(struct admin_connections *connections,
                           struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    bool answered = connection->answered;
    connection->asks = true;
    pthread_mutex_unlock(&connections->lock);
    return !answered;
}

void admin_connection_answered(struct admin_connections *connections,
                               struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    connection->asks = false;
    connection->answered = true;
    pthread_mutex_unlock(&connections->lock);
}

bool admin_connections_have_answers(struct admin_connections *connections) {
    bool all = true;
    pthread_mutex_lock(&connections->lock);
    LIST_FOR_EACH (link, &connections->list) {
        const struct admin_connection *connection = connection_at(link);
        all = all && connection->answered && !connection->asks && !has_unread(connection);
    }
    pthread_mutex_unlock(&connections->lock);
    return all;
}

void admin_connection_keep(struct admin_connections *connections,
                           struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    if (!connection->unlisted)
        unlist(connections, connection);
    pthread_mutex_unlock(&connections->lock);
}

void admin_connection_note(struct admin_connections *connections,
                           const struct admin_connection *connection, enum admin_handshake end,
                           const char *reason) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    time_t now = time(NULL), before = atomic_load(&connections->refused_at);
    atomic_fetch_add(&connections->handshakes[end], 1);
    if (end == ADMIN_HANDSHAKE_CERTIFICATE && now - before >= TELL_AGAIN &&
        atomic_compare_exchange_strong(&connections->refused_at, &before, now))
        log_warn("admin: the certificate of %s was refused: %s; it was the %llu. since the start",
                 connection->from, reason,
                 (unsigned long long)atomic_load(&connections->handshakes[end]));
}

static void admin_connection_free(struct admin_connection *connection) {
    if (connection->fd >= 0)
        close(connection->fd);
    admin_tls_release(&connection->tls);
    shown_certificate_free(&connection->shown);
    FREE_OBJ(connection);
}

/* Whoever leaves first closes its end, and the other one hears of it by that. */
void admin_connection_leave(struct admin_connections *connections,
                            struct admin_connection **connectionp) {
    struct admin_connection *connection = *connectionp;
    *connectionp = NULL;
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    bool last = --connection->users == 0;
    connection->clear = -1;
    if (last && !connection->unlisted)
        unlist(connections, connection);
    pthread_mutex_unlock(&connections->lock);
    if (last)
        admin_connection_free(connection);
}

void admin_connections_print_metrics(FILE *out, const struct admin_connections *connections) {
    static const char *const ends[] = {"done", "late", "certificate", "clear_text", "other"};
    if (connections == NULL)
        return;
    fprintf(out,
            "# HELP retort_admin_connections_closed_total Connections to the admin plane that were "
            "closed because %d were open.\n"
            "# TYPE retort_admin_connections_closed_total counter\n"
            "retort_admin_connections_closed_total %llu\n"
            "# HELP retort_admin_handshakes_total TLS connections to the admin plane that have "
            "ended, by how their handshake ended.\n"
            "# TYPE retort_admin_handshakes_total counter\n",
            (int)ADMIN_CONNECTIONS_MOST, (unsigned long long)atomic_load(&connections->closed));
    for (int i = 0; i < ADMIN_HANDSHAKES; i++)
        fprintf(out, "retort_admin_handshakes_total{end=\"%s\"} %llu\n", ends[i],
                (unsigned long long)atomic_load(&connections->handshakes[i]));
}
