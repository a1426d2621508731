#include "adremover/ascii_host.h"

#include <idn2.h>

bool is_ascii(struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.base[i] >= 0x80)
            return false;
    return true;
}

struct slice ascii_host(struct slice host, char room[ASCII_HOST_MAX]) {
    char text[ASCII_HOST_MAX], *ascii = NULL;
    size_t length = 0;
    if (is_ascii(host))
        return host;
    if (host.length >= sizeof text || memchr(host.base, '\0', host.length) != NULL)
        return SLICE("");
    memcpy(text, host.base, host.length);
    text[host.length] = '\0';
    if (idn2_to_ascii_8z(text, &ascii, IDN2_NONTRANSITIONAL) == IDN2_OK)
        length = strlen(ascii);
    if (length > ASCII_HOST_MAX)
        length = 0;
    memcpy(room, ascii == NULL ? "" : ascii, length);
    idn2_free(ascii);
    return slice_make(room, length);
}
