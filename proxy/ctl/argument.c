#include "ctl/argument.h"

#include <stdbool.h>
#include <string.h>

static void argument_put_encoded(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-._~/:", c) != NULL;
        fprintf(out, plain ? "%c" : "%%%02X", c);
    }
}

void argument_put(FILE *out, const char *name, const char *value) {
    if (value == NULL)
        return;
    fprintf(out, "%s=", name);
    argument_put_encoded(out, value);
    fputc('&', out);
}
