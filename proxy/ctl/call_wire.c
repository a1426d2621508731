#include "ctl/call_wire.h"

#include "base/assert.h"
#include "ctl/http_call.h"
#include "net/address.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const char https[] = "https://", http[] = "http://";

static bool wire_fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wire_fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, HTTP_CALL_ERROR, format, arguments);
    va_end(arguments);
    return false;
}

/* What the operator should check, by the reason why the connection failed. */
static const char *wire_advice(int reason, bool local) {
    switch (reason) {
    case ENOENT: return ": is retort running, and is admin.listen set to this path?";
    case ECONNREFUSED:
        return local ? ": no process listens on this socket: is retort running?"
                     : ": is retort running, and is admin.listen set to this address?";
    case EACCES: return ": only root and retort's own user may connect; try sudo";
    default: return "";
    }
}

/* Where to. */

static bool begins_with_scheme(const char *where, const char *scheme) {
    return strncasecmp(where, scheme, strlen(scheme)) == 0;
}

static bool is_url(const char *where) {
    return begins_with_scheme(where, https) || begins_with_scheme(where, http);
}

bool call_wire_is_path(const char *where) {
    return !is_url(where) && where[strcspn(where, ":/")] == '/';
}

char *call_wire_authority(const char *where) {
    if (is_url(where))
        where += begins_with_scheme(where, https) ? sizeof https - 1 : sizeof http - 1;
    return slice_dup(slice_make(where, strcspn(where, "/")));
}

/* Relative paths stay relative: the whole path could be too long for a socket. */
static bool parse_path(struct address *address, const char *path) {
    struct sockaddr_un *local = (struct sockaddr_un *)&address->any;
    if (path[0] == '/')
        return address_parse(address, slice_from(path), 0);
    if (strlen(path) >= sizeof local->sun_path)
        return false;
    memset(address, 0, sizeof *address);
    local->sun_family = AF_UNIX;
    strcpy(local->sun_path, path);
    address->length = sizeof *local;
    return true;
}

static int connect_to(const struct sockaddr *to, socklen_t length) {
    const struct timeval patience = {.tv_sec = HTTP_CALL_SECONDS};
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, to, length) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Tries the addresses of the name, one after another. */
static int connect_to_name(const char *host, const char *port, const char *where, char *error) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1, failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0) {
        wire_fail(error, "%s: the host has no address: %s", where, gai_strerror(failed));
        return -1;
    }
    for (const struct addrinfo *at = found; fd < 0 && at != NULL; at = at->ai_next)
        fd = connect_to(at->ai_addr, at->ai_addrlen);
    if (fd < 0)
        wire_fail(error, "can't connect to %s: %s%s", where, strerror(errno),
                  wire_advice(errno, false));
    freeaddrinfo(found);
    return fd;
}

/* Cuts "HOST:PORT" or "[ADDRESS]:PORT" in place; false: it is neither. */
static bool split_authority(char *authority, char **host, char **port) {
    char *colon = strrchr(authority, ':');
    if (colon == NULL || colon == authority || colon[1] == '\0')
        return false;
    *colon = '\0';
    *host = authority;
    *port = colon + 1;
    if (authority[0] != '[')
        return strchr(authority, ':') == NULL;
    size_t length = strlen(authority);
    if (length < 3 || authority[length - 1] != ']')
        return false;
    authority[length - 1] = '\0';
    *host = authority + 1;
    return true;
}

static int connect_to_url(const char *where, char *error) {
    char *authority = call_wire_authority(where), *host, *port;
    int fd = -1;
    if (split_authority(authority, &host, &port))
        fd = connect_to_name(host, port, where, error);
    else
        wire_fail(error, "\"%s\" has no port: write https://HOST:PORT", where);
    free(authority);
    return fd;
}

static int connect_to_address(const char *where, char *error) {
    struct address address;
    const bool path = call_wire_is_path(where);
    if (path ? !parse_path(&address, where) : !address_parse(&address, slice_from(where), 0)) {
        wire_fail(error, "\"%s\" is neither a path with a slash nor ADDRESS:PORT%s", where,
                  path ? ": it is too long for a Unix socket" : ", nor https://HOST:PORT");
        return -1;
    }
    int fd = connect_to(&address.any, address.length);
    if (fd < 0)
        wire_fail(error, "can't connect to %s: %s%s", where, strerror(errno),
                  wire_advice(errno, address.any.sa_family == AF_UNIX));
    return fd;
}

/* TLS. */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *library_reason(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : errno != 0 ? strerror(errno) : "the connection has ended";
}

static bool load_trust_of(SSL_CTX *context, char *error) {
    const char *ca_file = environment(CALL_WIRE_CA);
    if (ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(context) == 1 ||
               wire_fail(error, "the system's authorities can't be read: %s", library_reason());
    return SSL_CTX_load_verify_locations(context, ca_file, NULL) == 1 ||
           wire_fail(error, "--ca-file %s can't be used: %s", ca_file, library_reason());
}

static bool load_own(SSL_CTX *context, char *error) {
    const char *certificate = environment(CALL_WIRE_CERTIFICATE), *key = environment(CALL_WIRE_KEY);
    if (certificate == NULL)
        return key == NULL || wire_fail(error, "--key is of use with --certificate only");
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return wire_fail(error, "--certificate %s can't be used: %s", certificate,
                         library_reason());
    if (key == NULL)
        key = certificate;
    return SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 ||
           wire_fail(error, "--key %s can't be used: %s", key, library_reason());
}

static bool expect_host(SSL *ssl, const char *where) {
    char *authority = call_wire_authority(where), *host, *port;
    ASSERT(split_authority(authority, &host, &port));
    bool address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    bool good =
        address || (SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1);
    free(authority);
    return good;
}

static bool tell_handshake(const struct call_wire *wire, char *error) {
    long result = SSL_get_verify_result(wire->ssl);
    if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return wire_fail(error, "%s: its certificate is not trusted: %s%s", wire->where,
                         X509_verify_cert_error_string(result),
                         result == X509_V_ERR_HOSTNAME_MISMATCH ||
                                 result == X509_V_ERR_IP_ADDRESS_MISMATCH
                             ? ": write a name that the certificate is for"
                             : ": give the certificate of its authority with --ca-file");
    if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_WRONG_VERSION_NUMBER)
        return wire_fail(error, "%s does not speak TLS: write %s without https://", wire->where,
                         wire->where + sizeof https - 1);
    return wire_fail(error, "%s: TLS has failed: %s", wire->where, library_reason());
}

