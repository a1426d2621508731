#include "http/dot_segments.h"

#include <stdint.h>

static int dot_segments_hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Takes one byte, and decodes it if it is encoded. */
static unsigned dot_segments_take_byte(const char **at, const char *end) {
    const char *from = *at;
    int high = -1, low = -1;
    if (end - from >= 3 && from[0] == '%') {
        high = dot_segments_hex_value(from[1]);
        low = dot_segments_hex_value(from[2]);
    }
    *at += high < 0 || low < 0 ? 1 : 3;
    return high < 0 || low < 0 ? (unsigned char)from[0] : (unsigned)(high << 4 | low);
}

/* Removal. */

/* How many dots a segment consists of; 0: it has other bytes. */
static unsigned count_dots(const char *at, const char *end) {
    unsigned count = 0;
    for (; at < end; count++)
        if (dot_segments_take_byte(&at, end) != '.')
            return 0;
    return count;
}

static const char *segment_end(const char *segment, const char *end) {
    const char *slash = memchr(segment, '/', (size_t)(end - segment));
    return slash != NULL ? slash : end;
}

static char *drop_last(const char *begin, char *out) {
    while (out > begin && *--out != '/')
        continue;
    return out;
}

char *dot_segments_remove(char *begin, char *end) {
    char *out = begin;
    for (const char *at = begin; at < end;) {
        const char *next = segment_end(at + 1, end);
        unsigned dots = count_dots(at + 1, next);
        if (dots == 2)
            out = drop_last(begin, out);
        if (dots == 1 || dots == 2) {
            if (next == end)
                *out++ = '/';
        } else {
            memmove(out, at, (size_t)(next - at));
            out += next - at;
        }
        at = next;
    }
    return out;
}

/* Detection of segments that a server may treat as "." or "..". */

/* Takes one byte that may be encoded several times: "%25" is the '%' of the next encoding, and the
 * digits after a '%' may be encoded themselves ("%%32e"). */
static unsigned take_deeply(const char **at, const char *end) {
    unsigned byte = dot_segments_take_byte(at, end);
    while (byte == '%' && end - *at >= 2) {
        const char *rest = *at;
        int high = dot_segments_hex_value((char)dot_segments_take_byte(&rest, end));
        int low =
            rest == end ? -1 : dot_segments_hex_value((char)dot_segments_take_byte(&rest, end));
        if (high < 0 || low < 0)
            break;
        byte = (unsigned)(high << 4 | low);
        *at = rest;
    }
    return byte;
}

/* Takes one character. An ASCII character may also be encoded in two or three bytes (overlong
 * UTF-8). Other characters only need to differ from ASCII. */
static unsigned take_character(const char **at, const char *end) {
    unsigned lead = take_deeply(at, end), next;
    const char *rest = *at;
    if (lead == 0xe0 && rest < end && ((next = take_deeply(&rest, end)) & 0xfe) == 0x80)
        lead = 0xc0 | (next & 1);
    if ((lead != 0xc0 && lead != 0xc1) || rest == end)
        return lead;
    next = take_deeply(&rest, end);
    if ((next & 0xc0) != 0x80)
        return lead;
    *at = rest;
    return (lead & 1) << 6 | (next & 0x3f);
}

/* Most paths have no encoded byte, nothing beyond ASCII, and no segment that begins with a dot: a look at each
 * byte is enough. */
static bool may_have_dots(struct slice path) {
    char before = '/';
    for (size_t i = 0; i < path.length; i++) {
        char c = path.base[i];
        bool begins = before == '/' || before == '\\';
        if (c == '%' || (c & 0x80) != 0 || (c == '.' && begins))
            return true;
        before = c;
    }
    return false;
}

bool dot_segments_may_be_seen(struct slice path) {
    if (!may_have_dots(path))
        return false;
    const char *at = path.base, *end = at + path.length;
    unsigned dots = 0;
    bool others = false, parameters = false;
    while (at < end) {
        unsigned c = take_character(&at, end);
        if (c == '/' || c == '\\') {
            if (!others && (dots == 1 || dots == 2))
                return true;
            dots = 0;
            others = parameters = false;
        } else if (c == ';') {
            parameters = true;
        } else if (c == '.' && !parameters) {
            dots++;
        } else if (!parameters) {
            others = true;
        }
    }
    return !others && (dots == 1 || dots == 2);
}
