#include "text/text_template.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/text.h"
#include "http/bytes.h"
#include "http/secret_field.h"

#include <stdio.h>
#include <stdlib.h>

/* Text, and the variable behind it. */
struct text_piece {
    struct slice literal;
    struct slice field; /* of the variable; empty: it is none */
    int variable;       /* an enum variable; -1: the text ends here */
    bool first;         /* nothing is written before the variable */
    bool behind;        /* the path of the URL has ended before the variable */
};

struct text_template {
    unsigned magic;
#define TEXT_TEMPLATE_MAGIC 0x7e47e391u
    unsigned count;
    struct text_piece pieces[TEXT_TEMPLATE_VARIABLES + 1];
    char text[]; /* what the pieces point to, each followed by a NUL */
};

static const struct slice variable_names[VARIABLE_COUNT] = {
#define VARIABLE(enumerator, name, of, meaning) SLICE(name),
#include "text/variables.def"
#undef VARIABLE
};

static const enum variable_source variable_sources[VARIABLE_GROUP] = {
#define VARIABLE(enumerator, name, of, meaning) VARIABLES_OF_##of,
#include "text/variables.def"
#undef VARIABLE
    [VARIABLE_REQUEST_FIELD] = VARIABLES_OF_CLIENT,
    [VARIABLE_RESPONSE_FIELD] = VARIABLES_OF_RESPONSE,
};

/* Reads a text, and writes its pieces into the template. */
struct template_reader {
    struct text_template *template;
    const char *at; /* in the text of the settings */
    char *out;      /* in the template */
    char *literal;  /* where the present literal begins there */
    int groups;     /* -1: the text is not for a regular expression */
    bool behind;
    char *error;
    size_t error_size;
};

static bool explain_names(struct template_reader *reader, struct slice name) {
    size_t used = (size_t)snprintf(reader->error, reader->error_size,
                                   "there is no variable %%{%.*s}; there are: ", SLICE_PRINT(name));
    for (unsigned i = 0; i < VARIABLE_COUNT && used < reader->error_size; i++)
        used += (size_t)snprintf(reader->error + used, reader->error_size - used, "%.*s, ",
                                 SLICE_PRINT(variable_names[i]));
    if (used < reader->error_size)
        snprintf(reader->error + used, reader->error_size - used,
                 "request.NAME and response.NAME for fields");
    return false;
}

static bool explain_group(struct template_reader *reader, int group) {
    return failure(reader->error, reader->error_size,
                   "the regular expression has no group %d; it has %d groups in parentheses", group,
                   reader->groups);
}

static bool end_piece(struct template_reader *reader, int variable) {
    struct text_template *template = reader->template;
    struct slice literal = slice_make(reader->literal, (size_t)(reader->out - reader->literal));
    if (template->count > TEXT_TEMPLATE_VARIABLES)
        return failure(reader->error, reader->error_size, "the text has more than %d variables",
                       TEXT_TEMPLATE_VARIABLES);
    reader->behind |= literal.length > 0 && (memchr(literal.base, '?', literal.length) != NULL ||
                                             memchr(literal.base, '#', literal.length) != NULL);
    template->pieces[template->count] = (struct text_piece){
        .literal = literal,
        .variable = variable,
        .first = template->count == 0 && literal.length == 0,
        .behind = reader->behind,
    };
    template->count++;
    reader->behind |= variable == VARIABLE_URL || variable == VARIABLE_QUERY ||
                      variable == VARIABLE_PATH_QUERY || variable >= VARIABLE_GROUP;
    *reader->out++ = '\0';
    reader->literal = reader->out;
    return true;
}

static bool end_with_group(struct template_reader *reader, int group) {
    return group <= reader->groups ? end_piece(reader, VARIABLE_GROUP + group)
                                   : explain_group(reader, group);
}

static bool is_field_name(struct slice name) {
    for (size_t i = 0; i < name.length; i++)
        if (!bytes_is(name.base[i], BYTES_TOKEN))
            return false;
    return name.length > 0;
}

/* The name stands in the template behind the text before the variable. */
static bool end_with_field(struct template_reader *reader, int variable, struct slice name) {
    const char *wrong = !is_field_name(name) ? "is no name of a field; write, for example, "
                                               "%{request.User-Agent}"
                        : credential_field(name)
                            ? "is a field that carries credentials or a session, which no text "
                              "may show; %{user} is the proven user"
                            : NULL;
    if (wrong != NULL)
        return failure(reader->error, reader->error_size, "\"%.*s\" %s", SLICE_PRINT(name), wrong);
    if (!end_piece(reader, variable))
        return false;
    struct text_piece *piece = &reader->template->pieces[reader->template->count - 1];
    piece->field = slice_make(reader->out, name.length);
    reader->literal = reader->out = slice_put(reader->out, name);
    return true;
}

