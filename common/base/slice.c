#include "base/slice.h"

#include "base/assert.h"

#include <endian.h>

static inline uint64_t repeat8(unsigned byte) {
    return byte * 0x0101010101010101u;
}

/* Eight bytes with A to Z made lower-case. Adding to the low seven bits of each byte carries into
 * its top bit exactly when the byte reaches the bound. */
static inline uint64_t lower8(uint64_t word) {
    uint64_t low = word & repeat8(0x7f);
    uint64_t from_a = low + repeat8(0x80 - 'A'), above_z = low + repeat8(0x7f - 'Z');
    return word | (((from_a & ~above_z & ~word) & repeat8(0x80)) >> 2);
}

/* Most names have the same case, so the words are compared as they are first. */
static inline bool same8_nocase(uint64_t a, uint64_t b) {
    return a == b || lower8(a) == lower8(b);
}

static inline uint64_t load8(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Loads four to seven bytes; the ones in the middle are loaded twice. */
static inline uint64_t load_short(const char *at, size_t length) {
    uint32_t first, last;
    memcpy(&first, at, sizeof first);
    memcpy(&last, at + length - sizeof last, sizeof last);
    return (uint64_t)last << 32 | first;
}

/* Compares words of eight bytes; the last word overlaps the one before. */
static bool bytes_equal_nocase(const char *a, const char *b, size_t length) {
    if (length >= 8) {
        for (size_t i = 0; i + 8 < length; i += 8)
            if (!same8_nocase(load8(a + i), load8(b + i)))
                return false;
        return same8_nocase(load8(a + length - 8), load8(b + length - 8));
    }
    if (length >= 4)
        return same8_nocase(load_short(a, length), load_short(b, length));
    for (size_t i = 0; i < length; i++)
        if (ascii_lower((unsigned char)a[i]) != ascii_lower((unsigned char)b[i]))
            return false;
    return true;
}

static inline void put_lower8(char *at, const char *from) {
    uint64_t word = lower8(load8(from));
    memcpy(at, &word, sizeof word);
}

char *slice_put_lower(char *at, struct slice text) {
    if (text.length < 8) {
        for (size_t i = 0; i < text.length; i++)
            at[i] = (char)ascii_lower((unsigned char)text.base[i]);
    } else {
        for (size_t i = 0; i + 8 < text.length; i += 8)
            put_lower8(at + i, text.base + i);
        put_lower8(at + text.length - 8, text.base + text.length - 8);
    }
    return at + text.length;
}

bool slice_equal_nocase(struct slice a, struct slice b) {
    return a.length == b.length && bytes_equal_nocase(a.base, b.base, a.length);
}

bool slice_starts_with(struct slice text, struct slice prefix) {
    return prefix.length == 0 ||
           (text.length >= prefix.length && memcmp(text.base, prefix.base, prefix.length) == 0);
}

bool slice_starts_with_nocase(struct slice text, struct slice prefix) {
    return text.length >= prefix.length &&
           bytes_equal_nocase(text.base, prefix.base, prefix.length);
}

bool slice_ends_with_nocase(struct slice text, struct slice suffix) {
    return text.length >= suffix.length &&
           bytes_equal_nocase(text.base + text.length - suffix.length, suffix.base, suffix.length);
}

static bool is_ows(char c) {
    return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice text) {
    while (text.length > 0 && is_ows(text.base[0])) {
        text.base++;
        text.length--;
    }
    while (text.length > 0 && is_ows(text.base[text.length - 1]))
        text.length--;
    return text;
}

bool slice_to_uint64(struct slice text, uint64_t *value) {
    uint64_t sum = 0;
    if (text.length == 0)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned)(unsigned char)text.base[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    return true;
}

/* The length of the element at the front, which ends at a comma outside a quoted string. */
static size_t element_length(struct slice text) {
    bool quoted = false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.base[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            return i;
    }
    return text.length;
}

bool slice_next_element(struct slice *rest, struct slice *element) {
    while (rest->length > 0) {
        size_t length = element_length(*rest);
        *element = slice_trim(slice_make(rest->base, length));
        size_t taken = length < rest->length ? length + 1 : length;
        rest->base += taken;
        rest->length -= taken;
        if (element->length > 0)
            return true;
    }
    return false;
}

char *slice_dup(struct slice text) {
    char *copy = xmalloc(text.length + 1);
    if (text.length > 0)
        memcpy(copy, text.base, text.length);
    copy[text.length] = '\0';
    return copy;
}

/* Computes the digits from the number of bits: 1233/4096 is nearly the decimal logarithm of 2. The
 * comparison with a power of 10 corrects the result. */
unsigned slice_digits(uint64_t number) {
    static const uint64_t powers[20] = {
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
    };
    unsigned bits = 64 - (unsigned)__builtin_clzll(number | 1), most = bits * 1233 >> 12;
    return most + (number >= powers[most]);
}

/* Writes two digits at a time, because divisions take most of the time. */
char *slice_put_number(char *at, int64_t number) {
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (number < 0)
        *at++ = '-';
    char *end = at + slice_digits(rest), *digit = end;
    for (; rest > UINT32_MAX; rest /= 100)
        memcpy(digit -= 2, &pairs[rest % 100 * 2], 2);
    uint32_t small = (uint32_t)rest; /* divisions of 32 bits are cheaper */
    for (; small >= 10; small /= 100)
        memcpy(digit -= 2, &pairs[small % 100 * 2], 2);
    if (digit > at)
        *at = (char)('0' + small);
    return end;
}

/* Returns the eight hexadecimal digits of 32 bits, with the highest digit first in memory. */
static inline uint64_t hex_digits(uint64_t number) {
    number = (number | number << 16) & 0x0000ffff0000ffff;
    number = (number | number << 8) & 0x00ff00ff00ff00ff;
    number = (number | number << 4) & 0x0f0f0f0f0f0f0f0f;
    uint64_t letters = (number + repeat8(6)) >> 4 & repeat8(1);
    return htobe64(number + repeat8('0') + letters * ('a' - '0' - 10));
}

char *slice_put_hex(char *at, uint64_t number) {
    uint64_t digits[] = {hex_digits(number >> 32), hex_digits(number & UINT32_MAX)};
    memcpy(at, digits, sizeof digits);
    return at + sizeof digits;
}

struct slice slice_of_number(char digits[SLICE_DIGITS], int64_t number) {
    return slice_make(digits, (size_t)(slice_put_number(digits, number) - digits));
}

bool slice_next_line(struct slice *rest, struct slice *line) {
    if (rest->length == 0)
        return false;
    const char *newline = memchr(rest->base, '\n', rest->length);
    size_t length = newline != NULL ? (size_t)(newline - rest->base) : rest->length;
    *line = slice_make(rest->base, length);
    length += newline != NULL;
    *rest = slice_make(rest->base + length, rest->length - length);
    return true;
}
