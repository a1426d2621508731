#include "http/trace_context.h"

#include "base/clocks.h"

#include <sys/random.h>

/* Where the parts of a traceparent begin: "00-TRACE-SPAN-01". */
enum { VERSION_AT = 0, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, SAMPLED = 1 };

static int digit_of(char letter) {
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* §3.2.2.1: lower case only. */
static bool read_bytes(struct slice text, size_t at, unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int high = digit_of(text.base[at + 2 * i]), low = digit_of(text.base[at + 2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool are_zero(const unsigned char *bytes, size_t count) {
    unsigned char all = 0;
    for (size_t i = 0; i < count; i++)
        all |= bytes[i];
    return all == 0;
}

bool trace_context_parse(struct trace_context *context, struct slice value) {
    unsigned char version, flags, span[sizeof context->span];
    *context = (struct trace_context){.span = 0};
    if (value.length < TRACE_CONTEXT_TEXT || value.base[TRACE_AT - 1] != '-' ||
        value.base[SPAN_AT - 1] != '-' || value.base[FLAGS_AT - 1] != '-' ||
        !read_bytes(value, VERSION_AT, &version, 1) || version == 0xff)
        return false;
    if (value.length > TRACE_CONTEXT_TEXT &&
        (version == 0 || value.base[TRACE_CONTEXT_TEXT] != '-'))
        return false;
    if (!read_bytes(value, TRACE_AT, context->trace, TRACE_ID) ||
        !read_bytes(value, SPAN_AT, span, sizeof span) || !read_bytes(value, FLAGS_AT, &flags, 1) ||
        are_zero(context->trace, TRACE_ID))
        return false;
    for (size_t i = 0; i < sizeof span; i++)
        context->span = context->span << 8 | span[i];
    context->sampled = (flags & SAMPLED) != 0;
    return context->span != 0;
}

struct slice trace_context_state(struct slice value) {
    struct slice state = slice_make(value.base, 0);
    size_t members = 0;
    for (size_t i = 0; i <= value.length; i++) {
        if (i < value.length && (value.base[i] < ' ' || value.base[i] > '~') &&
            value.base[i] != '\t')
            return slice_make("", 0);
        if (i < value.length && value.base[i] != ',')
            continue;
        if (i <= TRACE_STATE_MOST && members < TRACE_STATE_MEMBERS)
            state.length = i;
        members++;
    }
    return state;
}

/* The finalizer of SplitMix64: each bit of the number changes half of the result's. */
static uint64_t stir(uint64_t number) {
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
    return number ^ number >> 31;
}

/* Ids need to be unique and no secret, so a start without random bytes goes by the clock. */
void trace_ids_init(struct trace_ids *ids) {
    if (getrandom(ids->state, sizeof ids->state, 0) != sizeof ids->state) {
        ids->state[0] = stir(clocks_nanoseconds(CLOCK_REALTIME));
        ids->state[1] = stir(clocks_nanoseconds(CLOCK_MONOTONIC));
    }
    ids->state[0] |= 1;
}

/* xoroshiro128++ (Blackman and Vigna, 2019). */
uint64_t trace_ids_draw(struct trace_ids *ids) {
    uint64_t a = ids->state[0], b = ids->state[1], sum = a + b;
    b ^= a;
    ids->state[0] = (a << 49 | a >> 15) ^ b ^ b << 21;
    ids->state[1] = b << 28 | b >> 36;
    return (sum << 17 | sum >> 47) + a;
}

void trace_context_new(struct trace_context *context, struct trace_ids *ids) {
    uint64_t trace[2];
    *context = (struct trace_context){.state = SLICE("")};
    trace[0] = trace_ids_draw(ids);
    trace[1] = trace_ids_draw(ids) | 1;
    memcpy(context->trace, trace, TRACE_ID);
    context->span = trace_ids_draw(ids) | 1;
}

uint64_t trace_context_child(uint64_t span, unsigned number) {
    uint64_t id = stir(span + (number + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return id != 0 ? id : 1;
}

void trace_context_write_id(const struct trace_context *context, char text[TRACE_ID_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < TRACE_ID; i++) {
        text[2 * i] = digits[context->trace[i] >> 4];
        text[2 * i + 1] = digits[context->trace[i] & 0xf];
    }
}

struct slice trace_context_write(const struct trace_context *context,
                                 char text[TRACE_CONTEXT_TEXT]) {
    char *at = slice_put(text, SLICE("00-"));
    trace_context_write_id(context, at);
    at = slice_put(at + TRACE_ID_TEXT, SLICE("-"));
    at = slice_put_hex(at, context->span);
    slice_put(at, context->sampled ? SLICE("-01") : SLICE("-00"));
    return slice_make(text, TRACE_CONTEXT_TEXT);
}
