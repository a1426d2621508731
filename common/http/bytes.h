/*
 * Classes of bytes in heads and URLs: says which bytes may stand where, and skips a run of them.
 *
 *     const char *end = bytes_skip(at, limit, BYTES_TARGET);     the first byte of no target
 *
 * The functions run over every byte of every head. So they are inline, and handle many bytes at
 * once if the processor can do that.
 * Threads: values.
 */
#ifndef RETORT_HTTP_BYTES_H
#define RETORT_HTTP_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The classes of bytes; a byte may be of several classes. */
enum {
    BYTES_TOKEN = 1,  /* a name or a method: RFC 9110 §5.6.2 */
    BYTES_TARGET = 2, /* a request target: visible ASCII, and bytes above 0x7f */
    BYTES_TEXT = 4,   /* a value or a reason phrase: BYTES_TARGET, SP and HTAB */
    /* Visible ASCII that needs no escape in any text: all but '"' and '\\'. */
    BYTES_PLAIN = 8,
    BYTES_VISIBLE = BYTES_TARGET | BYTES_TEXT,
    BYTES_SIGN = BYTES_VISIBLE | BYTES_PLAIN,
    BYTES_ANYWHERE = BYTES_TOKEN | BYTES_SIGN,
};

extern const uint8_t bytes_classes[256];

static inline bool bytes_is(char c, unsigned class) {
    return bytes_classes[(unsigned char)c] & class;
}

#ifdef __SSE2__
/* Returns a bit for each of the sixteen bytes; the bit is set when the byte is not of the class. */
static inline unsigned bytes_stops(__m128i bytes, const unsigned class) {
    const __m128i highest_control = _mm_set1_epi8(class == BYTES_TEXT ? 0x1f : 0x20);
    __m128i stop = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f)), low;
    if (class == BYTES_PLAIN) { /* the comparison is signed, so bytes above 0x7f are low too */
        low = _mm_cmplt_epi8(bytes, _mm_set1_epi8('!'));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    } else {
        low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, highest_control), bytes);
    }
    if (class == BYTES_TEXT)
        low = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')), low);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(stop, low));
}
#endif

/* Returns the first byte that is not of the class: BYTES_TARGET, BYTES_TEXT or BYTES_PLAIN. */
static inline const char *bytes_skip(const char *at, const char *end, const unsigned class) {
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        unsigned found = bytes_stops(_mm_loadu_si128((const __m128i *)at), class);
        if (found != 0)
            return at + __builtin_ctz(found);
    }
    if (end - at >= 8) /* the load adds eight zero bytes, which belong to no class */
        at += __builtin_ctz(bytes_stops(_mm_loadl_epi64((const __m128i *)at), class));
#endif
    while (at < end && bytes_is(*at, class))
        at++;
    return at;
}

/* Returns the first byte that does not belong to a token. Names consist mostly of letters, digits
 * and '-': these are checked sixteen at a time, other bytes one by one. */
static inline const char *bytes_skip_token(const char *at, const char *end) {
#ifdef __SSE2__
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        __m128i letters = _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)),
                                        _mm_cmplt_epi8(lower, _mm_set1_epi8('z' + 1)));
        __m128i digits = _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8('0' - 1)),
                                       _mm_cmplt_epi8(bytes, _mm_set1_epi8('9' + 1)));
        __m128i plain =
            _mm_or_si128(_mm_or_si128(letters, digits), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-')));
        unsigned other = ~(unsigned)_mm_movemask_epi8(plain);
        at += __builtin_ctz(other | 0x10000);
        if ((other & 0xffff) == 0)
            continue;
        if (!bytes_is(*at, BYTES_TOKEN))
            return at;
        at++;
    }
#endif
    while (at < end && bytes_is(*at, BYTES_TOKEN))
        at++;
    return at;
}

#endif
