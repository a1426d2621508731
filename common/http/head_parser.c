#include "http/head_parser.h"

#include "http/bytes.h"

/* The bytes not read yet. */
struct scan {
    const char *at, *end;
    bool of_response;
};

/* The results of the functions below. A result below zero is the negative of an enum http_error. */
enum { MORE = 0, TAKEN = 1, BAD = -HTTP_ERROR_SYNTAX };

static inline bool head_parser_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline int take_crlf(struct scan *scan) {
    if (scan->at == scan->end)
        return MORE;
    if (scan->at[0] != '\r')
        return BAD;
    if (scan->end - scan->at < 2)
        return MORE;
    if (scan->at[1] != '\n')
        return BAD;
    scan->at += 2;
    return TAKEN;
}

static inline int take_space(struct scan *scan) {
    if (scan->at == scan->end)
        return MORE;
    return *scan->at++ == ' ' ? TAKEN : BAD;
}

enum { PROTOCOL_LENGTH = 5, VERSION_LENGTH = 8 };

static bool begins_version(const char *at, size_t length, const char *protocol) {
    static const char digits[] = "     0.0";
    for (size_t i = 0; i < length; i++) {
        bool good = i < PROTOCOL_LENGTH ? at[i] == protocol[i]
                    : digits[i] == '0'  ? head_parser_is_digit(at[i])
                                        : at[i] == digits[i];
        if (!good)
            return false;
    }
    return true;
}

/* Takes a version such as "HTTP/1.1"; `protocol` is "HTTP/" or "ICAP/". */
static int take_version(struct scan *scan, const char *protocol, unsigned *version) {
    const char *at = scan->at;
    size_t length = (size_t)(scan->end - at);
    if (length < VERSION_LENGTH)
        return begins_version(at, length, protocol) ? MORE : BAD;
    if (memcmp(at, protocol, PROTOCOL_LENGTH) != 0 || !head_parser_is_digit(at[5]) ||
        at[6] != '.' || !head_parser_is_digit(at[7]))
        return BAD;
    if (at[5] != '1')
        return at[5] == '0' ? BAD : -HTTP_ERROR_VERSION;
    *version = at[7] == '0' ? 10 : 11;
    scan->at += VERSION_LENGTH;
    return TAKEN;
}

/* Skips empty lines that old clients may send after the body of the former request (RFC 9112 §2.2).
 */
static int skip_empty_lines(struct scan *scan) {
    enum { EMPTY_LINES_MAX = 2 };
    for (unsigned lines = 0; scan->at < scan->end && *scan->at == '\r'; lines++) {
        int result = lines == EMPTY_LINES_MAX ? BAD : take_crlf(scan);
        if (result != TAKEN)
            return result;
    }
    return TAKEN;
}

static int take_method(struct http_head *head, struct scan *scan) {
    const char *method = scan->at;
    scan->at = bytes_skip_token(method, scan->end);
    head->method = slice_make(method, (size_t)(scan->at - method));
    if (scan->at < scan->end && head->method.length == 0)
        return BAD;
    head->method_id = http_method_lookup(head->method);
    return take_space(scan);
}

static int take_target(struct http_head *head, struct scan *scan) {
    const char *target = scan->at;
    scan->at = bytes_skip(scan->at, scan->end, BYTES_TARGET);
    head->target = slice_make(target, (size_t)(scan->at - target));
    if (scan->at < scan->end && head->target.length == 0)
        return BAD;
    return take_space(scan);
}

static int take_request_line(struct http_head *head, struct scan *scan) {
    int result = skip_empty_lines(scan);
    if (result == TAKEN)
        result = take_method(head, scan);
    if (result == TAKEN)
        result = take_target(head, scan);
    if (result == TAKEN)
        result = take_version(scan, "HTTP/", &head->version);
    if (result == TAKEN)
        result = take_crlf(scan);
    return result;
}

static int take_status(struct http_head *head, struct scan *scan) {
    head->status = 0;
    for (unsigned i = 0; i < 3; i++, scan->at++) {
        if (scan->at == scan->end)
            return MORE;
        if (!head_parser_is_digit(*scan->at))
            return BAD;
        head->status = head->status * 10 + (unsigned)(*scan->at - '0');
    }
    return head->status < 100 ? BAD : TAKEN;
}

/* The space in front of an absent reason phrase may be absent too: many servers leave it out, and
 * the meaning of the line is still clear. */
static int take_reason(struct http_head *head, struct scan *scan) {
    head->reason = slice_make(scan->at, 0);
    if (scan->at == scan->end)
        return MORE;
    if (*scan->at != ' ')
        return take_crlf(scan);
    const char *reason = ++scan->at;
    scan->at = bytes_skip(scan->at, scan->end, BYTES_TEXT);
    head->reason = slice_make(reason, (size_t)(scan->at - reason));
    return take_crlf(scan);
}

static int take_status_line(struct http_head *head, struct scan *scan, const char *protocol) {
    int result = take_version(scan, protocol, &head->version);
    if (result == TAKEN)
        result = take_space(scan);
    if (result == TAKEN)
        result = take_status(head, scan);
    if (result == TAKEN)
        result = take_reason(head, scan);
    return result;
}

static int take_http_status_line(struct http_head *head, struct scan *scan) {
    return take_status_line(head, scan, "HTTP/");
}

static int take_icap_status_line(struct http_head *head, struct scan *scan) {
    int result = take_status_line(head, scan, "ICAP/");
    head->version = 10;
    return result;
}

