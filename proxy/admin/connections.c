#include "admin/connections.h"

#include "base/assert.h"
#include "base/log.h"

#include <sys/socket.h>

enum { TELL_AGAIN = 60 };

struct admin_connection {
    unsigned magic;
#define ADMIN_CONNECTION_MAGIC 0x47554553u
    struct list_link link;
    int fd;
    bool unlisted; /* shut down, or kept */
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

/* Under the lock, so that its socket is not closed yet. */
static void shut_idlest_down(struct admin_connections *connections) {
    struct admin_connection *oldest =
        CONTAINER_OF(list_first(&connections->list), struct admin_connection, link);
    CHECK_OBJ(oldest, ADMIN_CONNECTION_MAGIC);
    unlist(connections, oldest);
    shutdown(oldest->fd, SHUT_RDWR);
    admin_connections_tell(connections);
}

struct admin_connection *admin_connection_add(struct admin_connections *connections, int fd) {
    struct admin_connection *connection;
    ALLOC_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    connection->fd = fd;
    pthread_mutex_lock(&connections->lock);
    if (connections->count == ADMIN_CONNECTIONS_MOST)
        shut_idlest_down(connections);
    list_append(&connections->list, &connection->link);
    connections->count++;
    pthread_mutex_unlock(&connections->lock);
    return connection;
}

void admin_connection_used(struct admin_connections *connections,
                           struct admin_connection *connection) {
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    if (!connection->unlisted) {
        list_remove(&connection->link);
        list_append(&connections->list, &connection->link);
    }
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

void admin_connection_remove(struct admin_connections *connections,
                             struct admin_connection **connectionp) {
    struct admin_connection *connection = *connectionp;
    *connectionp = NULL;
    CHECK_OBJ(connection, ADMIN_CONNECTION_MAGIC);
    pthread_mutex_lock(&connections->lock);
    if (!connection->unlisted)
        unlist(connections, connection);
    pthread_mutex_unlock(&connections->lock);
    FREE_OBJ(connection);
}
