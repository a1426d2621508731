#include "repair.h"

#include "base/assert.h"
#include "http/bytes.h"

/* A part of a head, by place, because repairs move what stands behind them. */
struct span {
    size_t at, length;
};

static struct slice slice_of(const struct text *head, struct span span) {
    return slice_make(head->bytes + span.at, span.length);
}

/* Puts the words in the place of the span. */
static void replace(struct text *head, struct span span, const char *words) {
    size_t length = strlen(words);
    ASSERT(head->length - span.length + length <= sizeof head->bytes);
    memmove(head->bytes + span.at + length, head->bytes + span.at + span.length,
            head->length - span.at - span.length);
    memcpy(head->bytes + span.at, words, length);
    head->length = head->length - span.length + length;
}

/* The line that begins there, its end included; empty at the end of the text. */
static struct span line_at(const struct text *head, size_t at) {
    const char *begin = head->bytes + at;
    size_t left = head->length - at;
    const char *newline = left == 0 ? NULL : memchr(begin, '\n', left);
    return (struct span){at, newline == NULL ? left : (size_t)(newline - begin) + 1};
}

static struct span without_end(const struct text *head, struct span line) {
    while (line.length > 0 && strchr("\r\n", head->bytes[line.at + line.length - 1]) != NULL &&
           head->bytes[line.at + line.length - 1] != '\0')
        line.length--;
    return line;
}

/* Behind the empty lines in front. */
static struct span start_line(const struct text *head) {
    struct span line = line_at(head, 0);
    while (line.length > 0 && without_end(head, line).length == 0)
        line = line_at(head, line.at + line.length);
    return line;
}

static size_t first_field(const struct text *head) {
    struct span line = start_line(head);
    return line.at + line.length;
}

/* A word of the start line, counted from 0; empty when there are not so many. */
static struct span word(const struct text *head, unsigned number) {
    struct span line = without_end(head, start_line(head)), found = {line.at, 0};
    size_t end = line.at + line.length;
    for (;; number--) {
        size_t at = found.at + found.length;
        while (at < end && head->bytes[at] == ' ')
            at++;
        found = (struct span){at, 0};
        while (at + found.length < end && head->bytes[at + found.length] != ' ')
            found.length++;
        if (number == 0 || found.length == 0)
            return found;
    }
}

static bool is_response(const struct text *head) {
    return reading_is_response(slice_make(head->bytes, head->length));
}

/* "HTTP/1.1", wherever it stands. */
static struct span version_of(const struct text *head) {
    struct span first = {0, head->length < 8 ? head->length : 8};
    return is_response(head) ? first : word(head, 2);
}

static bool is_version(struct slice text) {
    return text.length == 8 && slice_starts_with(text, SLICE("HTTP/")) && text.base[6] == '.';
}

bool repair_version_other(struct text *head) {
    struct span version = version_of(head);
    struct slice text = slice_of(head, version);
    if (!is_version(text) || text.base[5] == '1')
        return false;
    replace(head, version, "HTTP/1.1");
    return true;
}

bool repair_version_minor(struct text *head) {
    struct span version = version_of(head);
    struct slice text = slice_of(head, version);
    if (!is_version(text) || text.base[5] != '1' || text.base[7] < '2' || text.base[7] > '9')
        return false;
    replace(head, version, "HTTP/1.1");
    return true;
}

bool repair_no_version(struct text *head) {
    struct span method = word(head, 0), target = word(head, 1), version = word(head, 2);
    if (is_response(head) || method.length == 0 || version.length > 0)
        return false;
    struct span line = without_end(head, start_line(head));
    size_t end = target.length > 0 ? target.at + target.length : method.at + method.length;
    struct span behind = {end, line.at + line.length - end};
    replace(head, behind, target.length > 0 ? " HTTP/1.1" : " a:1 HTTP/1.1");
    return true;
}

