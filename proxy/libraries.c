#include "libraries.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ares.h>
#include <brotli/decode.h>
#include <gnutls/gnutls.h>
#include <jansson.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { VERSION_SIZE = 64 };

const struct version_library *libraries_list(void) {
    static char pcre2[VERSION_SIZE], brotli[VERSION_SIZE];
    static struct version_library list[10];
    uint32_t number = BrotliDecoderVersion();
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2); /* at most 24 bytes, as its manual says */
    snprintf(brotli, sizeof brotli, "%u.%u.%u", number >> 24, number >> 12 & 0xfff, number & 0xfff);
    const struct version_library found[] = {
        {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"c-ares", ares_version(NULL)},
        {"libmicrohttpd", MHD_get_version()},
        {"GnuTLS", gnutls_check_version(NULL)},
        {"jansson", jansson_version_str()},
        {"PCRE2", pcre2},
        {"zlib", zlibVersion()},
        {"brotli", brotli},
        {"zstd", ZSTD_versionString()},
        {NULL, NULL},
    };
    _Static_assert(sizeof found == sizeof list, "a place for each library");
    memcpy(list, found, sizeof found);
    return list;
}
