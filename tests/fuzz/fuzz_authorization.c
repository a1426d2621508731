/*
 * Authorization and Proxy-Authorization: the value of a field.
 *
 * What is accepted lies inside the value, and consists of what the grammar says. Names and passwords
 * of Basic are the bytes that base64 stands for: encoded again they are the same text.
 */
#include "base/assert.h"
#include "identity/authorization.h"

#include <openssl/evp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice part, struct slice whole) {
    if (part.length > 0)
        ASSERT(part.base >= whole.base && part.base + part.length <= whole.base + whole.length);
}

static void check_basic(struct slice token68) {
    char text[AUTHORIZATION_BASIC], again[2 * AUTHORIZATION_BASIC];
    struct slice user, password;
    if (!authorization_basic(token68, text, &user, &password))
        return;
    ASSERT(memchr(user.base, ':', user.length) == NULL);
    ASSERT(password.base == user.base + user.length + 1);
    for (size_t i = 0; i < user.length + 1 + password.length; i++)
        ASSERT((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
    int length = EVP_EncodeBlock((unsigned char *)again, (const unsigned char *)text,
                                 (int)(user.length + 1 + password.length));
    ASSERT(slice_equal(slice_make(again, (size_t)length), token68));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = slice_dup(slice_make((const char *)data, size));
    struct slice value = slice_make(copy, size);
    struct authorization found;
    if (authorization_parse(value, &found)) {
        ASSERT(found.scheme.length > 0);
        ASSERT(found.token68.length == 0 || found.parameters.length == 0);
        check_inside(found.scheme, value);
        check_inside(found.token68, value);
        check_inside(found.parameters, value);
        check_basic(found.token68);
    }
    free(copy);
    return 0;
}
