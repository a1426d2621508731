/*
 * A line of a log while it is written: words of our own as they are, and texts from outside so that
 * they can neither forge a line nor steer a terminal.
 *
 *     struct log_line line = log_line_at(out);                  out has LOG_LINE_MAX bytes
 *     log_line_put(&line, SLICE("GET "));
 *     log_line_put_plain(&line, url, false);                    blanks, quotes, ... as %XX
 *     size_t length = (size_t)(line.at - out);
 *
 * Texts from outside share LOG_LINE_TEXT bytes of a line and are cut where these end; what stands
 * around them always fits.
 *
 * Threads: values.
 */
#ifndef RETORT_LOG_LINE_H
#define RETORT_LOG_LINE_H

#include "base/slice.h"
#include "http/bytes.h"

/* LOG_LINE_MAX: bytes that a line may have. LOG_LINE_TEXT: of these, for texts from outside.
 * LOG_LINE_SHOWN: the most that is shown of one text. */
enum { LOG_LINE_MAX = 81920, LOG_LINE_TEXT = 49152, LOG_LINE_SHOWN = 2560 };

struct log_line {
    char *at, *end; /* behind `end` there is only room for what is our own */
};

static inline struct log_line log_line_at(char *out) {
    return (struct log_line){out, out + LOG_LINE_TEXT};
}

static inline void log_line_put(struct log_line *line, struct slice words) {
    line->at = slice_put(line->at, words);
}

static inline void log_line_put_number(struct log_line *line, uint64_t number) {
    line->at = slice_put_number(line->at, (int64_t)number);
}

static inline void log_line_put_three_digits(struct log_line *line, unsigned number) {
    *line->at++ = (char)('0' + number / 100);
    *line->at++ = (char)('0' + number / 10 % 10);
    *line->at++ = (char)('0' + number % 10);
}

/* "17.042", of a number of thousandths. */
static inline void log_line_put_thousandths(struct log_line *line, uint64_t whole,
                                            uint64_t thousandths) {
    log_line_put_number(line, whole);
    log_line_put(line, SLICE("."));
    log_line_put_three_digits(line, (unsigned)thousandths);
}

/* Is it to be copied just as it is? Hardly any text is not. */
static inline bool log_line_is_plain(const struct log_line *line, struct slice text) {
    const char *end = text.base + text.length;
    return text.length <= LOG_LINE_SHOWN && line->end - line->at >= (ptrdiff_t)text.length &&
           bytes_skip(text.base, end, BYTES_PLAIN) == end;
}

/* For log_line_put_plain. */
void log_line_put_escaped(struct log_line *line, struct slice text, bool keep_spaces);

/* Blanks (unless they are kept), quotes, backslashes, control characters and all that is not ASCII
 * are shown as %XX; an empty text as "-". */
static inline void log_line_put_plain(struct log_line *line, struct slice text, bool keep_spaces) {
    if (text.length == 0)
        log_line_put(line, SLICE("-"));
    else if (log_line_is_plain(line, text))
        log_line_put(line, text);
    else
        log_line_put_escaped(line, text, keep_spaces);
}

/* For the inside of double quotes: quotes and backslashes get a backslash in front, control
 * characters and all that is not ASCII become \xXX; an empty text is "-". */
void log_line_put_quoted(struct log_line *line, struct slice text);
/* The inside of a JSON string; an empty text is nothing. */
void log_line_put_json_inside(struct log_line *line, struct slice text);

/* A JSON string (RFC 8259 §7). What would turn the line around or steer a terminal is escaped too.
 */
static inline void log_line_put_json(struct log_line *line, struct slice text) {
    log_line_put(line, SLICE("\""));
    if (log_line_is_plain(line, text))
        log_line_put(line, text);
    else
        log_line_put_json_inside(line, text);
    log_line_put(line, SLICE("\""));
}

/* A text of ours or the settings', as it is, but not beyond the room for texts. */
void log_line_put_text(struct log_line *line, struct slice text);

#endif
