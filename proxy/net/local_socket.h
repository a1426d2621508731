/*
 * A listening Unix socket for this user alone, for messages with other processes of the machine.
 *
 *     struct local_socket local;
 *     if (!local_socket_open(&local, &address, SOCK_SEQPACKET, -1, "option", error)) ...
 *     int fd = local_socket_accept(&local, stop);       -1: `stop` has become readable
 *     local_socket_close(&local);                       removes the file too
 *
 * A file that a dead process left is replaced, any other one is not touched.
 *
 * Threads: one at a time, but local_socket_give_away and local_socket_accept also at once.
 */
#ifndef RETORT_NET_LOCAL_SOCKET_H
#define RETORT_NET_LOCAL_SOCKET_H

#include "net/address.h"

#include <sys/stat.h>

enum { LOCAL_SOCKET_ERROR = 256 };

struct local_socket {
    int fd;
    char *path; /* NULL: the file belongs to another process */
    dev_t device;
    ino_t inode;
};

/* `inherited`: a socket that listens at the address already, -1: none. Its file belongs to another
 * process until local_socket_own. `option`: the name in
 * messages. Returns false with a message in `error`, which has LOCAL_SOCKET_ERROR bytes. */
bool local_socket_open(struct local_socket *local, const struct address *address, int type,
                       int inherited, const char *option, char *error);
/* Waits for a connection, close-on-exec. */
int local_socket_accept(const struct local_socket *local, int stop);
/* The file of an inherited socket is removed at the end from now on. */
void local_socket_own(struct local_socket *local, const struct address *address);
/* The file stays: another process has the socket too. */
void local_socket_give_away(struct local_socket *local);
void local_socket_close(struct local_socket *local);

#endif
