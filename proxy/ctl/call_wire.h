/*
 * The connection that a call of ctl/http_call.h is made over: a Unix socket, TCP, or TLS.
 *
 *     struct call_wire wire;
 *     char error[HTTP_CALL_ERROR];
 *     if (!call_wire_open(&wire, "https://proxy.example:3129", error)) ...
 *     call_wire_send(&wire, bytes, length, error);
 *     while ((got = call_wire_receive(&wire, buffer, sizeof buffer, error)) > 0) ...
 *     call_wire_close(&wire);
 *
 * With https:// the server's certificate must be good and for the host in the URL. The environment
 * says which authorities count (CALL_WIRE_CA; else those of the system), and which certificate is
 * shown (CALL_WIRE_CERTIFICATE and CALL_WIRE_KEY). SIGPIPE is ignored from then on.
 *
 * Threads: a wire belongs to one thread; blocks for at most HTTP_CALL_SECONDS without progress.
 */
#ifndef RETORT_CTL_CALL_WIRE_H
#define RETORT_CTL_CALL_WIRE_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CALL_WIRE_CA          "RETORT_CA_FILE"
#define CALL_WIRE_CERTIFICATE "RETORT_CERTIFICATE"
#define CALL_WIRE_KEY         "RETORT_KEY"

struct call_wire {
    const char *where;
    int fd;
    SSL_CTX *context; /* NULL: no TLS */
    SSL *ssl;
};

/* `where`, which must outlive the wire, is a path with a slash, ADDRESS:PORT, http://ADDRESS:PORT
 * or https://HOST:PORT. False with a message: nothing is open. */
bool call_wire_open(struct call_wire *wire, const char *where, char *error);
bool call_wire_send(struct call_wire *wire, const char *bytes, size_t length, char *error);
/* 0: the other side has ended. Less than 0 with a message: the connection has failed. */
ssize_t call_wire_receive(struct call_wire *wire, char *to, size_t room, char *error);
void call_wire_close(struct call_wire *wire);
/* Does what is sent stay on this machine, or go through TLS? */
bool call_wire_is_private(const struct call_wire *wire);

/* Is it a path, relative or not? It has a slash before any colon. */
bool call_wire_is_path(const char *where);
/* HOST:PORT of `where`, without the scheme and what follows. `where` is no path. The caller frees
 * it. */
char *call_wire_authority(const char *where);

#endif