static bool wire_shake_hands(struct call_wire *wire, char *error) {
    signal(SIGPIPE, SIG_IGN); /* OpenSSL may write to a connection that is already closed */
    ERR_clear_error();
    wire->context = SSL_CTX_new(TLS_client_method());
    ASSERT(wire->context != NULL);
    SSL_CTX_set_min_proto_version(wire->context, TLS1_2_VERSION);
    SSL_CTX_set_verify(wire->context, SSL_VERIFY_PEER, NULL);
    /* The length of an answer says whether it is whole. */
    SSL_CTX_set_options(wire->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!load_trust_of(wire->context, error) || !load_own(wire->context, error))
        return false;
    wire->ssl = SSL_new(wire->context);
    ASSERT(wire->ssl != NULL && SSL_set_fd(wire->ssl, wire->fd) == 1);
    if (!expect_host(wire->ssl, wire->where))
        return wire_fail(error, "\"%s\" has no host that a certificate could be for", wire->where);
    errno = 0;
    return SSL_connect(wire->ssl) == 1 || tell_handshake(wire, error);
}

/* An alert about our certificate comes after the handshake in TLS 1.3. */
static bool tell_failure(const struct call_wire *wire, char *error) {
    switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return wire_fail(error,
                         "%s demands a client certificate: give --certificate and --key with one "
                         "of an authority in admin.client_ca",
                         wire->where);
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        return wire_fail(error, "%s refused the client certificate: %s", wire->where,
                         library_reason());
    default: return wire_fail(error, "%s: TLS has failed: %s", wire->where, library_reason());
    }
}

static bool tell_silence(const struct call_wire *wire, char *error) {
    return wire_fail(error, "%s: no answer within %d s", wire->where, HTTP_CALL_SECONDS);
}

static ssize_t receive_secure(struct call_wire *wire, char *to, size_t room, char *error) {
    size_t got = 0;
    ERR_clear_error();
    errno = 0;
    int result = SSL_read_ex(wire->ssl, to, room, &got);
    if (result == 1)
        return (ssize_t)got;
    switch (SSL_get_error(wire->ssl, result)) {
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: tell_silence(wire, error); return -1;
    default: tell_failure(wire, error); return -1;
    }
}

/* What the other side has said before it closed tells more than that it has closed. */
static bool send_secure(struct call_wire *wire, const char *bytes, size_t length, char *error) {
    char dropped[64];
    size_t sent = 0;
    ERR_clear_error();
    errno = 0;
    if (length == 0 || SSL_write_ex(wire->ssl, bytes, length, &sent) == 1)
        return true;
    return receive_secure(wire, dropped, sizeof dropped, error) >= 0
               ? wire_fail(error, "%s: can't send: the connection has ended", wire->where)
               : false;
}

/* For all. */

bool call_wire_open(struct call_wire *wire, const char *where, char *error) {
    *wire = (struct call_wire){.where = where};
    wire->fd = is_url(where) ? connect_to_url(where, error) : connect_to_address(where, error);
    if (wire->fd < 0)
        return false;
    if (!begins_with_scheme(where, https) || wire_shake_hands(wire, error))
        return true;
    call_wire_close(wire);
    return false;
}

bool call_wire_send(struct call_wire *wire, const char *bytes, size_t length, char *error) {
    if (wire->ssl != NULL)
        return send_secure(wire, bytes, length, error);
    while (length > 0) {
        ssize_t sent = send(wire->fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return wire_fail(error, "%s: can't send: %s", wire->where, strerror(errno));
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

ssize_t call_wire_receive(struct call_wire *wire, char *to, size_t room, char *error) {
    ssize_t got;
    if (wire->ssl != NULL)
        return receive_secure(wire, to, room, error);
    do
        got = recv(wire->fd, to, room, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        tell_silence(wire, error);
    else if (got < 0)
        wire_fail(error, "%s: can't receive: %s", wire->where, strerror(errno));
    return got;
}

void call_wire_close(struct call_wire *wire) {
    if (wire->ssl != NULL && SSL_is_init_finished(wire->ssl))
        SSL_shutdown(wire->ssl);
    SSL_free(wire->ssl);
    SSL_CTX_free(wire->context);
    if (wire->fd >= 0)
        close(wire->fd);
    *wire = (struct call_wire){.fd = -1};
}

bool call_wire_is_private(const struct call_wire *wire) {
    struct address peer = {.length = sizeof peer - offsetof(struct address, any)};
    if (wire->ssl != NULL)
        return true;
    return getpeername(wire->fd, &peer.any, &peer.length) == 0 &&
           (peer.any.sa_family == AF_UNIX || address_is_loopback(&peer));
}
