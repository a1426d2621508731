#include "admin/strict.h"

#include "http/bytes.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const char *strict_target(const char *uri) {
    for (const char *at = uri; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
            return "the request target has a byte that must be percent-encoded";
        if (*at != '%')
            continue;
        if (!isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2]))
            return "the request target has a % that is no escape; write %25";
        if (at[1] == '0' && at[2] == '0')
            return "the request target has %00, which no path and no argument can have";
    }
    return NULL;
}

struct fields {
    unsigned hosts, lengths, codings;
    bool names_bad;
    const char *coding;
};

static enum MHD_Result note_field(void *arg, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct fields *fields = arg;
    const char *end = name + strlen(name);
    (void)kind;
    fields->names_bad |= name == end || bytes_skip_token(name, end) != end;
    fields->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    fields->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        fields->codings++;
        fields->coding = value;
    }
    return MHD_YES;
}

const char *strict_fields(struct MHD_Connection *connection, const char *version) {
    struct fields fields = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, note_field, &fields);
    if (fields.names_bad)
        return "the name of a field has bytes that no name can have; write nothing between it and "
               "its colon";
    if (fields.hosts > 1)
        return "the request has more than one Host field";
    if (fields.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        return "the request has no Host field";
    if (fields.lengths > 1)
        return "the request has more than one Content-Length field";
    if (fields.codings > 0 && fields.lengths > 0)
        return "the request has both Content-Length and Transfer-Encoding";
    if (fields.codings > 1 || (fields.coding != NULL && strcasecmp(fields.coding, "chunked") != 0))
        return "the request has a Transfer-Encoding other than chunked";
    return NULL;
}
