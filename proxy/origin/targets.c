#include "origin/targets.h"

#include "base/assert.h"
#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int origin_targets_compare_numbers(unsigned a, unsigned b) {
    return (a > b) - (a < b);
}

static int origin_targets_compare_use(const struct dns_target *a, const struct dns_target *b) {
    int order = origin_targets_compare_numbers(a->priority, b->priority);
    return order != 0 ? order : origin_targets_compare_numbers(b->weight, a->weight);
}

static int origin_targets_compare_place(const struct dns_target *a, const struct dns_target *b) {
    int order = strcmp(a->host, b->host);
    return order != 0 ? order : origin_targets_compare_numbers(a->port, b->port);
}

static int origin_targets_by_place(const void *a, const void *b) {
    int order = origin_targets_compare_place(a, b);
    return order != 0 ? order : origin_targets_compare_use(a, b);
}

static int origin_targets_by_use(const void *a, const void *b) {
    int order = origin_targets_compare_use(a, b);
    return order != 0 ? order : origin_targets_compare_place(a, b);
}

/* Keeps the best record of each place. Returns how many places there are. */
static unsigned origin_targets_unite(struct dns_target *list, unsigned count) {
    unsigned kept = 0;
    qsort(list, count, sizeof *list, origin_targets_by_place);
    for (unsigned i = 0; i < count; i++)
        if (kept == 0 || origin_targets_compare_place(&list[kept - 1], &list[i]) != 0)
            list[kept++] = list[i];
    return kept;
}

/* NULL: the name looks like an address and is none, for example. */
static char *origin_targets_write(const struct dns_target *target, const char *scheme) {
    struct url url;
    char *text;
    ASSERT(asprintf(&text, "%s://%s:%u", scheme, target->host, target->port) > 0);
    if (url_parse(&url, slice_from(text)) && url.host.length > 0 && url.port == target->port)
        return text;
    free(text);
    return NULL;
}

static void origin_targets_add(struct origin_targets *targets, const struct dns_target *from,
                               char *text) {
    const struct origin_target *last =
        targets->count == 0 ? NULL : &targets->list[targets->count - 1];
    targets->list[targets->count++] = (struct origin_target){
        .text = text,
        .priority = from->priority,
        .rank = last == NULL ? 0 : last->rank + (last->priority != from->priority),
        .weight = from->weight > 0 ? from->weight : 1,
    };
}

unsigned origin_targets_make(struct origin_targets *targets, struct dns_target *list,
                             unsigned count, const char *scheme, unsigned most) {
    unsigned left_out = 0;
    count = origin_targets_unite(list, count);
    qsort(list, count, sizeof *list, origin_targets_by_use);
    targets->count = 0;
    targets->list = xcalloc(count + 1, sizeof *targets->list);
    for (unsigned i = 0; i < count; i++) {
        char *text = targets->count < most ? origin_targets_write(&list[i], scheme) : NULL;
        if (text != NULL)
            origin_targets_add(targets, &list[i], text);
        else
            left_out++;
    }
    return left_out;
}

bool origin_targets_equal(const struct origin_targets *a, const struct origin_targets *b) {
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct origin_target *one = &a->list[i], *other = &b->list[i];
        if (strcmp(one->text, other->text) != 0 || one->priority != other->priority ||
            one->weight != other->weight)
            return false;
    }
    return true;
}

void origin_targets_release(struct origin_targets *targets) {
    for (size_t i = 0; i < targets->count; i++)
        free(targets->list[i].text);
    free(targets->list);
    targets->list = NULL;
    targets->count = 0;
}
