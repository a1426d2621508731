#include "http/head_difference.h"

#include <stdlib.h>
#include <strings.h>

/* The fields of a head by their names; those of one name are in the order of the head. */
struct sorted_fields {
    const struct http_field *fields[HTTP_FIELDS_ROOM];
    unsigned count, at;
};

static int compare_names(struct slice a, struct slice b) {
    size_t length = a.length < b.length ? a.length : b.length;
    int order = length == 0 ? 0 : strncasecmp(a.base, b.base, length);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int order_of_fields(const void *a, const void *b) {
    const struct http_field *one = *(const struct http_field *const *)a;
    const struct http_field *other = *(const struct http_field *const *)b;
    int order = compare_names(one->name, other->name);
    return order != 0 ? order : (one > other) - (one < other);
}

static void sort_fields(struct sorted_fields *sorted, const struct http_head *head) {
    sorted->at = 0;
    sorted->count = head->field_count;
    for (unsigned i = 0; i < head->field_count; i++)
        sorted->fields[i] = &head->fields[i];
    qsort(sorted->fields, sorted->count, sizeof sorted->fields[0], order_of_fields);
}

/* The next field, if it has this name; NULL: it has not, or there is none. */
static const struct http_field *take_named(struct sorted_fields *sorted, struct slice name) {
    if (sorted->at == sorted->count || compare_names(sorted->fields[sorted->at]->name, name) != 0)
        return NULL;
    return sorted->fields[sorted->at++];
}

/* Takes all fields of the name from both. */
static bool take_alike(struct sorted_fields *one, struct sorted_fields *other, struct slice name) {
    const struct http_field *mine, *theirs;
    bool alike = true;
    do {
        mine = take_named(one, name);
        theirs = take_named(other, name);
        alike = alike && (mine == NULL) == (theirs == NULL) &&
                (mine == NULL || slice_equal(mine->value, theirs->value));
    } while (mine != NULL || theirs != NULL);
    return alike;
}

/* The first of the names that are left. */
static struct slice first_left(const struct sorted_fields *one, const struct sorted_fields *other) {
    if (one->at == one->count)
        return other->fields[other->at]->name;
    struct slice mine = one->fields[one->at]->name;
    if (other->at == other->count || compare_names(mine, other->fields[other->at]->name) <= 0)
        return mine;
    return other->fields[other->at]->name;
}

unsigned http_head_difference(const struct http_head *one, const struct http_head *other,
                              struct slice names[HTTP_DIFFERENCE_MAX]) {
    struct sorted_fields mine, theirs;
    unsigned count = 0;
    sort_fields(&mine, one);
    sort_fields(&theirs, other);
    while (mine.at < mine.count || theirs.at < theirs.count) {
        struct slice name = first_left(&mine, &theirs);
        if (!take_alike(&mine, &theirs, name))
            names[count++] = name;
    }
    return count;
}
