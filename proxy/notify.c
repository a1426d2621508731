#include "notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_MAX = 400, INTERVAL_LEAST = 10 };

/* A name that begins with @ is one of the abstract namespace. */
static socklen_t notify_address(struct sockaddr_un *address) {
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path == NULL ? 0 : strlen(path);
    if (length < 2 || length >= sizeof address->sun_path || (path[0] != '/' && path[0] != '@'))
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, length);
    if (path[0] == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

void notify_send(const char *format, ...) {
    char message[MESSAGE_MAX];
    struct sockaddr_un address;
    socklen_t length = notify_address(&address);
    if (length == 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT,
           (const struct sockaddr *)&address, length);
    close(fd);
}

/* WATCHDOG_PID, where it is set, says which process is meant. */
unsigned notify_watchdog(void) {
    const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (interval == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    unsigned long milliseconds = strtoul(interval, NULL, 10) / 2000;
    if (milliseconds == 0 || milliseconds > 24ul * 60 * 60 * 1000)
        return 0;
    return milliseconds < INTERVAL_LEAST ? INTERVAL_LEAST : (unsigned)milliseconds;
}