static bool take_front(struct slice *text, struct slice front) {
    if (!slice_starts_with(*text, front))
        return false;
    *text = slice_make(text->base + front.length, text->length - front.length);
    return true;
}

static bool end_with_name(struct template_reader *reader, struct slice name) {
    if (reader->groups >= 0 && name.length == 1 && name.base[0] >= '0' && name.base[0] <= '9')
        return end_with_group(reader, name.base[0] - '0');
    for (int i = 0; i < VARIABLE_COUNT; i++)
        if (slice_equal(name, variable_names[i]))
            return end_piece(reader, i);
    if (take_front(&name, SLICE("request.")))
        return end_with_field(reader, VARIABLE_REQUEST_FIELD, name);
    if (take_front(&name, SLICE("response.")))
        return end_with_field(reader, VARIABLE_RESPONSE_FIELD, name);
    return explain_names(reader, name);
}

/* reader->at points to "%{". */
static bool read_variable(struct template_reader *reader) {
    const char *name = reader->at + 2, *end = strchr(name, '}');
    if (end == NULL)
        return failure(reader->error, reader->error_size,
                       "a variable lacks its '}'; write \"%%%%{\" for the bytes \"%%{\"");
    reader->at = end + 1;
    return end_with_name(reader, slice_make(name, (size_t)(end - name)));
}

static bool read_next(struct template_reader *reader) {
    const char *at = reader->at;
    if (at[0] == '%' && at[1] == '{')
        return read_variable(reader);
    if (reader->groups >= 0 && at[0] == '$' && at[1] >= '0' && at[1] <= '9') {
        reader->at += 2;
        return end_with_group(reader, at[1] - '0');
    }
    bool doubled = at[1] == at[0] && (at[0] == '%' || (at[0] == '$' && reader->groups >= 0));
    *reader->out++ = *at;
    reader->at += doubled ? 2 : 1;
    return true;
}

static struct text_template *read_template(const char *text, int groups, char *error,
                                           size_t error_size) {
    /* Each variable takes at least two bytes of the text, and needs one for its NUL. The name of a
     * field takes as many as in the text. */
    struct text_template *template = xcalloc(1, sizeof *template + strlen(text) + 1);
    template->magic = TEXT_TEMPLATE_MAGIC;
    struct template_reader reader = {
        .template = template,
        .at = text,
        .out = template->text,
        .literal = template->text,
        .groups = groups,
        .error = error,
        .error_size = error_size,
    };
    bool good = true;
    while (good && *reader.at != '\0')
        good = read_next(&reader);
    if (!good || !end_piece(&reader, -1))
        text_template_free(&template);
    return template;
}

struct text_template *text_template_new(const char *text, char *error, size_t error_size) {
    return read_template(text, -1, error, error_size);
}

struct text_template *text_template_new_for_groups(const char *text, unsigned groups, char *error,
                                                   size_t error_size) {
    return read_template(text, groups > 9 ? 9 : (int)groups, error, error_size);
}

void text_template_free(struct text_template **templatep) {
    struct text_template *template = *templatep;
    *templatep = NULL;
    if (template == NULL)
        return;
    CHECK_OBJ(template, TEXT_TEMPLATE_MAGIC);
    FREE_OBJ(template);
}

bool text_template_names(const struct text_template *template, enum variable variable) {
    CHECK_OBJ(template, TEXT_TEMPLATE_MAGIC);
    for (unsigned i = 0; i < template->count; i++)
        if (template->pieces[i].variable == (int)variable)
            return true;
    return false;
}

unsigned text_template_sources(const struct text_template *template) {
    unsigned sources = 0;
    CHECK_OBJ(template, TEXT_TEMPLATE_MAGIC);
    for (unsigned i = 0; i < template->count; i++) {
        int variable = template->pieces[i].variable;
        sources |= variable >= 0 && variable < VARIABLE_GROUP ? variable_sources[variable] : 0u;
    }
    return sources;
}

/* Bytes that one byte may become. */
static size_t longest_of(enum text_escape escape) {
    switch (escape) {
    case TEXT_AS_IS: return 1;
    case TEXT_URL: return sizeof "%20" - 1;
    case TEXT_HTML: return sizeof "&quot;" - 1;
    case TEXT_JSON: return sizeof "\\u003c" - 1;
    }
    return 0;
}

static bool is_control(unsigned char c) {
    return c < 0x20 || c == 0x7f;
}

static char *put_field_text(char *at, struct slice value) {
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.base[i];
        *at++ = is_control(c) ? ' ' : (char)c;
    }
    return at;
}

