/*
 * A slice is a view of bytes that somebody else owns: a pointer and a length, no terminating NUL.
 * Parsers hand out slices into their input; they live as long as that input does.
 *
 *     struct slice name = SLICE("Content-Type");
 *     if (slice_equal_nocase(field->name, name)) ...
 *     log_info("name %.*s", SLICE_PRINT(field->name));
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_BASE_SLICE_H
#define RETORT_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *base;
    size_t length;
};

/* Makes a slice of a string literal. */
#define SLICE(literal) ((struct slice){"" literal, sizeof(literal) - 1})
/* The two arguments of "%.*s". */
#define SLICE_PRINT(slice) (int)(slice).length, (slice).base

static inline struct slice slice_make(const char *base, size_t length) {
    return (struct slice){base, length};
}

static inline struct slice slice_from(const char *text) {
    return (struct slice){text, text == NULL ? 0 : strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.base, b.base, a.length) == 0);
}

/* Compares without ASCII case, whatever the locale says. */
bool slice_equal_nocase(struct slice a, struct slice b);
bool slice_starts_with(struct slice text, struct slice prefix); /* an empty prefix: true */
bool slice_starts_with_nocase(struct slice text, struct slice prefix);
bool slice_ends_with_nocase(struct slice text, struct slice suffix);

/* Returns the slice without SP and HTAB at both ends (RFC 9110 §5.6.3 OWS). */
struct slice slice_trim(struct slice text);

/* The whole slice must be decimal digits, without a sign. False on overflow or other bytes. */
bool slice_to_uint64(struct slice text, uint64_t *value);

/* Writes the number in decimal into `digits`, and returns it as a slice. */
enum { SLICE_DIGITS = 24 };
struct slice slice_of_number(char digits[SLICE_DIGITS], int64_t number);

/* Write text into memory that has enough room, and return the end of the written text.
 *
 *     at = slice_put(at, SLICE("Age: "));
 *     at = slice_put_number(at, 17);
 */
static inline char *slice_put(char *at, struct slice text) {
    if (text.length > 0)
        memcpy(at, text.base, text.length);
    return at + text.length;
}

/* Likewise, and returns the copy. */
static inline struct slice slice_copy(char *at, struct slice text) {
    slice_put(at, text);
    return slice_make(at, text.length);
}

char *slice_put_number(char *at, int64_t number);
unsigned slice_digits(uint64_t number); /* how many decimal digits the number has */
/* Writes SLICE_HEX lower-case digits. */
enum { SLICE_HEX = 16 };
char *slice_put_hex(char *at, uint64_t number);
/* Writes the text with A to Z in lower case. */
char *slice_put_lower(char *at, struct slice text);

/* Takes the next line off the front of *rest, without its newline; false: there is none. */
bool slice_next_line(struct slice *rest, struct slice *line);

/* Takes the next element of a comma-separated list (RFC 9110 §5.6.1) off the front of *rest:
 * quoted strings are kept whole, empty elements skipped. False at the end.
 *
 *     struct slice rest = value, element;
 *     while (slice_next_element(&rest, &element)) ...
 */
bool slice_next_element(struct slice *rest, struct slice *element);

/* A NUL-terminated copy on the heap; the caller frees it. */
char *slice_dup(struct slice text);

static inline unsigned char ascii_lower(unsigned char c) {
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

#endif
