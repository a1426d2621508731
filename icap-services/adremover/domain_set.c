#include "adremover/domain_set.h"

#include "adremover/hash.h"
#include "adremover/host.h"
#include "base/assert.h"

enum { ENTRY_MAX = FILTER_HOST_MAX };

static int domain_set_compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* An entry ends at a bar. A bar inside a regular expression does not end it. */
static size_t entry_length(struct slice text) {
    size_t at = text.length > 0 && text.base[0] == '~';
    if (at < text.length && text.base[at] == '/')
        for (at++; at < text.length && text.base[at] != '/'; at++)
            at += text.base[at] == '\\';
    while (at < text.length && text.base[at] != '|')
        at++;
    return at < text.length ? at : text.length;
}

static bool domain_set_take_entry(struct slice *rest, struct slice *entry) {
    if (rest->length == 0)
        return false;
    size_t length = entry_length(*rest), used = length + (length < rest->length);
    *entry = slice_trim(slice_make(rest->base, length));
    *rest = slice_make(rest->base + used, rest->length - used);
    return true;
}

static uint64_t hash_lower(struct slice entry) {
    char text[ENTRY_MAX];
    for (size_t i = 0; i < entry.length; i++)
        text[i] = (char)ascii_lower((unsigned char)entry.base[i]);
    return hash_host(slice_make(text, entry.length)) & ~(uint64_t)1;
}

/* Adds an entry that begins with "/". */
static bool add_regex(struct domain_set *set, struct slice entry, bool negative) {
    if (entry.length < 3 || entry.base[entry.length - 1] != '/' ||
        set->regex_count == DOMAIN_REGEXES_MAX)
        return false;
    struct slice pattern = slice_make(entry.base + 1, entry.length - 2);
    struct domain_regex *one = &set->regexes[set->regex_count];
    one->regex = regex_create(pattern, false);
    one->negative = negative;
    one->digest = negative;
    for (size_t i = 0; i < pattern.length; i++)
        one->digest = one->digest * 31 + (unsigned char)pattern.base[i];
    set->regex_count += one->regex != NULL;
    set->any_positive |= !negative;
    return one->regex != NULL;
}

static bool domain_set_add(struct domain_set *set, struct slice entry, bool inverse) {
    bool negative = entry.length > 0 && entry.base[0] == '~';
    entry.base += negative, entry.length -= negative;
    if (entry.length > 0 && entry.base[entry.length - 1] == '.')
        entry.length--;
    if (entry.length > 2 && entry.base[0] == '[' && entry.base[entry.length - 1] == ']')
        entry = slice_make(entry.base + 1, entry.length - 2); /* an IPv6 address */
    if (entry.length == 0)
        return true;
    negative ^= inverse;
    if (entry.base[0] == '/')
        return add_regex(set, entry, negative);
    char room[ASCII_HOST_MAX];
    entry = ascii_host(entry, room);
    if (entry.length == 0 || entry.length > ENTRY_MAX)
        return false;
    set->any_positive |= !negative;
    set->any_entity |= entry.length > 2 && entry.base[entry.length - 1] == '*';
    set->hashes[set->count++] = hash_lower(entry) | negative;
    return true;
}

struct domain_set *domain_set_parse(struct slice text, bool inverse) {
    size_t bars = 1;
    for (size_t i = 0; i < text.length; i++)
        bars += text.base[i] == '|';
    struct domain_set *set = xcalloc(1, sizeof *set + bars * sizeof *set->hashes);
    struct slice entry;
    bool good = true;
    while (good && domain_set_take_entry(&text, &entry))
        good = domain_set_add(set, entry, inverse);
    if (!good || set->count + set->regex_count == 0)
        domain_set_free(&set);
    else
        qsort(set->hashes, set->count, sizeof *set->hashes, domain_set_compare);
    return set;
}

void domain_set_free(struct domain_set **setp) {
    struct domain_set *set = *setp;
    *setp = NULL;
    for (unsigned i = 0; set != NULL && i < set->regex_count; i++)
        regex_free(&set->regexes[i].regex);
    free(set);
}

/* 1: listed, -1: listed with "~", 0: not listed. */
static int domain_set_find(const struct domain_set *set, uint64_t hash) {
    size_t low = 0, high = set->count;
    hash &= ~(uint64_t)1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->hashes[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == set->count || (set->hashes[low] & ~(uint64_t)1) != hash)
        return 0;
    return set->hashes[low] & 1 ? -1 : 1;
}

static int find_labels(const struct domain_set *set, const struct filter_labels *labels) {
    int found = 0;
    for (unsigned i = 0; labels != NULL && found == 0 && i < labels->count; i++)
        found = domain_set_find(set, labels->label[i].hash);
    return found;
}

static int find_regex(const struct domain_set *set, struct slice host) {
    int found = 0;
    bool gave_up; /* a host is short */
    for (unsigned i = 0; found == 0 && i < set->regex_count; i++)
        if (regex_matches(set->regexes[i].regex, host, host.base, &gave_up))
            found = set->regexes[i].negative ? -1 : 1;
    return found;
}

bool domain_set_fits(const struct domain_set *set, struct slice host,
                     const struct filter_labels *labels, const struct filter_labels *entities) {
    int found = find_labels(set, labels);
    if (found == 0)
        found = find_labels(set, entities);
    if (found == 0)
        found = find_regex(set, host);
    return found == 0 ? !set->any_positive : found > 0;
}

uint64_t domain_set_digest(const struct domain_set *set) {
    uint64_t digest = 0;
    for (unsigned i = 0; set != NULL && i < set->count; i++)
        digest = (digest ^ set->hashes[i]) * 0x9e3779b97f4a7c15u;
    for (unsigned i = 0; set != NULL && i < set->regex_count; i++)
        digest = (digest ^ set->regexes[i].digest) * 0x9e3779b97f4a7c15u;
    return digest;
}
