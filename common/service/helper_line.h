/*
 * The line protocols of Squid's helpers: programs that read a question from a line and answer with
 * a line (Squid's manual: auth_param basic, external_acl_type, and the wiki page "Features/
 * AddonHelpers").
 *
 *     question   [CHANNEL SP] FIELD *( SP FIELD ) LF         "joe%20x secret"
 *     answer     [CHANNEL SP] RESULT *( SP WORD ) LF         "OK user=joe group=\"the staff\""
 *
 * RESULT is OK, ERR or BH (the helper is broken: it can't tell). A WORD is NAME=VALUE, or text that
 * means nothing. A VALUE stands in quotes, with \ before each " and \ in it, or has %-escapes. All
 * fields of a question are %-escaped (RFC 1738), so that no user finds a name that is two fields or
 * two lines.
 *
 *     char line[HELPER_LINE_QUESTION];
 *     struct slice fields = SLICE("joe\0secret");             NUL between the fields
 *     size_t length = helper_line_write(line, sizeof line, fields, NULL);      0: not acceptable
 *
 *     struct helper_line_answer answer;
 *     if (helper_line_read(text, &answer) && answer.result == HELPER_LINE_OK)
 *         while (helper_line_next(&answer, &pair) == HELPER_LINE_PAIR) ...
 *
 * The text of an answer comes without its newline and its channel. Nothing of an answer is used
 * that has control characters, escaped or not: neither names nor values can break a log line.
 * Threads: values; no shared state. The parser allocates nothing.
 */
#ifndef RETORT_SERVICE_HELPER_LINE_H
#define RETORT_SERVICE_HELPER_LINE_H

#include "base/slice.h"

enum {
    HELPER_LINE_FIELD = 1024,    /* bytes of a field at most */
    HELPER_LINE_FIELDS = 8,      /* fields of a question at most */
    HELPER_LINE_QUESTION = 8192, /* bytes of a question, with its newline */
    HELPER_LINE_ANSWER = 8192,   /* bytes of an answer, with its newline */
    HELPER_LINE_VALUE = 1024,    /* bytes of a decoded value at most */
};

enum helper_line_result { HELPER_LINE_OK, HELPER_LINE_ERR, HELPER_LINE_BROKEN };

struct helper_line_answer {
    enum helper_line_result result;
    struct slice rest; /* words that were not taken yet */
};

struct helper_line_pair {
    struct slice name; /* lies in the answer */
    size_t length;     /* of the value */
    char value[HELPER_LINE_VALUE];
};

/* A pair was found; there are no more; the answer breaks the rules, and must not be used. */
enum helper_line_next { HELPER_LINE_PAIR, HELPER_LINE_END, HELPER_LINE_BAD };

/* May these fields stand in a question? They are not empty, have no control characters, and there
 * are `least` to `most` of them. */
bool helper_line_fields_valid(struct slice fields, unsigned least, unsigned most);
/* Writes a question with its newline; `channel` stands in front unless it is NULL. Returns its
 * length; 0: the fields are not valid, or the question is too long. */
size_t helper_line_write(char *line, size_t size, struct slice fields, const uint64_t *channel);

/* Takes the channel off the front of a line. False: there is no such number. */
bool helper_line_take_channel(struct slice *line, uint64_t *channel);
/* Reads the result. False: the line is no answer. */
bool helper_line_read(struct slice line, struct helper_line_answer *answer);
/* Takes the next pair, and skips words that are none. */
enum helper_line_next helper_line_next(struct helper_line_answer *answer,
                                       struct helper_line_pair *pair);
/* Does a whole answer keep to the rules? */
bool helper_line_valid(struct slice line);

#endif
