#include "libraries.h"

#include "part.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ares.h>
#include <openssl/crypto.h>
#include <pcre2.h>

enum { VERSION_SIZE = 64, LIBRARIES = 32 };

struct libraries {
    struct version_library list[LIBRARIES + 1]; /* ends with a NULL name */
    size_t count;
};

static void add(struct libraries *libraries, const struct version_library *more) {
    for (; more->name != NULL && libraries->count < LIBRARIES; more++)
        libraries->list[libraries->count++] = *more;
}

/* Libraries of contents stand behind those that take messages in and send them. */
static void libraries_of_parts(struct libraries *libraries, bool of_codings) {
    PARTS_FOR_EACH (part, libraries)
        if ((part_table[part]->codings != NULL) == of_codings)
            add(libraries, part_table[part]->libraries());
}

const struct version_library *libraries_list(void) {
    static char pcre2[VERSION_SIZE];
    static struct libraries libraries;
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2); /* at most 24 bytes, as its manual says */
    const struct version_library network[] = {
        {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"c-ares", ares_version(NULL)},
        {NULL, NULL},
    };
    libraries.count = 0;
    add(&libraries, network);
    libraries_of_parts(&libraries, false);
    add(&libraries, (const struct version_library[]){{"PCRE2", pcre2}, {NULL, NULL}});
    libraries_of_parts(&libraries, true);
    return libraries.list;
}
