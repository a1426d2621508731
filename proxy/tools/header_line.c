#include "tools/header_line.h"

#include "http/bytes.h"
#include "http/names.h"

const char *header_line_check(const char *line) {
    size_t length = strcspn(line, ":");
    const char *end = line + strlen(line);
    if (line[length] != ':' || length == 0)
        return "--header needs a whole field line: --header 'NAME: VALUE'";
    for (size_t i = 0; i < length; i++)
        if (!bytes_is(line[i], BYTES_TOKEN))
            return "--header: the name before the colon has a byte that is not allowed in a field "
                   "name";
    if (bytes_skip(line + length, end, BYTES_TEXT) != end)
        return "--header: the value has a line end or another control byte; give each field a "
               "--header of its own";
    switch (http_name_lookup(slice_make(line, length))) {
    case HTTP_CONTENT_LENGTH:
    case HTTP_TRANSFER_ENCODING:
        return "--header: retortctl writes Content-Length and Transfer-Encoding itself";
    default: return NULL;
    }
}
