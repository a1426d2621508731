#include "http/structured.h"

#include "http/bytes.h"

#include <string.h>

/* The largest numbers of digits (§3.3.1, §3.3.2). */
enum { INTEGER_DIGITS = 15, WHOLE_DIGITS = 12, FRACTION_DIGITS = 3 };

/* The text that is not read yet. The functions below take the thing in their name off its front.
 * False: it is not there. */
struct input {
    const char *at, *end;
};

static bool is_at(const struct input *input, char c) {
    return input->at < input->end && *input->at == c;
}

static bool structured_take(struct input *input, char c) {
    if (!is_at(input, c))
        return false;
    input->at++;
    return true;
}

static void skip_spaces(struct input *input) {
    while (structured_take(input, ' '))
        ;
}

static void skip_white(struct input *input) {
    while (structured_take(input, ' ') || structured_take(input, '\t'))
        ;
}

static bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

static bool structured_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool structured_is_letter(char c) {
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

static bool take_key(struct input *input) {
    if (input->at == input->end || !(is_lower(*input->at) || *input->at == '*'))
        return false;
    while (input->at < input->end && (is_lower(*input->at) || structured_is_digit(*input->at) ||
                                      memchr("_-.*", *input->at, 4) != NULL))
        input->at++;
    return true;
}

static unsigned take_digits(struct input *input, uint64_t *value) {
    unsigned count = 0;
    for (; input->at < input->end && structured_is_digit(*input->at); count++, input->at++)
        if (count < INTEGER_DIGITS)
            *value = *value * 10 + (uint64_t)(*input->at - '0');
    return count;
}

static bool structured_take_number(struct input *input, struct structured_member *member) {
    uint64_t value = 0, fraction = 0;
    bool negative = structured_take(input, '-');
    unsigned digits = take_digits(input, &value);
    member->type = STRUCTURED_INTEGER;
    member->number = negative ? -(int64_t)value : (int64_t)value;
    if (!structured_take(input, '.'))
        return digits > 0 && digits <= INTEGER_DIGITS;
    member->type = STRUCTURED_DECIMAL;
    unsigned behind = take_digits(input, &fraction);
    return digits > 0 && digits <= WHOLE_DIGITS && behind > 0 && behind <= FRACTION_DIGITS;
}

static bool take_string(struct input *input, struct structured_member *member) {
    member->type = STRUCTURED_STRING;
    for (input->at++; input->at < input->end; input->at++) {
        unsigned char c = (unsigned char)*input->at;
        if (c == '"') {
            input->at++;
            return true;
        }
        if (c < 0x20 || c > 0x7e)
            return false;
        if (c != '\\')
            continue;
        input->at++;
        if (!is_at(input, '"') && !is_at(input, '\\'))
            return false;
    }
    return false;
}

static bool take_token(struct input *input, struct structured_member *member) {
    member->type = STRUCTURED_TOKEN;
    while (input->at < input->end &&
           (bytes_is(*input->at, BYTES_TOKEN) || *input->at == ':' || *input->at == '/'))
        input->at++;
    return true;
}

static bool structured_take_bytes(struct input *input, struct structured_member *member) {
    member->type = STRUCTURED_BYTES;
    input->at++;
    while (input->at < input->end &&
           (structured_is_letter(*input->at) || structured_is_digit(*input->at) ||
            memchr("+/=", *input->at, 3) != NULL))
        input->at++;
    return structured_take(input, ':');
}

static bool take_boolean(struct input *input, struct structured_member *member) {
    member->type = STRUCTURED_BOOLEAN;
    input->at++;
    member->number = is_at(input, '1');
    return structured_take(input, '1') || structured_take(input, '0');
}

static bool take_bare_item(struct input *input, struct structured_member *member) {
    if (input->at == input->end)
        return false;
    switch (*input->at) {
    case '"': return take_string(input, member);
    case ':': return structured_take_bytes(input, member);
    case '?': return take_boolean(input, member);
    case '*': return take_token(input, member);
    default:
        return structured_is_letter(*input->at) ? take_token(input, member)
                                                : structured_take_number(input, member);
    }
}

static bool take_parameters(struct input *input) {
    struct structured_member ignored;
    while (structured_take(input, ';')) {
        skip_spaces(input);
        if (!take_key(input) || (structured_take(input, '=') && !take_bare_item(input, &ignored)))
            return false;
    }
    return true;
}

static bool take_inner_list(struct input *input, struct structured_member *member) {
    struct structured_member ignored;
    member->type = STRUCTURED_LIST;
    input->at++;
    for (;;) {
        skip_spaces(input);
        if (structured_take(input, ')'))
            return true;
        if (!take_bare_item(input, &ignored) || !take_parameters(input) ||
            !(is_at(input, ' ') || is_at(input, ')')))
            return false;
    }
}

static bool structured_take_value(struct input *input, struct structured_member *member) {
    const char *begin = input->at;
    if (!(is_at(input, '(') ? take_inner_list(input, member) : take_bare_item(input, member)))
        return false;
    member->text = slice_make(begin, (size_t)(input->at - begin));
    return true;
}

static bool take_member(struct input *input, struct structured_member *member) {
    const char *begin = input->at;
    if (!take_key(input))
        return false;
    *member = (struct structured_member){
        .key = slice_make(begin, (size_t)(input->at - begin)),
        .type = STRUCTURED_BOOLEAN,
        .text = slice_make(input->at, 0),
        .number = 1,
    };
    return (!structured_take(input, '=') || structured_take_value(input, member)) &&
           take_parameters(input);
}

/* Takes the comma between two members. A comma at the end is an error (§4.2.2). */
static bool take_comma(struct input *input) {
    skip_white(input);
    if (input->at == input->end)
        return true;
    if (!structured_take(input, ','))
        return false;
    skip_white(input);
    return input->at < input->end;
}

enum structured_status structured_next(struct slice *rest, struct structured_member *member) {
    struct input input = {rest->base, rest->base + rest->length};
    if (rest->length == 0)
        return STRUCTURED_END;
    if (!take_member(&input, member) || !take_comma(&input))
        return STRUCTURED_BAD;
    *rest = slice_make(input.at, (size_t)(input.end - input.at));
    return STRUCTURED_MEMBER;
}
