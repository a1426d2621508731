#include "takeover/socket_store.h"

#include "base/assert.h"
#include "takeover/notify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STORE_NAME = ADDRESS_TEXT + 16 };

/* A name in the store has no colon. */
static void store_name_of(const struct address *address, char name[STORE_NAME]) {
    char text[ADDRESS_TEXT];
    address_format(address, text);
    snprintf(name, STORE_NAME, "listen-%s", text);
    for (char *at = name; *at != '\0'; at++)
        if (*at == ':')
            *at = '_';
}

static bool name_of_socket(int fd, char name[STORE_NAME]) {
    struct address address = {.length = sizeof address.local};
    if (getsockname(fd, &address.any, &address.length) != 0 || address.any.sa_family == AF_UNIX)
        return false;
    store_name_of(&address, name);
    return true;
}

void socket_store_add(struct socket_store *store, const int *fds, unsigned count) {
    if (!notify_is_heard())
        return;
    store->fds = xrealloc(store->fds, (store->count + count) * sizeof *fds);
    for (unsigned i = 0; i < count; i++) {
        int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (copy >= 0)
            store->fds[store->count++] = copy;
    }
}

/* Takes the sockets of one name out of the store, NOTIFY_FDS at most. */
static unsigned take_same(struct socket_store *store, const char *name, int fds[NOTIFY_FDS]) {
    char other[STORE_NAME];
    unsigned taken = 0, left = 0;
    for (unsigned i = 0; i < store->count; i++) {
        int fd = store->fds[i];
        if (taken < NOTIFY_FDS && name_of_socket(fd, other) && strcmp(name, other) == 0)
            fds[taken++] = fd;
        else
            store->fds[left++] = fd;
    }
    store->count = left;
    return taken;
}

/* A message for each name, since the queue of the manager is short. */
void socket_store_send(struct socket_store *store) {
    char name[STORE_NAME];
    int fds[NOTIFY_FDS];
    while (store->count > 0) {
        unsigned count = 0;
        if (name_of_socket(store->fds[0], name))
            count = take_same(store, name, fds);
        if (count > 0)
            notify_send_fds(fds, count, "FDSTORE=1\nFDNAME=%s", name);
        else
            fds[count++] = store->fds[--store->count];
        for (unsigned i = 0; i < count; i++)
            close(fds[i]);
    }
    free(store->fds);
    *store = (struct socket_store){0};
}

void socket_store_remove(const struct address *address) {
    char name[STORE_NAME];
    if (address->any.sa_family == AF_UNIX)
        return;
    store_name_of(address, name);
    notify_send("FDSTOREREMOVE=1\nFDNAME=%s", name);
}
