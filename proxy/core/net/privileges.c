#include "net/privileges.h"

#include <errno.h>
#include <unistd.h>

bool privileges_set_foreign(int fd, const struct address *address, bool on) {
    int value = on ? 1 : 0;
    if (address->any.sa_family == AF_INET6)
        return setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &value, sizeof value) == 0;
    return setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &value, sizeof value) == 0;
}

bool privileges_set_mark(int fd, unsigned mark) {
    return setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0;
}

int privileges_missing(bool foreign, unsigned mark) {
    const struct address v4 = {.v4.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    bool good = (!foreign || privileges_set_foreign(fd, &v4, true)) &&
                (mark == 0 || privileges_set_mark(fd, mark));
    int error = good ? 0 : errno;
    close(fd);
    return error;
}

const char *privileges_advice(int error) {
    return error == EPERM ? "; this needs the capability CAP_NET_ADMIN: add it to "
                            "AmbientCapabilities and CapabilityBoundingSet in retort.service"
                          : "";
}
