#include "console.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* One connection. */
struct console_client {
    int fd;     /* -1: there is none */
    int waited; /* the descriptor of the operation, while it is watched; -1: none */
    struct service_content *operation;
    bool shows, ending;
    size_t in, out_begin, out_end;
    char line[CONSOLE_LINE];
    char bytes[CONSOLE_OUT];
};

struct console {
    unsigned magic;
#define CONSOLE_MAGIC 0xc04501e0u
    const struct service_host *host;
    void (*report)(void *arg, char *text, size_t size);
    void *arg;
    int fd;
    struct sockaddr_un address;
    struct stat made; /* of the socket's file */
    struct console_client clients[CONSOLE_CLIENTS];
};

/* ---- a connection -------------------------------------------------------------------------- */

static size_t client_room(const struct console_client *client) {
    return sizeof client->bytes - client->out_end;
}

static void client_say(struct console_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void client_say(struct console_client *client, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(client->bytes + client->out_end, client_room(client), format, arguments);
    va_end(arguments);
    if (length > 0)
        client->out_end +=
            (size_t)length < client_room(client) ? (size_t)length : client_room(client) - 1;
}

static void client_stop_waiting(struct console *console, struct console_client *client) {
    if (client->waited >= 0)
        service_watch(console->host, client->waited, 0);
    client->waited = -1;
}

static void console_hang_up(struct console *console, struct console_client *client) {
    client_stop_waiting(console, client);
    service_content_close(&client->operation);
    service_watch(console->host, client->fd, 0);
    close(client->fd);
    client->fd = -1;
}

/* Watches what it waits for: its operation, room in the socket, or a command. */
static void client_watch(struct console *console, struct console_client *client) {
    bool writes = client->out_begin < client->out_end;
    int wanted =
        client->operation != NULL && !writes ? service_content_descriptor(client->operation) : -1;
    short events = (short)(writes ? POLLOUT : client->operation != NULL ? 0 : POLLIN);
    if (client->waited != wanted)
        client_stop_waiting(console, client);
    bool good = service_watch(console->host, client->fd, events) || events == 0;
    if (good && wanted >= 0 && client->waited < 0) {
        good = service_watch(console->host, wanted, POLLIN);
        client->waited = wanted;
    }
    if (!good)
        console_hang_up(console, client);
}

/* ---- commands ------------------------------------------------------------------------------ */

static const char help[] = "query URL              what is stored\n"
                           "fetch URL              gets it into the cache\n"
                           "validate URL           asks its origin whether it is still right\n"
                           "expire URL SECONDS     is fresh so long from now on\n"
                           "delete URL\n"
                           "show URL               head and body\n"
                           "inject URL TEXT        stores a text for an hour\n"
                           "report, help, quit\n";

static struct slice console_word(struct slice *rest) {
    struct slice text = slice_trim(*rest);
    const char *blank = text.length == 0 ? NULL : memchr(text.base, ' ', text.length);
    size_t length = blank == NULL ? text.length : (size_t)(blank - text.base);
    *rest = slice_trim(slice_make(text.base + length, text.length - length));
    return slice_make(text.base, length);
}

static struct service_content *client_begin(const struct service_host *host, struct slice command,
                                            struct slice url, struct slice rest) {
    uint64_t seconds = 0;
    if (slice_equal(command, SLICE("query")))
        return service_content_query(host, url, 0);
    if (slice_equal(command, SLICE("fetch")))
        return service_content_fetch(host, url, SLICE(""), NULL);
    if (slice_equal(command, SLICE("validate")))
        return service_content_validate(host, url, SLICE(""), NULL);
    if (slice_equal(command, SLICE("expire")) && slice_to_uint64(rest, &seconds) &&
        seconds <= INT32_MAX)
        return service_content_expire(host, url, (int64_t)seconds);
    if (slice_equal(command, SLICE("delete")))
        return service_content_delete(host, url);
    if (slice_equal(command, SLICE("show")))
        return service_content_read_start(host, url, 0);
    if (slice_equal(command, SLICE("inject")))
        return service_content_inject(
            host, url, 3600, SLICE("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"), rest);
    return NULL;
}

static void client_command(struct console *console, struct console_client *client,
                           struct slice line) {
    char report[1000];
    struct slice rest = line, command = console_word(&rest), url = console_word(&rest);
    if (command.length == 0)
        return;
    if (slice_equal(command, SLICE("quit"))) {
        client->ending = true;
        return;
    }
    if (slice_equal(command, SLICE("report"))) {
        console->report(console->arg, report, sizeof report);
        client_say(client, "%s\n", report);
        return;
    }
    if (slice_equal(command, SLICE("help"))) {
        client_say(client, "%s", help);
        return;
    }
    client->shows = slice_equal(command, SLICE("show"));
    client->operation = client_begin(console->host, command, url, rest);
    if (client->operation == NULL)
        client_say(client, "refused: no such command, or too many operations\n%s", help);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void client_tell(struct console_client *client,
                        const struct service_content_answer *answer) {
    static const char *const words[] = {"done", "not stored", "refused", "failed"};
    client_say(client, "%s", words[answer->status]);
    if (answer->why[0] != '\0')
        client_say(client, ": %s", answer->why);
    else if (answer->result.length > 0)
        client_say(client, ": %.*s, %u, %llu bytes, %s", SLICE_PRINT(answer->result),
                   answer->http_status, (unsigned long long)answer->size,
                   answer->objects > 0 ? "stored" : "not stored");
    else if (answer->state.length > 0)
        client_say(
            client, ": %.*s, %u, %llu bytes, age %lld, fresh for %lld, %llu hits, %llu variants",
            SLICE_PRINT(answer->state), answer->http_status, (unsigned long long)answer->size,
            (long long)answer->age, (long long)answer->fresh_for, (unsigned long long)answer->hits,
            (unsigned long long)answer->objects);
    else
        client_say(client, ": %llu objects", (unsigned long long)answer->objects);
    client_say(client, "\n");
}

/* Puts what the operation says into the buffer, which is empty. True: it is over. */
static bool client_take(struct console_client *client) {
    const struct service_content_answer *answer = service_content_answer(client->operation);
    if (answer == NULL)
        return false;
    if (!client->shows || answer->status != SERVICE_CONTENT_DONE) {
        client_tell(client, answer);
        return true;
    }
    if (client->shows && answer->head.length > 0 && client->out_end == 0) {
        size_t got;
        enum service_content_flow flow =
            service_content_read_part(client->operation, client->bytes, CONSOLE_OUT, &got);
        client->out_end = got;
        if (flow == SERVICE_CONTENT_END || flow == SERVICE_CONTENT_BROKEN)
            client_say(client,
                       flow == SERVICE_CONTENT_END ? "\n" : "\nfailed: the rest is missing\n");
        return flow == SERVICE_CONTENT_END || flow == SERVICE_CONTENT_BROKEN;
    }
    return false;
}

/* ---- input and output ---------------------------------------------------------------------- */

/* False: the connection is over. */
static bool client_write(struct console_client *client) {
    while (client->out_begin < client->out_end) {
        ssize_t count = send(client->fd, client->bytes + client->out_begin,
                             client->out_end - client->out_begin, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0)
            return errno == EAGAIN || errno == EINTR;
        client->out_begin += (size_t)count;
    }
    client->out_begin = client->out_end = 0;
    return !client->ending;
}

/* The next line that has come, without its end; false: there is none yet. */
static bool client_line(struct console_client *client, char line[CONSOLE_LINE], size_t *length) {
    const char *newline = memchr(client->line, '\n', client->in);
    if (newline == NULL)
        return false;
    size_t whole = (size_t)(newline - client->line) + 1;
    *length = whole - 1;
    memcpy(line, client->line, *length);
    *length -= *length > 0 && line[*length - 1] == '\r';
    memmove(client->line, client->line + whole, client->in - whole);
    client->in -= whole;
    return true;
}

/* False: the connection is over. */
static bool client_read(struct console_client *client) {
    ssize_t count =
        recv(client->fd, client->line + client->in, sizeof client->line - client->in, MSG_DONTWAIT);
    if (count < 0)
        return errno == EAGAIN || errno == EINTR;
    client->in += (size_t)count;
    bool fits = client->in < sizeof client->line || memchr(client->line, '\n', client->in) != NULL;
    return count > 0 && fits; /* a line that does not fit is no command */
}

/* Until it waits for something. False: the connection is over. */
static bool client_run(struct console *console, struct console_client *client) {
    char line[CONSOLE_LINE];
    size_t length;
    for (;;) {
        if (!client_write(client))
            return false;
        if (client->out_begin < client->out_end)
            return true;
        if (client->operation != NULL) {
            bool over = client_take(client);
            if (over) {
                client_stop_waiting(console, client);
                service_content_close(&client->operation);
            } else if (client->out_end == 0) {
                return true;
            }
        } else if (client_line(client, line, &length)) {
            client_command(console, client, slice_make(line, length));
        } else {
            return true;
        }
    }
}

static void client_ready(struct console *console, struct console_client *client, int fd) {
    bool idle = fd == client->fd && client->operation == NULL && client->out_end == 0;
    if ((idle && !client_read(client)) || !client_run(console, client))
        console_hang_up(console, client);
    else
        client_watch(console, client);
}

/* ---- the socket ---------------------------------------------------------------------------- */

static void console_accept(struct console *console) {
    int fd = accept(console->fd, NULL, NULL);
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* reads and writes say MSG_DONTWAIT */
    for (unsigned i = 0; i < CONSOLE_CLIENTS && fd >= 0; i++) {
        struct console_client *client = &console->clients[i];
        if (client->fd >= 0)
            continue;
        memset(client, 0, sizeof *client);
        client->fd = fd;
        client->waited = -1;
        client_watch(console, client);
        return;
    }
    if (fd >= 0)
        close(fd);
}

bool console_ready(struct console *console, int fd) {
    CHECK_OBJ(console, CONSOLE_MAGIC);
    if (fd == console->fd) {
        console_accept(console);
        return true;
    }
    for (unsigned i = 0; i < CONSOLE_CLIENTS; i++) {
        struct console_client *client = &console->clients[i];
        if (client->fd >= 0 && (fd == client->fd || fd == client->waited)) {
            client_ready(console, client, fd);
            return true;
        }
    }
    return false;
}

/* That of the instance before. What is no socket stays: bind says that the path is in use. */
static void remove_socket(const char *path) {
    struct stat there;
    if (lstat(path, &there) == 0 && S_ISSOCK(there.st_mode))
        unlink(path);
}

/* Only the user of the proxy may connect, from the first moment on. */
static bool console_listen(struct console *console, const char *path) {
    console->address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof console->address.sun_path)
        return false;
    strcpy(console->address.sun_path, path);
    console->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (console->fd < 0 || fchmod(console->fd, 0600) != 0)
        return false;
    remove_socket(path);
    return bind(console->fd, (struct sockaddr *)&console->address, sizeof console->address) == 0 &&
           chmod(path, 0600) == 0 && listen(console->fd, CONSOLE_CLIENTS) == 0 &&
           stat(path, &console->made) == 0 && service_watch(console->host, console->fd, POLLIN);
}

struct console *console_open(const char *path, const struct service_host *host,
                             void (*report)(void *arg, char *text, size_t size), void *arg,
                             char *error, size_t error_size) {
    struct console *console;
    ALLOC_OBJ(console, CONSOLE_MAGIC);
    console->host = host;
    console->report = report;
    console->arg = arg;
    for (unsigned i = 0; i < CONSOLE_CLIENTS; i++)
        console->clients[i].fd = -1;
    errno = 0;
    if (console_listen(console, path))
        return console;
    snprintf(error, error_size,
             "Socket: nobody can connect to %s: %s: create its folder, and let retort's user write "
             "there",
             path, errno != 0 ? strerror(errno) : "the path is too long");
    console_close(&console);
    return NULL;
}

/* The file may be that of the next instance already. */
static void remove_file(const struct console *console) {
    struct stat now;
    const char *path = console->address.sun_path;
    if (stat(path, &now) == 0 && now.st_ino == console->made.st_ino &&
        now.st_dev == console->made.st_dev)
        unlink(path);
}

void console_close(struct console **consolep) {
    struct console *console = *consolep;
    *consolep = NULL;
    if (console == NULL)
        return;
    for (unsigned i = 0; i < CONSOLE_CLIENTS; i++)
        if (console->clients[i].fd >= 0)
            console_hang_up(console, &console->clients[i]);
    if (console->fd >= 0)
        close(console->fd);
    remove_file(console);
    FREE_OBJ(console);
}
