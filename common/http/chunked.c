#include "http/chunked.h"

#include "base/assert.h"

enum { DIGITS_MAX = 16, LINE_MAX_BYTES = 4096 };

/* The states of the decoder. Each is named after the part that was read last or comes next. */
enum {
    BAD, /* zero, so transitions that the table below does not contain are refused */
    SIZE_START,
    SIZE,
    PADDING,   /* white space behind a size or an extension */
    EXTENSION, /* behind ';' */
    NAME,
    NAME_END, /* white space behind a name */
    VALUE_START,
    VALUE,
    QUOTED,
    ESCAPED,
    LINE_END, /* the LF of a chunk's line */
    DATA,     /* not in the table, because the bytes of the body are not checked */
    DATA_CR,
    DATA_LF,
    TRAILER,
    TRAILER_NAME,
    TRAILER_NAME_END, /* white space behind the name, in a response */
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    END,
    STATE_COUNT
};

/* Kinds of bytes, in an order that lets the table below name runs of them. */
enum {
    CONTROL, /* zero: allowed nowhere */
    CR,
    LF,
    QUOTE,
    BACKSLASH,
    HEX, /* also a token */
    TOKEN,
    BLANK,
    SEMICOLON,
    EQUALS,
    COLON,
    TEXT, /* other visible bytes, and bytes above 0x7f */
    KIND_COUNT
};

static const uint8_t kinds[256] = {
    ['\t'] = BLANK,
    ['\n'] = LF,
    ['\r'] = CR,
    [' '] = BLANK,
    ['!'] = TOKEN,
    ['"'] = QUOTE,
    ['#' ... '\''] = TOKEN,
    ['('] = TEXT,
    [')'] = TEXT,
    ['*'] = TOKEN,
    ['+'] = TOKEN,
    [','] = TEXT,
    ['-'] = TOKEN,
    ['.'] = TOKEN,
    ['/'] = TEXT,
    ['0' ... '9'] = HEX,
    [':'] = COLON,
    [';'] = SEMICOLON,
    ['<'] = TEXT,
    ['='] = EQUALS,
    ['>'] = TEXT,
    ['?'] = TEXT,
    ['@'] = TEXT,
    ['A' ... 'F'] = HEX,
    ['G' ... 'Z'] = TOKEN,
    ['['] = TEXT,
    ['\\'] = BACKSLASH,
    [']'] = TEXT,
    ['^'] = TOKEN,
    ['_'] = TOKEN,
    ['`'] = TOKEN,
    ['a' ... 'f'] = HEX,
    ['g' ... 'z'] = TOKEN,
    ['{'] = TEXT,
    ['|'] = TOKEN,
    ['}'] = TEXT,
    ['~'] = TOKEN,
    [0x80 ... 0xff] = TEXT,
};

/*
 * The grammar of RFC 9112 §7.1. White space behind a size is allowed, because some servers pad
 * sizes to a fixed width, and the meaning is clear. Extensions must follow their grammar, because
 * programs disagree about a line end inside an extension.
 */
/* clang-format off */
static const uint8_t transitions[STATE_COUNT][KIND_COUNT] = {
    [SIZE_START] = {[HEX] = SIZE},
    [SIZE] = {[HEX] = SIZE, [BLANK] = PADDING, [SEMICOLON] = EXTENSION, [CR] = LINE_END},
    [PADDING] = {[BLANK] = PADDING, [SEMICOLON] = EXTENSION, [CR] = LINE_END},
    [EXTENSION] = {[HEX ... TOKEN] = NAME, [BLANK] = EXTENSION},
    [NAME] = {[HEX ... TOKEN] = NAME, [BLANK] = NAME_END, [EQUALS] = VALUE_START,
              [SEMICOLON] = EXTENSION, [CR] = LINE_END},
    [NAME_END] = {[BLANK] = NAME_END, [EQUALS] = VALUE_START, [SEMICOLON] = EXTENSION,
                  [CR] = LINE_END},
    [VALUE_START] = {[HEX ... TOKEN] = VALUE, [BLANK] = VALUE_START, [QUOTE] = QUOTED},
    [VALUE] = {[HEX ... TOKEN] = VALUE, [BLANK] = PADDING, [SEMICOLON] = EXTENSION,
               [CR] = LINE_END},
    [QUOTED] = {[HEX ... TEXT] = QUOTED, [BACKSLASH] = ESCAPED, [QUOTE] = PADDING},
    [ESCAPED] = {[QUOTE ... TEXT] = QUOTED},
    [LINE_END] = {[LF] = DATA}, /* or TRAILER, if the size is 0 */
    [DATA_CR] = {[CR] = DATA_LF},
    [DATA_LF] = {[LF] = SIZE_START},
    [TRAILER] = {[HEX ... TOKEN] = TRAILER_NAME, [CR] = END_LF},
    [TRAILER_NAME] = {[HEX ... TOKEN] = TRAILER_NAME, [BLANK] = TRAILER_NAME_END,
                      [COLON] = TRAILER_VALUE},
    [TRAILER_NAME_END] = {[BLANK] = TRAILER_NAME_END, [COLON] = TRAILER_VALUE},
    [TRAILER_VALUE] = {[QUOTE ... TEXT] = TRAILER_VALUE, [CR] = TRAILER_LF},
    [TRAILER_LF] = {[LF] = TRAILER},
    [END_LF] = {[LF] = END},
};
/* clang-format on */

void chunked_init(struct chunked_decoder *decoder) {
    memset(decoder, 0, sizeof *decoder);
    decoder->state = SIZE_START;
}

void chunked_of_response(struct chunked_decoder *decoder, char *trailers) {
    decoder->of_response = true;
    decoder->trailers = trailers;
}

