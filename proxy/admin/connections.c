#include "admin/connections.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/address.h"

#include <string.h>
#include <sys/socket.h>

enum { TELL_AGAIN = 60 };

struct admin_connection {
    unsigned magic;
#define ADMIN_CONNECTION_MAGIC 0x47554553u
    struct list_link link;
    int fd;
    uint64_t client;             /* equal for connections of one client */
    char from[ADDRESS_TEXT];     /* the address */
    struct mhd_tls_session *tls; /* NULL: clear text */
    uint64_t deadline;           /* for taking a block, in milliseconds; 0: it takes none */
    bool admitted;               /* a request of it was */
    bool unlisted;               /* shut down, or kept */
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

/* Which one the header says. The first of the list has been idle for longest. */
static struct admin_connection *find_idlest(const struct admin_connections *connections) {
    struct admin_connection *found = NULL;
    unsigned most = 0;
    LIST_FOR_EACH (link, &connections->list) {
        struct admin_connection *connection = connection_at(link);
        unsigned count = connection->admitted ? 0 : count_like(connections, connection);
        if (found == NULL || count > most) {
            found = connection;
            most = count;
        }
    }
    return found;
}

/* Under the lock, so that its socket is not closed yet. */
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

static void tell_client(struct admin_connection *connection) {
    struct address address = {.length = sizeof address.local};
    strcpy(connection->from, "unix");
    if (getpeername(connection->fd, &address.any, &address.length) != 0 ||
        address.any.sa_family == AF_UNIX)
        return;
    address_unmap(&address);
    address_format(&address, connection->from);
    if (address.any.sa_family == AF_INET)
        connection->client = first_bytes(&address.v4.sin_addr, sizeof address.v4.sin_addr);
    else
        connection->client = first_bytes(&address.v6.sin6_addr, sizeof(uint64_t));
}

struct admin_connection *admin_connection_add(struct admin_connections *connections, int fd,
                                              struct mhd_tls_session **tls) {
    struct admin_connection *connection;
    ALLOC_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    connection->fd = fd;
    connection->tls = *tls;
    *tls = NULL;
    tell_client(connection);
    pthread_mutex_lock(&connections->lock);
    if (connections->count == ADMIN_CONNECTIONS_MOST)
        shut_idlest_down(connections);
    list_append(&connections->list, &connection->link);
    connections->count++;
    pthread_mutex_unlock(&connections->lock);
    return connection;
}

const struct mhd_tls_session *admin_connection_tls(const struct admin_connection *connection) {
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
        log_info("admin: an answer to %s was broken off: it took less than %d kB within %d seconds",
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

void admin_connection_keep(struct admin_connections *connections,
                           struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    if (!connection->unlisted)
        unlist(connections, connection);
    pthread_mutex_unlock(&connections->lock);
}

static void note_handshake(struct admin_connections *connections,
                           const struct admin_connection *connection) {
    const enum mhd_tls_end end = mhd_tls_session_end(connection->tls);
    time_t now = time(NULL), before = atomic_load(&connections->refused_at);
    atomic_fetch_add(&connections->handshakes[end], 1);
    if (end == MHD_TLS_CERTIFICATE && now - before >= TELL_AGAIN &&
        atomic_compare_exchange_strong(&connections->refused_at, &before, now))
        log_warn("admin: the certificate of %s was refused: %s; it was the %llu. since the start",
                 connection->from, mhd_tls_session_reason(connection->tls),
                 (unsigned long long)atomic_load(&connections->handshakes[end]));
}

void admin_connection_remove(struct admin_connections *connections,
                             struct admin_connection **connectionp) {
    struct admin_connection *connection = *connectionp;
    *connectionp = NULL;
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    if (!connection->unlisted)
        unlist(connections, connection);
    pthread_mutex_unlock(&connections->lock);
    if (connection->tls != NULL)
        note_handshake(connections, connection);
    mhd_tls_session_free(&connection->tls);
    FREE_OBJ(connection);
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
    for (int i = 0; i < MHD_TLS_ENDS; i++)
        fprintf(out, "retort_admin_handshakes_total{end=\"%s\"} %llu\n", ends[i],
                (unsigned long long)atomic_load(&connections->handshakes[i]));
}
