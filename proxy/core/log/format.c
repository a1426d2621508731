#include "log/format.h"

#include "base/assert.h"
#include "base/failure.h"
#include "http/secret_field.h"

#include <stdlib.h>

enum code_argument { ARGUMENT_NONE, ARGUMENT_FIELD, ARGUMENT_TIME, ARGUMENT_UNIT };

static const struct code_row {
    const char *name;
    enum log_code code;
    enum code_argument argument;
    bool icap;
    const char *meaning;
} rows[] = {
#define LOG_CODE(enumerator, spelling, argument, icap, kind, value, meaning)                       \
    {spelling, LOG_CODE_##enumerator, ARGUMENT_##argument, icap, meaning},
#define LOG_SPELLING(enumerator, spelling, argument)                                               \
    {spelling, LOG_CODE_##enumerator, ARGUMENT_##argument, false, ""},
#include "log/fields.def"
};

/* Reads a text, and writes its pieces into the format. */
struct format_reader {
    struct log_format *format;
    unsigned count;
    const char *at; /* in the text of the settings */
    char *out;      /* in the format's memory */
    char *literal;  /* where the present literal begins there */
    bool quoted;    /* an odd number of double quotes stands before */
    bool icap;
    enum log_escape escape;
    char *error;
};

static bool format_fail(struct format_reader *reader, const char *before, const char *from,
                        const char *after) {
    return failure(reader->error, LOG_FORMAT_ERROR, "%s\"%.30s\"%s", before, from, after);
}

static bool end_literal(struct format_reader *reader, struct log_piece *piece) {
    if (reader->count == LOG_FORMAT_PIECES)
        return failure(reader->error, LOG_FORMAT_ERROR, "the format has more than %d codes",
                       LOG_FORMAT_PIECES - 1);
    piece->literal = slice_make(reader->literal, (size_t)(reader->out - reader->literal));
    reader->format->pieces[reader->count++] = *piece;
    reader->literal = reader->out;
    return true;
}

/* Squid's signs in front of a code. */
static void read_quoting(struct format_reader *reader, struct log_piece *piece) {
    piece->escape = reader->escape;
    if (reader->escape == LOG_ESCAPE_PLAIN && reader->quoted)
        piece->escape = LOG_ESCAPE_SPACED;
    switch (*reader->at) {
    case '"':
    case '/': piece->escape = LOG_ESCAPE_QUOTED; break;
    case '#':
    case '[': piece->escape = LOG_ESCAPE_PLAIN; break;
    case '\'': piece->escape = LOG_ESCAPE_SPACED; break;
    default: return;
    }
    reader->at++;
}

static bool format_read_width(struct format_reader *reader, struct log_piece *piece) {
    const char *from = reader->at;
    piece->left = *reader->at == '-';
    reader->at += piece->left;
    piece->zeros = *reader->at == '0';
    for (; *reader->at >= '0' && *reader->at <= '9'; reader->at++)
        if (piece->width <= LOG_FORMAT_WIDTH)
            piece->width = piece->width * 10 + (unsigned)(*reader->at - '0');
    return piece->width <= LOG_FORMAT_WIDTH ||
           format_fail(reader, "the width at ", from, " is more than 60");
}

/* An argument in braces; it goes on to its '}'. */
static bool format_read_argument(struct format_reader *reader, const char **argument) {
    const char *end = *reader->at == '{' ? strchr(reader->at, '}') : NULL;
    if (*reader->at != '{')
        return true;
    if (end == NULL)
        return format_fail(reader, "the argument at ", reader->at, " lacks its '}'");
    *argument = reader->at + 1;
    reader->at = end + 1;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A letter behind a short code belongs to a longer one that we do not have: "%st" is not "%s" and a
 * "t". */
static const struct code_row *find_code(const char *at) {
    const struct code_row *found = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(at, rows[i].name, strlen(rows[i].name)) == 0 &&
            (found == NULL || strlen(rows[i].name) > strlen(found->name)))
            found = &rows[i];
    return found == NULL || is_letter(at[strlen(found->name)]) ? NULL : found;
}

static bool format_names_credentials(const char *argument) {
    return credential_field(slice_make(argument, strcspn(argument, "}")));
}

static bool check_argument(struct format_reader *reader, const struct code_row *row,
                           const char *argument) {
    static const char *const units[] = {"s}", "ms}", "us}"};
    bool known = row->argument == ARGUMENT_TIME;
    if (argument == NULL && row->argument != ARGUMENT_FIELD)
        return true;
    if (argument == NULL)
        return format_fail(
            reader, "%", row->name,
            " needs the name of a field: write \"%{User-Agent}>h\" for the request's, "
            "\"%{Server}<h\" for the reply's");
    if (row->argument == ARGUMENT_FIELD && format_names_credentials(argument))
        return format_fail(reader, "the field at ", argument,
                           " carries credentials or a session, which no log may have: leave it "
                           "out; \"%un\" is the proven user");
    if (row->argument == ARGUMENT_FIELD)
        known = argument[0] != '}';
    for (size_t i = 0; row->argument == ARGUMENT_UNIT && i < 3; i++)
        known |= strncmp(argument, units[i], strlen(units[i])) == 0;
    return known || format_fail(reader, "the argument of %", row->name,
                                row->argument == ARGUMENT_NONE ? " means nothing: leave it out"
                                                               : " is not known");
}

static void keep_argument(struct format_reader *reader, struct log_piece *piece,
                          const char *argument) {
    size_t length = argument == NULL ? 0 : strcspn(argument, "}");
    if (argument == NULL)
        return;
    piece->argument = reader->out;
    memcpy(reader->out, argument, length);
    reader->out[length] = '\0';
    reader->out += length + 1;
    reader->literal = reader->out;
}

/* reader->at points behind the '%'. */
static bool read_code(struct format_reader *reader) {
    struct log_piece piece = {.code = LOG_CODE_END};
    const char *argument = NULL;
    read_quoting(reader, &piece);
    if (!format_read_width(reader, &piece) || !format_read_argument(reader, &argument))
        return false;
    const struct code_row *row = find_code(reader->at);
    if (row == NULL)
        return format_fail(reader, "there is no code %", reader->at,
                           "; docs/OPERATIONS.md has the table, and \"%%\" is a percent sign");
    if (row->icap && !reader->icap)
        return format_fail(reader, "%", row->name, " has a meaning in icap_log sections only");
    reader->at += strlen(row->name);
    piece.code = row->code;
    if (!check_argument(reader, row, argument) || !end_literal(reader, &piece))
        return false;
    keep_argument(reader, &reader->format->pieces[reader->count - 1], argument);
    return true;
}

static bool format_read_next(struct format_reader *reader) {
    char c = *reader->at++;
    if (c == '%' && *reader->at != '%')
        return read_code(reader);
    reader->at += c == '%';
    if ((unsigned char)c < ' ' && c != '\t')
        return format_fail(reader, "the format has a control character before ", reader->at, "");
    reader->quoted ^= c == '"';
    *reader->out++ = c;
    return true;
}

struct log_format *log_format_new(const char *text, enum log_escape escape, bool icap,
                                  char error[LOG_FORMAT_ERROR]) {
    struct log_format *format;
    size_t length = strlen(text);
    if (length == 0 || length > LOG_FORMAT_TEXT) {
        snprintf(error, LOG_FORMAT_ERROR, "the format must have 1 to %d bytes", LOG_FORMAT_TEXT);
        return NULL;
    }
    ALLOC_OBJ(format, LOG_FORMAT_MAGIC);
    /* The braces of an argument leave room for its NUL. */
    format->memory = xcalloc(length + 1, 1);
    struct format_reader reader = {
        .format = format,
        .at = text,
        .out = format->memory,
        .literal = format->memory,
        .icap = icap,
        .escape = escape,
        .error = error,
    };
    bool good = true;
    while (good && *reader.at != '\0')
        good = format_read_next(&reader);
    if (!good || !end_literal(&reader, &(struct log_piece){.code = LOG_CODE_END}))
        log_format_free(&format);
    return format;
}

void log_format_free(struct log_format **formatp) {
    struct log_format *format = *formatp;
    *formatp = NULL;
    if (format == NULL)
        return;
    CHECK_OBJ(format, LOG_FORMAT_MAGIC);
    free(format->memory);
    FREE_OBJ(format);
}

const char *log_format_tells_client(const struct log_format *format) {
    static const char *const fields[] = {"X-Forwarded-For", "Forwarded",   "X-Real-IP",
                                         "Client-IP",       "X-Client-IP", "True-Client-IP"};
    for (const struct log_piece *piece = format->pieces; piece->code != LOG_CODE_END; piece++)
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if ((piece->code == LOG_CODE_REQUEST_FIELD || piece->code == LOG_CODE_REPLY_FIELD) &&
                slice_equal_nocase(slice_from(piece->argument), slice_from(fields[i])))
                return piece->argument;
    return NULL;
}

/* "%>a %h": all spellings of a code. Returns how many characters. */
static int print_spellings(FILE *out, enum log_code code) {
    int length = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            length += fprintf(out, "%s%%%s", length == 0 ? "" : " ", rows[i].name);
    return length;
}

void log_format_print_codes(FILE *out) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].meaning[0] == '\0')
            continue;
        int length = print_spellings(out, rows[i].code);
        fprintf(out, "%*s%s%s\n", length < 26 ? 26 - length : 1, "", rows[i].meaning,
                rows[i].icap ? " (icap_log only)" : "");
    }
}
