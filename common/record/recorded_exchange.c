#include "record/recorded_exchange.h"

#include "base/assert.h"

#include <endian.h>
#include <stdio.h>
#include <xxhash.h>

enum { MAGIC = 0x0a636572, PART_HEAD = 16, PART_ABOUT = 1, PART_FIRST = 2, SUM_AT = 24 };

struct member {
    const char *name;
    size_t at;
};

#define MEMBER(member_name) {#member_name, offsetof(struct recorded_exchange, member_name)},
#define TEXT(name, help)    MEMBER(name)
#define NUMBER(name, help)
#define PART(name, help)
static const struct member texts[] = {
#include "record/recorded_exchange.def"
};
#undef TEXT
#undef NUMBER
#define TEXT(name, help)
#define NUMBER(name, help) MEMBER(name)
static const struct member numbers[] = {
#include "record/recorded_exchange.def"
};
#undef NUMBER
#undef PART
#define NUMBER(name, help)
#define PART(name, help) MEMBER(name)
static const struct member parts[] = {
#include "record/recorded_exchange.def"
};
#undef TEXT
#undef NUMBER
#undef PART

enum {
    TEXTS = sizeof texts / sizeof texts[0],
    NUMBERS = sizeof numbers / sizeof numbers[0],
    PARTS = sizeof parts / sizeof parts[0],
};

static struct slice *slice_at(struct recorded_exchange *recorded, const struct member *member) {
    return (struct slice *)((char *)recorded + member->at);
}

static uint64_t *exchange_number_at(struct recorded_exchange *recorded,
                                    const struct member *member) {
    return (uint64_t *)((char *)recorded + member->at);
}

static const struct slice *exchange_text_of(const struct recorded_exchange *recorded,
                                            const struct member *member) {
    return (const struct slice *)((const char *)recorded + member->at);
}

static uint64_t exchange_number_of(const struct recorded_exchange *recorded,
                                   const struct member *member) {
    return *(const uint64_t *)((const char *)recorded + member->at);
}

/* Writing. */

static char *put_32(char *at, uint32_t number) {
    number = htole32(number);
    memcpy(at, &number, sizeof number);
    return at + sizeof number;
}

static char *put_64(char *at, uint64_t number) {
    number = htole64(number);
    memcpy(at, &number, sizeof number);
    return at + sizeof number;
}

static size_t about_length_most(const struct recorded_exchange *recorded) {
    size_t length = 0;
    for (unsigned i = 0; i < TEXTS; i++)
        length += strlen(texts[i].name) + exchange_text_of(recorded, &texts[i])->length + 2;
    for (unsigned i = 0; i < NUMBERS; i++)
        length += strlen(numbers[i].name) + SLICE_DIGITS + 2;
    return length;
}

/* A value must be one line. */
static char *put_line(char *at, const char *name, struct slice value) {
    at = slice_put(at, slice_from(name));
    *at++ = ' ';
    for (size_t i = 0; i < value.length; i++)
        *at++ = (char)(value.base[i] >= 0 && value.base[i] < ' ' ? '?' : value.base[i]);
    *at++ = '\n';
    return at;
}

static char *put_about(char *at, const struct recorded_exchange *recorded) {
    for (unsigned i = 0; i < TEXTS; i++)
        if (exchange_text_of(recorded, &texts[i])->length > 0)
            at = put_line(at, texts[i].name, *exchange_text_of(recorded, &texts[i]));
    for (unsigned i = 0; i < NUMBERS; i++) {
        char digits[SLICE_DIGITS];
        uint64_t number = exchange_number_of(recorded, &numbers[i]);
        int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
        if (number != 0)
            at = put_line(at, numbers[i].name, slice_make(digits, (size_t)length));
    }
    return at;
}

static char *put_part_head(char *at, uint32_t number, size_t length) {
    return put_64(put_32(put_32(at, number), 0), length);
}

static char *put_content(char *at, const struct recorded_exchange *recorded) {
    char *about = at + PART_HEAD, *end = put_about(about, recorded);
    put_part_head(at, PART_ABOUT, (size_t)(end - about));
    for (unsigned i = 0; i < PARTS; i++) {
        const struct slice *part = exchange_text_of(recorded, &parts[i]);
        if (part->length > 0)
            end = slice_put(put_part_head(end, PART_FIRST + i, part->length), *part);
    }
    return end;
}

