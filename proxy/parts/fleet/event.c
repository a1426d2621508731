#include "fleet/event.h"

#include "base/assert.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAC = SHA256_DIGEST_LENGTH, MAC_TEXT = 2 * MAC, WORDS = 8 };

static const char *const kind_names[FLEET_KINDS] = {"alive", "start", "purge"};

bool fleet_name_is_good(struct slice name) {
    if (name.length == 0 || name.length >= FLEET_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.base[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return true;
}

static void write_hex(const unsigned char *bytes, size_t count, char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

static int event_digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct slice text, unsigned char *bytes, size_t count) {
    if (text.length != 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int high = event_digit_of(text.base[2 * i]), low = event_digit_of(text.base[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

struct fleet_digest fleet_digest_of(struct slice text) {
    unsigned char whole[SHA256_DIGEST_LENGTH];
    struct fleet_digest digest;
    SHA256((const unsigned char *)text.base, text.length, whole);
    memcpy(digest.bytes, whole, FLEET_DIGEST);
    return digest;
}

bool fleet_digest_equal(const struct fleet_digest *a, const struct fleet_digest *b) {
    return memcmp(a->bytes, b->bytes, FLEET_DIGEST) == 0;
}

void fleet_digest_write(const struct fleet_digest *digest, char text[FLEET_DIGEST_TEXT]) {
    write_hex(digest->bytes, FLEET_DIGEST, text);
}

bool fleet_digest_read(struct fleet_digest *digest, struct slice text) {
    return read_hex(text, digest->bytes, FLEET_DIGEST);
}

/* Of the fleet's name, a line end, what stands before the MAC, and what stands behind it. */
static void mac_of(const struct fleet_key *key, struct slice head, struct slice body,
                   unsigned char mac[MAC]) {
    size_t name = strlen(key->fleet), length = name + 1 + head.length + body.length;
    unsigned char *whole = xmalloc(length);
    unsigned size = MAC;
    memcpy(whole, key->fleet, name);
    whole[name] = '\n';
    memcpy(whole + name + 1, head.base, head.length);
    memcpy(whole + name + 1 + head.length, body.base, body.length);
    ASSERT(HMAC(EVP_sha256(), key->bytes, (int)key->length, whole, length, mac, &size) != NULL);
    free(whole);
}

char *fleet_event_write(const struct fleet_event *event, const struct fleet_key *key) {
    char before[FLEET_DIGEST_TEXT], mac_text[MAC_TEXT + 1];
    unsigned char mac[MAC];
    size_t size = event->body.length + 512;
    char *text = xmalloc(size);
    ASSERT(event->body.length <= FLEET_BODY_MAX);
    fleet_digest_write(&event->before, before);
    int head = snprintf(text, size, "1 %s %s %016" PRIx64 " %" PRIu64 " %s ",
                        kind_names[event->kind], event->node, event->epoch, event->number, before);
    mac_of(key, slice_make(text, (size_t)head), event->body, mac);
    write_hex(mac, MAC, mac_text);
    snprintf(text + head, size - (size_t)head, "%s %.*s", mac_text, (int)event->body.length,
             event->body.base);
    return text;
}

/* The next word, and the blank behind it. */
static struct slice event_take_word(struct slice *rest) {
    const char *blank = memchr(rest->base, ' ', rest->length);
    size_t length = blank != NULL ? (size_t)(blank - rest->base) : 0;
    struct slice word = slice_make(rest->base, length);
    if (blank != NULL)
        *rest = slice_make(blank + 1, rest->length - length - 1);
    return word;
}

static enum fleet_event_kind kind_of(struct slice word) {
    for (unsigned kind = 0; kind < FLEET_KINDS; kind++)
        if (slice_equal(word, slice_from(kind_names[kind])))
            return kind;
    return FLEET_KINDS;
}

bool fleet_event_read(struct fleet_event *event, struct slice text, const struct fleet_key *key) {
    unsigned char mac[MAC], wanted[MAC], epoch[8];
    struct slice rest = text;
    if (text.length > FLEET_TEXT_MAX || !slice_equal(event_take_word(&rest), SLICE("1")))
        return false;
    struct slice kind = event_take_word(&rest), node = event_take_word(&rest);
    if (kind.length == 0 || !fleet_name_is_good(node) ||
        !read_hex(event_take_word(&rest), epoch, sizeof epoch) ||
        !slice_to_uint64(event_take_word(&rest), &event->number) ||
        !fleet_digest_read(&event->before, event_take_word(&rest)))
        return false;
    struct slice head = slice_make(text.base, (size_t)(rest.base - text.base));
    if (!read_hex(event_take_word(&rest), mac, MAC) || rest.length > FLEET_BODY_MAX)
        return false;
    mac_of(key, head, rest, wanted);
    if (CRYPTO_memcmp(mac, wanted, MAC) != 0)
        return false;
    event->kind = kind_of(kind);
    memcpy(event->node, node.base, node.length);
    event->node[node.length] = '\0';
    event->epoch = 0;
    for (size_t i = 0; i < sizeof epoch; i++)
        event->epoch = event->epoch << 8 | epoch[i];
    event->body = rest;
    return true;
}

bool fleet_event_is_known(const struct fleet_event *event) {
    return event->kind < FLEET_KINDS;
}