static inline bool head_parser_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* "A server MUST reject, with a response status code of 400 (Bad Request), any received request
 * message that contains whitespace between a header field name and colon. A proxy MUST remove any
 * such whitespace from a response message before forwarding the message downstream" (RFC 9112
 * §5.1). */
static const char *skip_blanks_of_response(const struct scan *scan, const char *at) {
    while (scan->of_response && at < scan->end && head_parser_is_blank(*at))
        at++;
    return at;
}

/* Takes one field line. A line that begins with white space (obs-fold) has no name, so it is
 * refused. */
static int take_field(struct http_head *head, struct scan *scan) {
    const char *at = scan->at, *end = scan->end, *name = at;
    at = bytes_skip_token(at, end);
    size_t name_length = (size_t)(at - name);
    if (at < end && *at != ':' && name_length > 0)
        at = skip_blanks_of_response(scan, at);
    if (at == end)
        return MORE;
    if (*at != ':' || name_length == 0)
        return BAD;
    do
        at++;
    while (at < end && head_parser_is_blank(*at));
    const char *value = at;
    scan->at = at = bytes_skip(at, end, BYTES_TEXT);
    int result = take_crlf(scan);
    if (result != TAKEN)
        return result;
    if (head->field_count == HTTP_FIELDS_MAX)
        return -HTTP_ERROR_TOO_MANY_FIELDS;
    while (at > value && head_parser_is_blank(at[-1]))
        at--;
    struct http_field *field = &head->fields[head->field_count++];
    field->name = slice_make(name, name_length);
    field->value = slice_make(value, (size_t)(at - value));
    field->id = http_name_lookup(field->name);
    http_head_note(head, field->id);
    return TAKEN;
}

/* Takes the field lines, up to and with the empty line. */
static int take_fields(struct http_head *head, struct scan *scan) {
    while (scan->at < scan->end) {
        if (*scan->at == '\r')
            return take_crlf(scan);
        int result = take_field(head, scan);
        if (result != TAKEN)
            return result;
    }
    return MORE;
}

/*
 * The first `checked` bytes have no error, and no line has ended since. So only the last,
 * incomplete line is checked. This saves work when a head arrives byte by byte. A line end within
 * the first EMPTY_LINES bytes belongs to an empty line before the start line, because a start line
 * is longer than that.
 */
static ssize_t parse_open_line(struct http_head *head,
                               int (*take_start_line)(struct http_head *, struct scan *),
                               struct scan scan, size_t checked) {
    enum { EMPTY_LINES = 4 };
    const char *line_end = memrchr(scan.at, '\n', checked);
    if (line_end == NULL || line_end - scan.at < EMPTY_LINES)
        return take_start_line(head, &scan);
    scan.at = line_end + 1;
    return take_fields(head, &scan);
}

static inline ssize_t head_parser_parse(struct http_head *head,
                                        int (*take_start_line)(struct http_head *, struct scan *),
                                        const char *bytes, size_t length, size_t checked) {
    http_head_init(head);
    if (length == 0)
        return MORE;
    struct scan scan = {bytes, bytes + length, take_start_line != take_request_line};
    if (checked > 0 && checked <= length && memchr(bytes + checked, '\n', length - checked) == NULL)
        return parse_open_line(head, take_start_line, scan, checked);
    int result = take_start_line(head, &scan);
    if (result == TAKEN)
        result = take_fields(head, &scan);
    return result == TAKEN ? scan.at - bytes : result;
}

ssize_t http_head_parse_request(struct http_head *head, const char *bytes, size_t length,
                                size_t checked) {
    return head_parser_parse(head, take_request_line, bytes, length, checked);
}

ssize_t http_head_parse_response(struct http_head *head, const char *bytes, size_t length,
                                 size_t checked) {
    return head_parser_parse(head, take_http_status_line, bytes, length, checked);
}

ssize_t http_head_parse_icap_response(struct http_head *head, const char *bytes, size_t length,
                                      size_t checked) {
    return head_parser_parse(head, take_icap_status_line, bytes, length, checked);
}

bool http_head_unfold(char *bytes, size_t length) {
    enum { FOLD = 3 }; /* CR LF and a blank */
    char *at = memchr(bytes, '\n', length), *end = bytes + length;
    bool replaced = false;
    if (at == NULL || ++at == end || *at == '\r')
        return false;
    for (; end - at >= FOLD && (at = memchr(at, '\r', (size_t)(end - at) - 2)) != NULL; at++) {
        if (at[1] != '\n')
            continue;
        if (at[2] == '\r')
            break;
        if (head_parser_is_blank(at[2])) {
            at[0] = at[1] = ' ';
            replaced = true;
        }
    }
    return replaced;
}

ssize_t http_head_parse_fields(struct http_head *head, const char *bytes, size_t length) {
    struct scan scan = {bytes, bytes + length, true};
    http_head_init(head);
    int result = take_fields(head, &scan);
    return result == TAKEN ? scan.at - bytes : result;
}

unsigned http_error_status(enum http_error error) {
    switch (error) {
    case HTTP_ERROR_TOO_MANY_FIELDS: return 431;
    case HTTP_ERROR_VERSION: return 505;
    case HTTP_ERROR_SYNTAX: break;
    }
    return 400;
}

const char *http_error_text(enum http_error error) {
    switch (error) {
    case HTTP_ERROR_TOO_MANY_FIELDS: return "the message has too many header fields";
    case HTTP_ERROR_VERSION: return "the protocol version is not supported; use HTTP/1.1";
    case HTTP_ERROR_SYNTAX: break;
    }
    return "the message head is not of HTTP's grammar";
}
