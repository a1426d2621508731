/*
 * A log format of an operator's own: a text with %-codes, as Squid's logformat and Apache's
 * LogFormat have them (log/fields.def). It is compiled once, when the settings are loaded, into a
 * list of pieces, and each line is written by walking them (transaction/access_log_format.h).
 *
 *     char error[LOG_FORMAT_ERROR];
 *     struct log_format *format =
 *         log_format_new("%>a %>Hs \"%{User-Agent}>h\"", LOG_ESCAPE_PLAIN, false, error);
 *     if (format == NULL) -> error says which code is unknown
 *     for (const struct log_piece *piece = format->pieces; piece->code != LOG_CODE_END; piece++)
 *         ...
 *     log_format_free(&format);
 *
 * A code is '%', then what may stand in front of its name: a quoting sign, '-', '0' and a width,
 * an argument in braces. Of several names that fit, the longest counts: "%ts" is Squid's. "%%" is a
 * percent sign.
 *
 * Threads: read-only once compiled.
 */
#ifndef RETORT_LOG_FORMAT_H
#define RETORT_LOG_FORMAT_H

#include "base/slice.h"

#include <stdio.h>

enum log_code {
    LOG_CODE_END, /* the literal in front of it is the last */
#define LOG_CODE(enumerator, spelling, argument, icap, kind, value, meaning) LOG_CODE_##enumerator,
#include "log/fields.def"
};

/* How a text from outside is written; see log/line.h. */
enum log_escape {
    LOG_ESCAPE_PLAIN, /* %XX; between double quotes blanks stay */
    LOG_ESCAPE_QUOTED,
    LOG_ESCAPE_JSON,
    LOG_ESCAPE_SPACED, /* as PLAIN, and blanks stay */
};

/* LOG_FORMAT_TEXT: bytes of a format. LOG_FORMAT_WIDTH: the largest width of a value. */
enum {
    LOG_FORMAT_ERROR = 400,
    LOG_FORMAT_TEXT = 4096,
    LOG_FORMAT_PIECES = 100,
    LOG_FORMAT_WIDTH = 60,
};

/* A literal, and a value behind it. */
struct log_piece {
    struct slice literal;
    enum log_code code;
    enum log_escape escape;
    unsigned width; /* at least; 0: as it comes */
    bool left, zeros;
    const char *argument; /* NULL: none */
};

struct log_format {
    unsigned magic;
#define LOG_FORMAT_MAGIC 0x109f0423u
    struct log_piece pieces[LOG_FORMAT_PIECES + 1];
    char *memory; /* what pieces point to */
};

/* `icap`: of a log with a line for each call of an ICAP service. NULL: `error` says what is wrong. */
struct log_format *log_format_new(const char *text, enum log_escape escape, bool icap,
                                  char error[LOG_FORMAT_ERROR]);
void log_format_free(struct log_format **formatp);
/* The name of a request's field that tells the client's address; NULL: the format writes none. */
const char *log_format_tells_client(const struct log_format *format);
/* The table of codes, for the manual. */
void log_format_print_codes(FILE *out);

#endif