bool repair_protocol(struct text *head) {
    static const char *const names[] = {"RTSP/", "ICE/"};
    struct span version = version_of(head);
    for (size_t i = 0; i < 2; i++)
        if (slice_starts_with(slice_of(head, version), slice_from(names[i]))) {
            struct span name = {version.at, strlen(names[i])};
            replace(head, name, "HTTP/");
            return true;
        }
    return false;
}

bool repair_method(struct text *head) {
    static const char *const known[] = {
        "DELETE",     "GET",      "HEAD",       "POST",     "PUT",    "CONNECT",   "OPTIONS",
        "TRACE",      "COPY",     "LOCK",       "MKCOL",    "MOVE",   "PROPFIND",  "PROPPATCH",
        "SEARCH",     "UNLOCK",   "BIND",       "REBIND",   "UNBIND", "ACL",       "REPORT",
        "MKACTIVITY", "CHECKOUT", "MERGE",      "M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE",
        "PATCH",      "PURGE",    "MKCALENDAR", "LINK",     "UNLINK"};
    struct span method = word(head, 0);
    if (is_response(head) || method.length == 0)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (slice_equal(slice_of(head, method), slice_from(known[i])))
            return false;
    replace(head, method, "GET");
    return true;
}

bool repair_target(struct text *head) {
    struct span method = word(head, 0), target = word(head, 1);
    const char *plain = slice_equal(slice_of(head, method), SLICE("CONNECT")) ? "a:1" : "/";
    if (is_response(head) || target.length == 0 ||
        slice_equal(slice_of(head, target), slice_from(plain)))
        return false;
    replace(head, target, plain);
    return true;
}

bool repair_target_bytes(struct text *head) {
    struct span target = word(head, 1);
    bool changed = false;
    for (size_t i = target.at; i < target.at + target.length && !is_response(head); i++)
        if (head->bytes[i] == '\t' || head->bytes[i] == '\f') {
            head->bytes[i] = 'x';
            changed = true;
        }
    return changed;
}

bool repair_spaces(struct text *head) {
    bool changed = false;
    for (unsigned i = 0; i < 2 && !is_response(head); i++) {
        struct span left = word(head, i), right = word(head, i + 1);
        size_t end = left.at + left.length;
        if (right.length == 0 || right.at == end + 1)
            continue;
        struct span between = {end, right.at - end};
        replace(head, between, " ");
        changed = true;
    }
    return changed;
}

bool repair_empty_lines(struct text *head) {
    struct span before = {0, 0};
    while (before.length < head->length &&
           (head->bytes[before.length] == '\r' || head->bytes[before.length] == '\n'))
        before.length++;
    if (before.length == 0)
        return false;
    replace(head, before, "");
    return true;
}

bool repair_bare_lf(struct text *head) {
    bool changed = false;
    for (size_t i = 0; i < head->length; i++)
        if (head->bytes[i] == '\n' && (i == 0 || head->bytes[i - 1] != '\r')) {
            if (head->length == sizeof head->bytes)
                return false;
            struct span here = {i++, 0};
            replace(head, here, "\r");
            changed = true;
        }
    return changed;
}

/* llhttp takes the byte behind such a CR for the LF, whatever it is. */
bool repair_bare_cr(struct text *head) {
    bool changed = false;
    for (size_t i = 0; i + 1 < head->length; i++)
        if (head->bytes[i] == '\r' && head->bytes[i + 1] != '\n') {
            head->bytes[i + 1] = '\n';
            changed = true;
        }
    return changed;
}

/* What stands where the status should becomes the reason. */
bool repair_status(struct text *head) {
    struct span behind = {strlen("HTTP/1.1"), 0};
    if (!is_response(head) || head->length < behind.at)
        return false;
    const char *at = head->bytes + behind.at;
    size_t left = head->length - behind.at;
    uint64_t number;
    if (left >= 5 && at[0] == ' ' && slice_to_uint64(slice_make(at + 1, 3), &number) &&
        number >= 100 && strchr(" \r\n", at[4]) != NULL)
        return false;
    replace(head, behind, " 200");
    return true;
}