static unsigned chunked_hex_value(char c) {
    unsigned char lower = ascii_lower((unsigned char)c);
    return lower <= '9' ? lower - (unsigned)'0' : lower - (unsigned)'a' + 10;
}

static bool add_size_digit(struct chunked_decoder *decoder, char c) {
    if (++decoder->digits > DIGITS_MAX || decoder->size > (uint64_t)INT64_MAX >> 4)
        return false;
    decoder->size = decoder->size << 4 | chunked_hex_value(c);
    return true;
}

static void add_name_byte(struct chunked_decoder *decoder, char c) {
    if (decoder->matched < sizeof decoder->name)
        decoder->name[decoder->matched] = (char)ascii_lower((unsigned char)c);
    decoder->matched++;
}

static bool chunked_name_is(const struct chunked_decoder *decoder, struct slice name) {
    return decoder->matched == name.length && memcmp(decoder->name, name.base, name.length) == 0;
}

/* The extensions of ICAP have a meaning only on the last chunk. */
static bool is_original(const struct chunked_decoder *decoder) {
    return decoder->size == 0 && chunked_name_is(decoder, SLICE("use-original-body"));
}

/* With a wrong number, a part of the body would be lost or repeated. So anything but one number is
 * refused. */
static bool add_value_byte(struct chunked_decoder *decoder, char c, bool first) {
    if (!is_original(decoder))
        return true;
    if (c < '0' || c > '9' || (first && decoder->has_original))
        return false;
    unsigned digit = (unsigned)(c - '0');
    if (decoder->original > ((uint64_t)INT64_MAX - digit) / 10)
        return false;
    decoder->original = decoder->original * 10 + digit;
    decoder->has_original = true;
    return true;
}

/* An extension ended without a value. */
static bool end_name(struct chunked_decoder *decoder) {
    if (decoder->size == 0 && chunked_name_is(decoder, SLICE("ieof")))
        decoder->ieof = true;
    return !is_original(decoder);
}

static void chunked_end_line(struct chunked_decoder *decoder) {
    decoder->last = decoder->size == 0;
    decoder->remaining = decoder->size;
    decoder->state = decoder->last ? TRAILER : DATA;
}

static bool keep_trailer_byte(struct chunked_decoder *decoder, char c) {
    if (decoder->trailer_bytes == CHUNKED_TRAILERS_MAX)
        return false;
    if (decoder->trailers != NULL)
        decoder->trailers[decoder->trailer_bytes] = c;
    decoder->trailer_bytes++;
    return true;
}

static bool within_limits(struct chunked_decoder *decoder, unsigned from, char c) {
    if (from >= PADDING && from <= ESCAPED)
        return ++decoder->line_bytes <= LINE_MAX_BYTES;
    if (from >= TRAILER && from <= END_LF)
        return keep_trailer_byte(decoder, c);
    return true;
}

/* Does the work for a byte beyond the change of state. False: the byte is refused. */
static bool chunked_act(struct chunked_decoder *decoder, unsigned from, unsigned to, char c) {
    switch (to) {
    case SIZE: return add_size_digit(decoder, c);
    case NAME:
        if (from == EXTENSION)
            decoder->matched = 0;
        add_name_byte(decoder, c);
        return true;
    case VALUE: return add_value_byte(decoder, c, from == VALUE_START);
    case QUOTED: return !is_original(decoder);
    case EXTENSION:
    case LINE_END: return (from != NAME && from != NAME_END) || end_name(decoder);
    case DATA: chunked_end_line(decoder); return true;
    case TRAILER_NAME_END: return decoder->of_response;
    case SIZE_START:
        decoder->digits = decoder->line_bytes = 0;
        decoder->size = 0;
        return true;
    default: return true;
    }
}

static void chunked_take_byte(struct chunked_decoder *decoder, char c) {
    unsigned from = decoder->state, to = transitions[from][kinds[(unsigned char)c]];
    decoder->state = to;
    if (!within_limits(decoder, from, c) || !chunked_act(decoder, from, to, c))
        decoder->state = BAD;
}

static size_t take_data(struct chunked_decoder *decoder, struct slice *input, char *out,
                        size_t capacity) {
    size_t length = input->length < capacity ? input->length : capacity;
    if (length > decoder->remaining)
        length = (size_t)decoder->remaining;
    if (length == 0)
        return 0;
    memmove(out, input->base, length);
    input->base += length;
    input->length -= length;
    decoder->remaining -= length;
    if (decoder->remaining == 0)
        decoder->state = DATA_CR;
    return length;
}

enum chunked_status chunked_decode(struct chunked_decoder *decoder, struct slice *input, char *out,
                                   size_t capacity, size_t *got) {
    *got = 0;
    while (decoder->state != END) {
        if (decoder->state == BAD)
            return CHUNKED_BAD;
        if (decoder->state == DATA) {
            size_t taken = take_data(decoder, input, out + *got, capacity - *got);
            if (taken == 0)
                return CHUNKED_MORE;
            *got += taken;
        } else {
            if (input->length == 0)
                return CHUNKED_MORE;
            chunked_take_byte(decoder, *input->base);
            input->base++;
            input->length--;
        }
    }
    return CHUNKED_END;
}

size_t chunked_write_head(char *out, uint64_t size) {
    unsigned digits = size == 0 ? 1 : (67 - (unsigned)__builtin_clzll(size)) / 4;
    for (unsigned i = digits; i > 0; i--, size >>= 4)
        out[i - 1] = "0123456789abcdef"[size & 15];
    out[digits] = '\r';
    out[digits + 1] = '\n';
    return digits + 2;
}
