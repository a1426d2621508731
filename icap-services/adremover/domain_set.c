#include "adremover/domain_set.h"

#include "adremover/hash.h"
#include "base/assert.h"

enum { ENTRY_MAX = FILTER_HOST_MAX };

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static bool take_entry(struct slice *rest, struct slice *entry) {
    if (rest->length == 0)
        return false;
    const char *bar = memchr(rest->base, '|', rest->length);
    size_t length = bar == NULL ? rest->length : (size_t)(bar - rest->base);
    size_t used = bar == NULL ? length : length + 1;
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

static bool add(struct domain_set *set, struct slice entry, bool inverse) {
    bool negative = entry.length > 0 && entry.base[0] == '~';
    entry.base += negative, entry.length -= negative;
    if (entry.length > 0 && entry.base[entry.length - 1] == '.')
        entry.length--;
    if (entry.length == 0)
        return true;
    if (entry.base[0] == '/' || entry.length > ENTRY_MAX)
        return false;
    negative ^= inverse;
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
    while (good && take_entry(&text, &entry))
        good = add(set, entry, inverse);
    if (!good || set->count == 0) {
        free(set);
        return NULL;
    }
    qsort(set->hashes, set->count, sizeof *set->hashes, compare);
    return set;
}

/* 1: listed, -1: listed with "~", 0: not listed. */
static int find(const struct domain_set *set, uint64_t hash) {
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
        found = find(set, labels->label[i].hash);
    return found;
}

bool domain_set_fits(const struct domain_set *set, const struct filter_labels *labels,
                     const struct filter_labels *entities) {
    int found = find_labels(set, labels);
    if (found == 0)
        found = find_labels(set, entities);
    return found == 0 ? !set->any_positive : found > 0;
}

uint64_t domain_set_digest(const struct domain_set *set) {
    uint64_t digest = 0;
    for (unsigned i = 0; set != NULL && i < set->count; i++)
        digest = (digest ^ set->hashes[i]) * 0x9e3779b97f4a7c15u;
    return digest;
}