char *recorded_exchange_write(const struct recorded_exchange *recorded, enum icap_record_kind kind,
                              size_t *length) {
    size_t most = RECORDED_HEAD + PART_HEAD + about_length_most(recorded);
    for (unsigned i = 0; i < PARTS; i++)
        most += PART_HEAD + exchange_text_of(recorded, &parts[i])->length;
    char *record = most > RECORDED_MAX ? NULL : malloc(most);
    if (record == NULL)
        return NULL;
    char *content = record + RECORDED_HEAD, *end = put_content(content, recorded);
    size_t content_length = (size_t)(end - content);
    put_32(put_32(record, MAGIC), kind);
    put_64(put_64(record + 8, content_length), XXH3_64bits(content, content_length));
    put_64(record + SUM_AT, XXH3_64bits(record, SUM_AT));
    *length = (size_t)(end - record);
    return record;
}

/* Reading. */

static uint32_t take_32(const char *at) {
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return le32toh(number);
}

static uint64_t take_64(const char *at) {
    uint64_t number;
    memcpy(&number, at, sizeof number);
    return le64toh(number);
}

bool icap_record_head_parse(struct icap_record_head *head, const char bytes[RECORDED_HEAD]) {
    uint32_t kind = take_32(bytes + 4);
    uint64_t length = take_64(bytes + 8);
    if (take_32(bytes) != MAGIC || take_64(bytes + SUM_AT) != XXH3_64bits(bytes, SUM_AT) ||
        length > RECORDED_MAX || (kind != RECORDED_EXCHANGE && kind != RECORDED_END))
        return false;
    *head = (struct icap_record_head){kind, (size_t)length, take_64(bytes + 16)};
    return true;
}

bool icap_record_content_fits(const struct icap_record_head *head, struct slice content) {
    return content.length == head->length && XXH3_64bits(content.base, content.length) == head->sum;
}

static bool take_line(struct recorded_exchange *recorded, struct slice name, struct slice value) {
    for (unsigned i = 0; i < TEXTS; i++)
        if (slice_equal(name, slice_from(texts[i].name)))
            *slice_at(recorded, &texts[i]) = value;
    for (unsigned i = 0; i < NUMBERS; i++)
        if (slice_equal(name, slice_from(numbers[i].name)))
            return slice_to_uint64(value, exchange_number_at(recorded, &numbers[i]));
    return true;
}

static bool take_about(struct recorded_exchange *recorded, struct slice about) {
    while (about.length > 0) {
        const char *end = memchr(about.base, '\n', about.length);
        const char *blank =
            end == NULL ? NULL : memchr(about.base, ' ', (size_t)(end - about.base));
        if (blank == NULL)
            return false;
        struct slice name = slice_make(about.base, (size_t)(blank - about.base));
        struct slice value = slice_make(blank + 1, (size_t)(end - blank) - 1);
        if (!take_line(recorded, name, value))
            return false;
        about.length -= (size_t)(end + 1 - about.base);
        about.base = end + 1;
    }
    return true;
}

static bool exchange_take_part(struct recorded_exchange *recorded, uint32_t number,
                               struct slice bytes) {
    if (number == PART_ABOUT)
        return take_about(recorded, bytes);
    if (number >= PART_FIRST && number - PART_FIRST < PARTS)
        *slice_at(recorded, &parts[number - PART_FIRST]) = bytes;
    return true;
}

bool recorded_exchange_parse(struct recorded_exchange *recorded, struct slice content,
                             const char **error) {
    *recorded = (struct recorded_exchange){0};
    while (content.length > 0) {
        if (content.length < PART_HEAD || take_64(content.base + 8) > content.length - PART_HEAD) {
            *error = "one of its parts is longer than the exchange";
            return false;
        }
        uint64_t length = take_64(content.base + 8);
        struct slice bytes = slice_make(content.base + PART_HEAD, (size_t)length);
        if (!exchange_take_part(recorded, take_32(content.base), bytes)) {
            *error = "the description of the exchange can't be read";
            return false;
        }
        content.base += PART_HEAD + length;
        content.length -= PART_HEAD + (size_t)length;
    }
    return true;
}

bool recorded_exchange_part(const struct recorded_exchange *recorded, const char *name,
                            struct slice *bytes) {
    for (unsigned i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0) {
            *bytes = *exchange_text_of(recorded, &parts[i]);
            return true;
        }
    return false;
}
