#include "http/names.h"

#include "base/assert.h"

static const struct slice names[HTTP_NAME_COUNT] = {
    [HTTP_OTHER] = {"", 0},
#define HTTP_NAME(id, text) [HTTP_##id] = {text, sizeof(text) - 1},
#include "http/names.def"
#undef HTTP_NAME
};

/*
 * The hash table of the names. A constructor fills it before main(), because C can't hash the texts
 * of names.def while compiling; the table does not change afterwards. Zero is an empty slot
 * (HTTP_OTHER is in no slot). A name whose slot is taken is in the next free one.
 */
enum { SLOTS = 256 };
static uint8_t slots[SLOTS];

_Static_assert((int)HTTP_NAME_COUNT * 2 < (int)SLOTS, "the hash table of field names is too full");

/* Bit 0x20 makes letters lower-case; its effect on other bytes does not matter for a hash. These
 * factors give each name in names.def a slot of its own, and most other names that are common, such
 * as Accept, an empty one. */
static inline unsigned hash_name(const char *text, size_t length) {
    unsigned first = (unsigned char)text[0] | 0x20u;
    unsigned middle = (unsigned char)text[length / 2] | 0x20u;
    unsigned last = (unsigned char)text[length - 1] | 0x20u;
    return ((unsigned)length * 221 + first * 63 + middle * 193 + last * 133) % SLOTS;
}

__attribute__((constructor)) static void fill_slots(void) {
    for (unsigned id = HTTP_OTHER + 1; id < HTTP_NAME_COUNT; id++) {
        unsigned at = hash_name(names[id].base, names[id].length);
        while (slots[at] != HTTP_OTHER)
            at = (at + 1) % SLOTS;
        slots[at] = (uint8_t)id;
    }
}

enum http_name http_name_lookup(struct slice name) {
    if (name.length == 0)
        return HTTP_OTHER;
    unsigned at = hash_name(name.base, name.length);
    for (; slots[at] != HTTP_OTHER; at = (at + 1) % SLOTS) {
        if (slice_equal_nocase(names[slots[at]], name))
            return (enum http_name)slots[at];
    }
    return HTTP_OTHER;
}

struct slice http_name_text(enum http_name id) {
    ASSERT((unsigned)id < HTTP_NAME_COUNT);
    return names[id];
}

enum { HTTP_SAFE = 1, HTTP_IDEMPOTENT = 2 };

static const struct {
    struct slice text;
    unsigned properties;
} methods[HTTP_METHOD_COUNT] = {
    [HTTP_METHOD_OTHER] = {{"", 0}, 0},
#define HTTP_METHOD(id, properties) [HTTP_METHOD_##id] = {{#id, sizeof(#id) - 1}, properties},
#include "http/methods.def"
#undef HTTP_METHOD
};

enum http_method http_method_lookup(struct slice method) {
    if (slice_equal(method, SLICE("GET")))
        return HTTP_METHOD_GET;
    for (unsigned id = HTTP_METHOD_OTHER + 1; id < HTTP_METHOD_COUNT; id++)
        if (slice_equal(method, methods[id].text))
            return (enum http_method)id;
    return HTTP_METHOD_OTHER;
}

struct slice http_method_text(enum http_method id) {
    ASSERT((unsigned)id < HTTP_METHOD_COUNT);
    return methods[id].text;
}

bool http_method_is_safe(enum http_method id) {
    ASSERT((unsigned)id < HTTP_METHOD_COUNT);
    return methods[id].properties & HTTP_SAFE;
}

bool http_method_is_idempotent(enum http_method id) {
    ASSERT((unsigned)id < HTTP_METHOD_COUNT);
    return methods[id].properties & HTTP_IDEMPOTENT;
}

/* The reasons of the IANA registry of status codes. */
const char *http_reason(unsigned status) {
    switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 102: return "Processing";
    case 103: return "Early Hints";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 207: return "Multi-Status";
    case 208: return "Already Reported";
    case 226: return "IM Used";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 305: return "Use Proxy";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 423: return "Locked";
    case 424: return "Failed Dependency";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 451: return "Unavailable For Legal Reasons";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 506: return "Variant Also Negotiates";
    case 507: return "Insufficient Storage";
    case 508: return "Loop Detected";
    case 511: return "Network Authentication Required";
    default: return "Unknown";
    }
}
