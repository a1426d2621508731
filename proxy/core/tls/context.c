#include "tls/context.h"

#include "base/assert.h"

#include <openssl/ssl.h>
#include <pthread.h>

/* How much one read takes from the socket: a full record and the beginning of the next. The memory
 * is given back when all of it is read. */
enum { READ_MOST = 32 * 1024 };

SSL_CTX *tls_context_new(const SSL_METHOD *method) {
    SSL_CTX *context = SSL_CTX_new(method);
    if (context == NULL)
        return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_security_level(context, TLS_SECURITY_LEVEL);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, READ_MOST);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

static pthread_once_t looked_up = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;
static EVP_CIPHER *aes_256_cbc;

/* OpenSSL 3 always has both: nothing works without them. */
static void look_up(void) {
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    aes_256_cbc = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    ASSERT(sha256 != NULL && aes_256_cbc != NULL);
}

const EVP_MD *algorithm_sha256(void) {
    pthread_once(&looked_up, look_up);
    return sha256;
}

const EVP_CIPHER *algorithm_aes_256_cbc(void) {
    pthread_once(&looked_up, look_up);
    return aes_256_cbc;
}