bool repair_reason(struct text *head) {
    struct span line = without_end(head, start_line(head));
    bool changed = false;
    for (size_t i = line.at; i < line.at + line.length && is_response(head); i++) {
        unsigned char c = (unsigned char)head->bytes[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            head->bytes[i] = '?';
            changed = true;
        }
    }
    return changed;
}

bool repair_folds(struct text *head) {
    bool changed = false;
    struct span line = line_at(head, first_field(head));
    while (line.length > 0 && without_end(head, line).length > 0) {
        struct span next = line_at(head, line.at + line.length);
        struct span kept = without_end(head, line);
        size_t end = kept.at + kept.length;
        if (next.length > 0 && strchr(" \t", head->bytes[next.at]) != NULL &&
            head->bytes[next.at] != '\0') {
            memset(head->bytes + end, ' ', next.at - end);
            line = line_at(head, line.at);
            changed = true;
        } else {
            line = next;
        }
    }
    return changed;
}

bool repair_names(struct text *head) {
    bool changed = false;
    struct span line = line_at(head, first_field(head));
    while (line.length > 0 && without_end(head, line).length > 0) {
        for (size_t i = line.at; i < line.at + line.length && head->bytes[i] != ':'; i++)
            if (head->bytes[i] == ' ' && memchr(head->bytes + i, ':', line.at + line.length - i)) {
                head->bytes[i] = 'x';
                changed = true;
            }
        line = line_at(head, line.at + line.length);
    }
    return changed;
}

/* Those between a name and its colon. */
static struct span blanks_before_colon(const struct text *head, struct span line) {
    size_t at = line.at, end = line.at + line.length;
    while (at < end && bytes_is(head->bytes[at], BYTES_TOKEN))
        at++;
    struct span blanks = {at, 0};
    while (at < end && (head->bytes[at] == ' ' || head->bytes[at] == '\t'))
        at++;
    blanks.length = at - blanks.at;
    bool before = blanks.at > line.at && at < end && head->bytes[at] == ':';
    return before ? blanks : (struct span){at, 0};
}

bool repair_blanks(struct text *head) {
    bool changed = false;
    struct span line = line_at(head, first_field(head));
    while (is_response(head) && line.length > 0 && without_end(head, line).length > 0) {
        struct span blanks = blanks_before_colon(head, line);
        if (blanks.length > 0) {
            replace(head, blanks, "");
            line.length -= blanks.length;
            changed = true;
        }
        line = line_at(head, line.at + line.length);
    }
    return changed;
}

bool repair_no_name(struct text *head) {
    bool changed = false;
    struct span line = line_at(head, first_field(head));
    while (line.length > 0 && without_end(head, line).length > 0) {
        if (head->bytes[line.at] == ':' && head->length < sizeof head->bytes) {
            struct span before = {line.at, 0};
            replace(head, before, "X");
            line.length++;
            changed = true;
        }
        line = line_at(head, line.at + line.length);
    }
    return changed;
}

bool repair_many_fields(struct text *head) {
    struct span line = line_at(head, first_field(head));
    unsigned count = 0;
    while (line.length > 0 && without_end(head, line).length > 0 && count++ < HTTP_FIELDS_MAX)
        line = line_at(head, line.at + line.length);
    size_t begin = line.at;
    while (line.length > 0 && without_end(head, line).length > 0)
        line = line_at(head, line.at + line.length);
    struct span further = {begin, line.at - begin};
    if (further.length > 0)
        replace(head, further, "");
    return further.length > 0;
}

static bool is_field(const struct text *head, struct span line, const char *name) {
    struct slice text = slice_of(head, line), prefix = slice_from(name);
    return text.length > prefix.length && text.base[prefix.length] == ':' &&
           slice_starts_with_nocase(text, prefix);
}

/* The next field of that name from there on; empty when there is none. */
static struct span find_field(const struct text *head, const char *name, size_t from) {
    struct span line = line_at(head, from);
    while (line.length > 0 && without_end(head, line).length > 0) {
        if (is_field(head, line, name))
            return line;
        line = line_at(head, line.at + line.length);
    }
    return (struct span){line.at, 0};
}

