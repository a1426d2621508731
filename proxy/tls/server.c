#include "tls/server.h"

#include "base/assert.h"
#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>

enum { SERVER_ERROR_MAX = 400 };

struct tls_server {
    unsigned magic;
#define TLS_SERVER_MAGIC 0x715c5e4eu
    unsigned references;
    SSL_CTX *context; /* NULL: it could not be made; error says why */
    char error[SERVER_ERROR_MAX];
};

static bool server_use(struct tls_server *server, const char *certificate) {
    if (SSL_CTX_use_certificate_chain_file(server->context, certificate) == 1 &&
        SSL_CTX_use_PrivateKey_file(server->context, certificate, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(server->context) == 1)
        return true;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(server->error, sizeof server->error,
             "certificate %s can't be used (%s): it must hold the certificate, its issuers and its "
             "key in PEM",
             certificate, reason != NULL ? reason : "unknown error");
    return false;
}

struct tls_server *tls_server_new(const struct tls_server_settings *settings) {
    struct tls_server *server;
    ALLOC_OBJ(server, TLS_SERVER_MAGIC);
    server->references = 1;
    ERR_clear_error();
    server->context = tls_context_new(TLS_server_method());
    if (server->context == NULL) {
        snprintf(server->error, sizeof server->error, "TLS can't be started: out of memory");
        return server;
    }
    SSL_CTX_set_num_tickets(server->context, 1);
    if (settings->certificate != NULL && !server_use(server, settings->certificate)) {
        SSL_CTX_free(server->context);
        server->context = NULL;
    }
    return server;
}

struct tls_server *tls_server_take(struct tls_server *server) {
    CHECK_OBJ(server, TLS_SERVER_MAGIC);
    server->references++;
    return server;
}

void tls_server_release(struct tls_server **serverp) {
    struct tls_server *server = *serverp;
    *serverp = NULL;
    if (server == NULL)
        return;
    CHECK_OBJ(server, TLS_SERVER_MAGIC);
    if (--server->references > 0)
        return;
    SSL_CTX_free(server->context);
    FREE_OBJ(server);
}

const char *tls_server_error(const struct tls_server *server) {
    return server->error;
}

SSL *tls_server_open(struct tls_server *server) {
    CHECK_OBJ(server, TLS_SERVER_MAGIC);
    SSL *ssl = server->context != NULL ? SSL_new(server->context) : NULL;
    if (ssl != NULL)
        SSL_set_accept_state(ssl);
    return ssl;
}
