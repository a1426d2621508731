#include "libraries.h"

#include "part.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ares.h>
#include <brotli/decode.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

enum { VERSION_SIZE = 64, LIBRARIES = 32 };

struct libraries {
    struct version_library list[LIBRARIES + 1]; /* ends with a NULL name */
    size_t count;
};

static void add(struct libraries *libraries, const struct version_library *more) {
    for (; more->name != NULL && libraries->count < LIBRARIES; more++)
        libraries->list[libraries->count++] = *more;
}

const struct version_library *libraries_list(void) {
    static char pcre2[VERSION_SIZE], brotli[VERSION_SIZE];
    static struct libraries libraries;
    uint32_t number = BrotliDecoderVersion();
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2); /* at most 24 bytes, as its manual says */
    snprintf(brotli, sizeof brotli, "%u.%u.%u", number >> 24, number >> 12 & 0xfff, number & 0xfff);
    const struct version_library network[] = {
        {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"c-ares", ares_version(NULL)},
        {NULL, NULL},
    };
    const struct version_library content[] = {
        {"PCRE2", pcre2},   {"zlib", zlibVersion()},
        {"brotli", brotli}, {"zstd", ZSTD_versionString()},
        {NULL, NULL},
    };
    libraries.count = 0;
    add(&libraries, network);
    PARTS_FOR_EACH (part, libraries)
        add(&libraries, part_table[part]->libraries());
    add(&libraries, content);
    return libraries.list;
}
