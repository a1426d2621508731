#include "secrets/secret_digest.h"

#include "base/assert.h"
#include "base/random.h"
#include "tls/context.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <sys/mman.h>

enum { BLOCK = 64 }; /* of SHA-256 */

/* The key as HMAC begins its two sums with it. It stands in memory that no core dump has. */
struct secret {
    unsigned char inner[BLOCK], outer[BLOCK];
};

static pthread_once_t secret_once = PTHREAD_ONCE_INIT;
static struct secret *secret;

static void secret_make(void) {
    unsigned char key[SECRET_DIGEST];
    void *memory =
        mmap(NULL, sizeof *secret, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(memory != MAP_FAILED);
    madvise(memory, sizeof *secret, MADV_DONTDUMP);
    secret = memory;
    random_fill(key, sizeof key);
    for (size_t i = 0; i < BLOCK; i++) {
        unsigned char byte = i < sizeof key ? key[i] : 0;
        secret->inner[i] = byte ^ 0x36;
        secret->outer[i] = byte ^ 0x5c;
    }
    OPENSSL_cleanse(key, sizeof key);
}

void secret_digest(const struct slice *pieces, size_t count, unsigned char digest[SECRET_DIGEST]) {
    pthread_once(&secret_once, secret_make);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ASSERT(context != NULL);
    EVP_DigestInit_ex(context, algorithm_sha256(), NULL);
    EVP_DigestUpdate(context, secret->inner, BLOCK);
    for (size_t i = 0; i < count; i++) {
        uint64_t length = pieces[i].length;
        EVP_DigestUpdate(context, &length, sizeof length);
        EVP_DigestUpdate(context, pieces[i].base, pieces[i].length);
    }
    EVP_DigestFinal_ex(context, digest, NULL);
    EVP_DigestInit_ex(context, algorithm_sha256(), NULL);
    EVP_DigestUpdate(context, secret->outer, BLOCK);
    EVP_DigestUpdate(context, digest, SECRET_DIGEST);
    EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
}

bool secret_digest_equal(const unsigned char a[SECRET_DIGEST],
                         const unsigned char b[SECRET_DIGEST]) {
    return CRYPTO_memcmp(a, b, SECRET_DIGEST) == 0;
}
