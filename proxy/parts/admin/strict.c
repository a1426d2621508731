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

/* Fields that may be there once: the guard takes the first of them, and another reader may take the last. */
enum { SINGLE_HOST, SINGLE_LENGTH, SINGLES = 7 };
static const char *const singles[SINGLES] = {
    [SINGLE_HOST] = "Host", [SINGLE_LENGTH] = "Content-Length",
    "Authorization",        "Origin",
    "Sec-Fetch-Site",       "Sec-Fetch-Mode",
    "Sec-Fetch-Dest"};
static const char *const too_many[SINGLES] = {"the request has more than one Host field",
                                              "the request has more than one Content-Length field",
                                              "the request has more than one Authorization field",
                                              "the request has more than one Origin field",
                                              "the request has more than one Sec-Fetch-Site field",
                                              "the request has more than one Sec-Fetch-Mode field",
                                              "the request has more than one Sec-Fetch-Dest field"};

struct fields {
    unsigned counts[SINGLES], codings;
    bool names_bad, cut;
    const char *coding;
    const char *at, *end; /* behind the last field, in the head as it came; its end */
};

/* What stands between two fields: blanks, and the end of a line, in place of which libmicrohttpd has written zero bytes.
 * More of these came from the caller. */
static bool is_between(const char *from, const char *to, unsigned line_ends) {
    unsigned zeros = 0;
    if (to < from)
        return false;
    for (; from < to; from++) {
        zeros += *from == '\0';
        if (*from != '\0' && *from != ' ' && *from != '\t' && *from != '\r' && *from != '\n')
            return false;
    }
    return zeros <= 2 * line_ends;
}

/* libmicrohttpd leaves a field where it came, except one of several lines. */
static void note_place(struct fields *fields, const char *name, const char *value) {
    bool inside = name >= fields->at && value >= name && value <= fields->end;
    fields->cut |= !inside || !is_between(fields->at, name, 1);
    if (inside)
        fields->at = value + strlen(value);
}

static enum MHD_Result note_field(void *arg, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct fields *fields = arg;
    const char *end = name + strlen(name);
    (void)kind;
    fields->names_bad |= name == end || bytes_skip_token(name, end) != end;
    note_place(fields, name, value == NULL ? end : value);
    for (unsigned i = 0; i < SINGLES; i++)
        fields->counts[i] += strcasecmp(name, singles[i]) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        fields->codings++;
        fields->coding = value;
    }
    return MHD_YES;
}

const char *strict_fields(struct MHD_Connection *connection, const char *method,
                          const char *version) {
    const union MHD_ConnectionInfo *head =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct fields fields = {.at = version + strlen(version), .end = method + head->header_size};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, note_field, &fields);
    if (fields.names_bad)
        return "the name of a field has bytes that no name can have; write nothing between it and "
               "its colon";
    if (fields.cut || !is_between(fields.at, fields.end, 2))
        return "a field has a zero byte, or goes over several lines";
    for (unsigned i = 0; i < SINGLES; i++)
        if (fields.counts[i] > 1)
            return too_many[i];
    if (fields.counts[SINGLE_HOST] == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        return "the request has no Host field";
    if (fields.codings > 0 && fields.counts[SINGLE_LENGTH] > 0)
        return "the request has both Content-Length and Transfer-Encoding";
    if (fields.codings > 1 || (fields.coding != NULL && strcasecmp(fields.coding, "chunked") != 0))
        return "the request has a Transfer-Encoding other than chunked";
    return NULL;
}