static bool template_is_unreserved(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

/* Of what is a URL already, only bytes that no URL has are encoded: its '%' stays as well. */
static bool may_stand_in_url(unsigned char c) {
    return template_is_unreserved(c) || (c != '\0' && strchr("%!$&'()*+,;=:@/?[]", c) != NULL);
}

static char *put_encoded(char *at, unsigned char c) {
    static const char digits[] = "0123456789ABCDEF";
    *at++ = '%';
    *at++ = digits[c >> 4];
    *at++ = digits[c & 15];
    return at;
}

static bool is_url_part(const struct text_piece *piece) {
    if (piece->variable == VARIABLE_QUERY || piece->variable >= VARIABLE_GROUP)
        return true;
    switch (piece->variable) {
    case VARIABLE_URL:
    case VARIABLE_SCHEME:
    case VARIABLE_HOST:
    case VARIABLE_PORT:
    case VARIABLE_PATH:
    case VARIABLE_PATH_QUERY: return !piece->behind;
    default: return false;
    }
}

static char *put_url_text(char *at, const struct text_piece *piece, struct slice value) {
    bool part = is_url_part(piece);
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.base[i];
        bool names_host = piece->first && c == '/' && i > 0 && value.base[i - 1] == '/' && i == 1;
        if (part ? may_stand_in_url(c) && !names_host : template_is_unreserved(c))
            *at++ = (char)c;
        else
            at = put_encoded(at, c);
    }
    return at;
}

static char *put_html_text(char *at, struct slice value) {
    for (size_t i = 0; i < value.length; i++) {
        char c = value.base[i];
        switch (c) {
        case '&': at = slice_put(at, SLICE("&amp;")); break;
        case '<': at = slice_put(at, SLICE("&lt;")); break;
        case '>': at = slice_put(at, SLICE("&gt;")); break;
        case '"': at = slice_put(at, SLICE("&quot;")); break;
        case '\'': at = slice_put(at, SLICE("&#39;")); break;
        default: *at++ = is_control((unsigned char)c) ? ' ' : c;
        }
    }
    return at;
}

/* Of a byte of ASCII. '<' could end the script that the JSON stands in. */
static char *put_json_byte(char *at, unsigned char c) {
    static const char digits[] = "0123456789abcdef";
    if (c == '"' || c == '\\') {
        *at++ = '\\';
        *at++ = (char)c;
    } else if (is_control(c) || c == '<' || c == '>' || c == '&') {
        at = slice_put(at, SLICE("\\u00"));
        *at++ = digits[c >> 4];
        *at++ = digits[c & 15];
    } else {
        *at++ = (char)c;
    }
    return at;
}

static char *put_json_text(char *at, struct slice value) {
    while (value.length > 0) {
        uint32_t character;
        size_t length = text_decode(value, &character);
        if (length == 1)
            at = put_json_byte(at, (unsigned char)*value.base);
        else if (length == 0 || text_is_hidden(character))
            at = slice_put(at, SLICE("\\ufffd"));
        else
            at = slice_put(at, slice_make(value.base, length));
        length = length == 0 ? 1 : length;
        value = slice_make(value.base + length, value.length - length);
    }
    return at;
}

static char *template_put_value(char *at, const struct text_piece *piece, struct slice value,
                                enum text_escape escape) {
    switch (escape) {
    case TEXT_AS_IS: return put_field_text(at, value);
    case TEXT_URL: return put_url_text(at, piece, value);
    case TEXT_HTML: return put_html_text(at, value);
    case TEXT_JSON: return put_json_text(at, value);
    }
    return at;
}

struct slice text_template_write(const struct text_template *template,
                                 struct slice (*value)(void *arg, enum variable variable,
                                                       struct slice field),
                                 void *arg, enum text_escape escape, struct arena *arena) {
    struct slice values[TEXT_TEMPLATE_VARIABLES];
    size_t room = 1;
    CHECK_OBJ(template, TEXT_TEMPLATE_MAGIC);
    if (template->count == 1) /* no variable */
        return template->pieces[0].literal;
    for (unsigned i = 0; i < template->count; i++) {
        const struct text_piece *piece = &template->pieces[i];
        room += piece->literal.length;
        if (piece->variable < 0)
            continue;
        values[i] = value(arg, (enum variable)piece->variable, piece->field);
        if (piece->field.length > 0 && values[i].length > TEXT_FIELD_MAX)
            values[i].length = TEXT_FIELD_MAX;
        room += values[i].length * longest_of(escape);
    }
    char *out = arena_alloc(arena, room), *at = out;
    for (unsigned i = 0; i < template->count; i++) {
        const struct text_piece *piece = &template->pieces[i];
        at = slice_put(at, piece->literal);
        if (piece->variable >= 0)
            at = template_put_value(at, piece, values[i], escape);
    }
    *at = '\0';
    return slice_make(out, (size_t)(at - out));
}
