#include "log/line.h"

#include "base/text.h"

void log_line_put_text(struct log_line *line, struct slice text) {
    size_t room = line->at < line->end ? (size_t)(line->end - line->at) : 0;
    log_line_put(line, slice_make(text.base, text.length < room ? text.length : room));
}

static void log_line_put_hex(struct log_line *line, struct slice before, unsigned byte) {
    static const char digits[] = "0123456789ABCDEF";
    log_line_put(line, before);
    *line->at++ = digits[byte >> 4];
    *line->at++ = digits[byte & 15];
}

static const char *shown_end(struct slice text) {
    return text.base + (text.length < LOG_LINE_SHOWN ? text.length : LOG_LINE_SHOWN);
}

/* Copies what is plain at the front; returns where it ends. */
static const char *put_front(struct log_line *line, const char *at, const char *end) {
    const char *plain = at;
    at = bytes_skip(at, end, BYTES_PLAIN);
    log_line_put_text(line, slice_make(plain, (size_t)(at - plain)));
    return at;
}

void log_line_put_escaped(struct log_line *line, struct slice text, bool keep_spaces) {
    const char *at = text.base, *end = shown_end(text);
    while (at < end && line->at < line->end) {
        at = put_front(line, at, end);
        if (at == end)
            return;
        if (*at == ' ' && keep_spaces)
            log_line_put(line, SLICE(" "));
        else
            log_line_put_hex(line, SLICE("%"), (unsigned char)*at);
        at++;
    }
}

static void put_quoted_byte(struct log_line *line, unsigned char c) {
    if (c == '"' || c == '\\') {
        *line->at++ = '\\';
        *line->at++ = (char)c;
    } else if (c == ' ') {
        *line->at++ = ' ';
    } else {
        log_line_put_hex(line, SLICE("\\x"), c);
    }
}

void log_line_put_quoted(struct log_line *line, struct slice text) {
    const char *at = text.base, *end = shown_end(text);
    if (text.length == 0)
        log_line_put(line, SLICE("-"));
    while (at < end && line->at < line->end) {
        at = put_front(line, at, end);
        if (at < end)
            put_quoted_byte(line, (unsigned char)*at++);
    }
}

static void put_unit(struct log_line *line, unsigned unit) {
    log_line_put_hex(line, SLICE("\\u"), unit >> 8);
    log_line_put_hex(line, SLICE(""), unit & 0xff);
}

/* What stands at the front, which is not plain; returns its length. */
static size_t put_json_character(struct log_line *line, struct slice text) {
    uint32_t character;
    size_t length = text_decode(text, &character);
    if (length == 0) {
        log_line_put(line, SLICE("\\ufffd"));
        return 1;
    }
    if (character == '"' || character == '\\') {
        log_line_put(line, SLICE("\\"));
        log_line_put(line, slice_make(text.base, 1));
    } else if (!text_is_hidden(character)) {
        log_line_put(line, slice_make(text.base, length));
    } else if (character < 0x10000) {
        put_unit(line, character);
    } else {
        put_unit(line, 0xd7c0 + (character >> 10));
        put_unit(line, 0xdc00 + (character & 0x3ff));
    }
    return length;
}

void log_line_put_json_inside(struct log_line *line, struct slice text) {
    const char *at = text.base, *end = shown_end(text);
    while (at < end && line->at < line->end) {
        at = put_front(line, at, end);
        if (at < end)
            at += put_json_character(line, slice_make(at, (size_t)(end - at)));
    }
}
