#include "origin/member.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static _Atomic uint64_t next_number = 1;

struct origin_member *origin_member_new(const struct origin_place *place) {
    struct origin_member *member;
    ALLOC_OBJ(member, ORIGIN_MEMBER_MAGIC);
    member->number = atomic_fetch_add(&next_number, 1);
    member->text = xstrdup(place->text);
    ASSERT(url_parse(&member->url, slice_from(member->text)));
    member->named_text = xstrdup(place->named != NULL ? place->named : place->text);
    ASSERT(url_parse(&member->named, slice_from(member->named_text)));
    member->reach = place->reach;
    bool v6 = member->url.host_is_ipv6;
    int length = asprintf(&member->host_port, "%s%.*s%s:%u", v6 ? "[" : "",
                          SLICE_PRINT(member->url.host), v6 ? "]" : "", member->url.port);
    ASSERT(length > 0);
    /* The order depends on host and port and not on the number, so it is the same in all proxies
     * and after each start. */
    member->seed = XXH3_64bits(member->host_port, (size_t)length);
    member->references = 1;
    return member;
}

void origin_member_release(struct origin_member *member) {
    CHECK_OBJ(member, ORIGIN_MEMBER_MAGIC);
    if (--member->references > 0)
        return;
    ASSERT(member->active == 0);
    free(member->text);
    free(member->named_text);
    free(member->host_port);
    free(member->error);
    FREE_OBJ(member);
}

bool origin_member_is_at(const struct origin_member *member, const struct origin_place *place) {
    const char *named = place->named != NULL ? place->named : place->text;
    return strcmp(member->text, place->text) == 0 && member->reach == place->reach &&
           strcmp(member->named_text, named) == 0;
}

void origin_member_configure(struct origin_member *member, const struct origin_place *place) {
    CHECK_OBJ(member, ORIGIN_MEMBER_MAGIC);
    member->listed = true;
    member->source = place->source;
    member->weight = place->weight;
    member->priority = place->priority;
    member->tier = place->tier;
    member->backup = place->backup;
    member->drain = place->drain;
}
