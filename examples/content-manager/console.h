/*
 * The console: commands from whoever may open its socket, a line each, about the content of the
 * cache. Only the user of the proxy may, since the socket has the mode 0600.
 *
 *     struct console *console = console_open(path, host, report, arg, error, sizeof error);
 *     if (!console_ready(console, fd)) ...             from `descriptor`: it is not one of its own
 *     console_close(&console);
 *
 *     $ nc -U /run/retort/manager.sock
 *     query http://a.example/logo.gif
 *     done: fresh, 200, 4711 bytes, age 17, fresh for 43, 3 hits, 1 variant
 *
 * A connection has one command at work; what it sends meanwhile waits in its socket. There are at most
 * CONSOLE_CLIENTS connections, and further ones are closed.
 *
 * Threads: that of timer and descriptor; open and close too.
 */
#ifndef MANAGER_CONSOLE_H
#define MANAGER_CONSOLE_H

#include "service/content.h"

enum { CONSOLE_CLIENTS = 8, CONSOLE_LINE = 8192, CONSOLE_OUT = 64 * 1024 };

struct console;

/* `report` writes what the command report shows. NULL and a sentence: it can't be opened. */
struct console *console_open(const char *path, const struct service_host *host,
                             void (*report)(void *arg, char *text, size_t size), void *arg,
                             char *error, size_t error_size);
bool console_ready(struct console *console, int fd);
void console_close(struct console **consolep);

#endif