static unsigned remove_fields(struct text *head, const char *name, size_t from) {
    unsigned count = 0;
    for (;; count++) {
        struct span line = find_field(head, name, from);
        if (line.length == 0)
            return count;
        replace(head, line, "");
    }
}

static struct slice value_of(const struct text *head, struct span line, const char *name) {
    struct slice text = slice_of(head, without_end(head, line));
    size_t skip = strlen(name) + 1;
    return slice_trim(slice_make(text.base + skip, text.length - skip));
}

bool repair_tabs(struct text *head) {
    static const char *const names[] = {"content-length", "transfer-encoding"};
    bool changed = false;
    for (size_t i = 0; i < 2; i++) {
        struct span line = find_field(head, names[i], first_field(head));
        for (; line.length > 0; line = find_field(head, names[i], line.at + line.length))
            for (size_t j = line.at; j < line.at + line.length; j++)
                if (head->bytes[j] == '\t') {
                    head->bytes[j] = ' ';
                    changed = true;
                }
    }
    return changed;
}

bool repair_length_repeated(struct text *head) {
    struct span line = find_field(head, "content-length", first_field(head));
    if (line.length == 0)
        return false;
    struct slice value = value_of(head, line, "content-length"), digits = value;
    for (digits.length = 0; digits.length < value.length; digits.length++)
        if (digits.base[digits.length] < '0' || digits.base[digits.length] > '9')
            break;
    unsigned removed = remove_fields(head, "content-length", line.at + line.length);
    struct span rest = {(size_t)(digits.base + digits.length - head->bytes),
                        value.length - digits.length};
    if (rest.length > 0)
        replace(head, rest, "");
    return removed > 0 || rest.length > 0;
}

bool repair_length_large(struct text *head) {
    struct span line = find_field(head, "content-length", first_field(head));
    uint64_t number;
    if (line.length == 0 || !slice_to_uint64(value_of(head, line, "content-length"), &number) ||
        number <= INT64_MAX)
        return false;
    replace(head, without_end(head, line), "Content-Length: 1");
    return true;
}

bool repair_empty_codings(struct text *head) {
    static const char name[] = "transfer-encoding";
    bool changed = false;
    struct span line = find_field(head, name, first_field(head));
    while (line.length > 0) {
        size_t next = line.at + line.length;
        if (value_of(head, line, name).length == 0) {
            replace(head, line, "");
            next = line.at;
            changed = true;
        }
        line = find_field(head, name, next);
    }
    return changed;
}

bool repair_codings(struct text *head) {
    struct span line = find_field(head, "transfer-encoding", first_field(head));
    if (line.length == 0)
        return false;
    unsigned removed = remove_fields(head, "transfer-encoding", line.at + line.length);
    if (removed == 0 &&
        slice_equal_nocase(value_of(head, line, "transfer-encoding"), SLICE("chunked")))
        return false;
    replace(head, without_end(head, line), "Transfer-Encoding: chunked");
    return true;
}

bool repair_coding_version(struct text *head) {
    struct span version = version_of(head);
    if (find_field(head, "transfer-encoding", first_field(head)).length == 0 ||
        !slice_equal(slice_of(head, version), SLICE("HTTP/1.0")))
        return false;
    replace(head, version, "HTTP/1.1");
    return true;
}

static bool remove_framing(struct text *head) {
    size_t from = first_field(head);
    return remove_fields(head, "content-length", from) +
               remove_fields(head, "transfer-encoding", from) >
           0;
}

bool repair_connect_body(struct text *head) {
    return !is_response(head) && slice_equal(slice_of(head, word(head, 0)), SLICE("CONNECT")) &&
           remove_framing(head);
}

bool repair_never_a_body(struct text *head) {
    struct slice status = slice_of(head, word(head, 1));
    return is_response(head) && status.length >= 3 &&
           (status.base[0] == '1' || memcmp(status.base, "204", 3) == 0 ||
            memcmp(status.base, "304", 3) == 0) &&
           remove_framing(head);
}
