#include "base/version.h"

#include "config.h"

#include <stdio.h>
#include <string.h>

void version_print(const char *program, const struct version_library *libraries) {
    printf("%s %s\n", program, PACKAGE_VERSION);
    for (const struct version_library *library = libraries;
         library != NULL && library->name != NULL; library++)
        printf("%s%s %.*s", library == libraries ? "with " : ", ", library->name,
               (int)strcspn(library->version, " "), library->version); /* PCRE2 adds a date */
    if (libraries != NULL)
        printf("\n");
}
