#include "adremover/ascii_host.h"

#include <stdlib.h>

#include <libpsl.h>

/* RFC 3492, 5. */
enum { BASE = 36, LEAST = 1, MOST = 26, SKEW = 38, DAMP = 700, BIAS = 72, FIRST = 128 };
enum { LABEL_MAX = 63 };
enum { NO_LETTER = 0xfffd }; /* what libpsl makes of bytes that are no UTF-8 */

struct label {
    uint32_t points[LABEL_MAX];
    unsigned count;
};

struct output {
    char *bytes;
    size_t length;
    bool full;
};

bool is_ascii(struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.base[i] >= FIRST)
            return false;
    return true;
}

static void put(struct output *output, char c) {
    if (output->length < ASCII_HOST_MAX)
        output->bytes[output->length++] = c;
    else
        output->full = true;
}

/* The number of bytes of UTF-8 that begin with `c`; 0: none do. */
static unsigned utf8_length(unsigned char c) {
    return c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}

static bool read_label(struct slice text, struct label *label) {
    label->count = 0;
    for (size_t i = 0; i < text.length;) {
        unsigned char c = (unsigned char)text.base[i];
        unsigned length = utf8_length(c);
        if (length == 0 || length > text.length - i || label->count == LABEL_MAX)
            return false;
        uint32_t point = length == 1 ? c : c & (0x7fu >> length);
        for (size_t end = i++ + length; i < end; i++) {
            if (((unsigned char)text.base[i] & 0xc0) != 0x80)
                return false;
            point = point << 6 | ((unsigned char)text.base[i] & 0x3f);
        }
        if ((length > 1 && point < FIRST) || point == NO_LETTER)
            return false;
        label->points[label->count++] = point;
    }
    return true;
}

static unsigned next_bias(unsigned delta, unsigned points, bool first) {
    unsigned steps = 0;
    delta /= first ? DAMP : 2;
    delta += delta / points;
    for (; delta > (BASE - LEAST) * MOST / 2; steps += BASE)
        delta /= BASE - LEAST;
    return steps + (BASE - LEAST + 1) * delta / (delta + SKEW);
}

/* A number in digits whose weights depend on the numbers before. */
static void put_number(struct output *output, unsigned number, unsigned bias) {
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (unsigned k = BASE;; k += BASE) {
        unsigned threshold = k <= bias ? LEAST : k >= bias + MOST ? MOST : k - bias;
        if (number < threshold)
            break;
        put(output, digits[threshold + (number - threshold) % (BASE - threshold)]);
        number = (number - threshold) / (BASE - threshold);
    }
    put(output, digits[number]);
}

static uint32_t smallest_from(const struct label *label, uint32_t low) {
    uint32_t smallest = UINT32_MAX;
    for (unsigned i = 0; i < label->count; i++)
        if (label->points[i] >= low && label->points[i] < smallest)
            smallest = label->points[i];
    return smallest;
}

/* RFC 3492, 6.3: how far it is to each point, in the order of their numbers and places. */
static void put_points(struct output *output, const struct label *label, unsigned plain) {
    unsigned delta = 0, bias = BIAS, done = plain;
    for (uint32_t low = FIRST; done < label->count; low++, delta++) {
        uint32_t next = smallest_from(label, low);
        delta += (next - low) * (done + 1);
        low = next;
        for (unsigned i = 0; i < label->count; i++) {
            delta += label->points[i] < low;
            if (label->points[i] != low)
                continue;
            put_number(output, delta, bias);
            bias = next_bias(delta, done + 1, done == plain);
            delta = 0;
            done++;
        }
    }
}

static bool put_label(struct output *output, struct slice text) {
    struct label label;
    unsigned plain = 0;
    if (is_ascii(text)) {
        for (size_t i = 0; i < text.length; i++)
            put(output, text.base[i]);
        return true;
    }
    if (!read_label(text, &label))
        return false;
    for (const char *prefix = "xn--"; *prefix != 0; prefix++)
        put(output, *prefix);
    for (unsigned i = 0; i < label.count; i++)
        if (label.points[i] < FIRST) {
            put(output, (char)label.points[i]);
            plain++;
        }
    if (plain > 0)
        put(output, '-');
    put_points(output, &label, plain);
    return true;
}

static bool put_labels(struct output *output, struct slice rest) {
    for (;;) {
        const char *dot = memchr(rest.base, '.', rest.length);
        size_t length = dot == NULL ? rest.length : (size_t)(dot - rest.base);
        if (!put_label(output, slice_make(rest.base, length)))
            return false;
        if (dot == NULL)
            return true;
        put(output, '.');
        rest = slice_make(dot + 1, rest.length - length - 1);
    }
}

struct slice ascii_host(struct slice host, char room[ASCII_HOST_MAX]) {
    char text[ASCII_HOST_MAX], *lower = NULL;
    struct output output = {.bytes = room};
    if (is_ascii(host))
        return host;
    if (host.length >= sizeof text)
        return SLICE("");
    memcpy(text, host.base, host.length);
    text[host.length] = 0;
    bool good = psl_str_to_utf8lower(text, "utf-8", NULL, &lower) == PSL_SUCCESS &&
                put_labels(&output, slice_from(lower)) && !output.full;
    psl_free_string(lower);
    return good ? slice_make(room, output.length) : SLICE("");
}
