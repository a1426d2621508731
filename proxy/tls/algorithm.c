#include "tls/algorithm.h"

#include "base/assert.h"

#include <pthread.h>

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
