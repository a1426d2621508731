#include "origin/source.h"

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

static bool origin_targets_equal(const struct origin_targets *a, const struct origin_targets *b) {
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

struct origin_source *origin_source_new(const char *text, const char *name) {
    struct origin_source *source;
    struct url url;
    ALLOC_OBJ(source, ORIGIN_SOURCE_MAGIC);
    source->text = xstrdup(text);
    ASSERT(url_parse(&url, slice_from(source->text)));
    source->question = slice_dup(url.host);
    source->https = url_is_https(&url);
    ASSERT(asprintf(&source->named, "%s://%s", source->https ? "https" : "http", name) > 0);
    source->references = 1;
    source->listed = true;
    return source;
}

void origin_source_release(struct origin_source *source) {
    CHECK_OBJ(source, ORIGIN_SOURCE_MAGIC);
    if (--source->references > 0)
        return;
    origin_targets_release(&source->targets);
    free(source->text);
    free(source->question);
    free(source->named);
    FREE_OBJ(source);
}

bool origin_source_is_for(const struct origin_source *source,
                          const struct origin_server_settings *server) {
    struct url named;
    ASSERT(url_parse(&named, slice_from(source->named)));
    return server->srv && strcmp(source->text, server->text) == 0 &&
           slice_equal(named.host, slice_from(server->name));
}

void origin_source_configure(struct origin_source *source,
                             const struct origin_server_settings *server,
                             const struct origins_settings *settings) {
    CHECK_OBJ(source, ORIGIN_SOURCE_MAGIC);
    source->backup = server->backup;
    source->drain = server->drain;
    source->egress =
        settings->local_destinations == LOCAL_ALLOW ? EGRESS_FOUND_LOCAL : EGRESS_FOUND;
    source->ttl_min = settings->srv_ttl_min;
    source->ttl_max = settings->srv_ttl_max;
    source->most = settings->srv_servers;
}

static void origin_source_keep(struct origin_source *source, uint64_t ttl, uint64_t now) {
    if (ttl > source->ttl_max)
        ttl = source->ttl_max;
    source->ttl = ttl < source->ttl_min ? source->ttl_min : ttl;
    source->ask_at = now + source->ttl;
}

static const char *origin_source_reason(const struct dns_targets *answer) {
    switch (answer->kind) {
    case DNS_ANSWER_NO_NAME: return "there is no such name";
    case DNS_ANSWER_NO_RECORD: return "the name has no SRV records";
    default: break;
    }
    return answer->count > 0 ? NULL : "the service is not available at this domain (target \".\")";
}

bool origin_source_answered(struct origin_source *source, const struct dns_targets *answer,
                            uint64_t now) {
    struct origin_targets targets;
    CHECK_OBJ(source, ORIGIN_SOURCE_MAGIC);
    ASSERT(answer->kind != DNS_ANSWER_BAD);
    bool awaited = source->state == ORIGIN_SOURCE_AWAITED;
    source->left_out =
        answer->unusable + origin_targets_make(&targets, answer->list, answer->count,
                                               source->https ? "https" : "http", source->most);
    bool same = origin_targets_equal(&targets, &source->targets);
    if (answer->count > 0 && targets.count == 0) {
        origin_targets_release(&targets);
        return origin_source_unanswered(source, "no name in the SRV records is one of a host", now);
    }
    origin_targets_release(&source->targets);
    source->targets = targets;
    source->state = targets.count > 0 ? ORIGIN_SOURCE_FOUND : ORIGIN_SOURCE_NONE;
    source->error = origin_source_reason(answer);
    source->failing = false;
    origin_source_keep(source, (uint64_t)answer->ttl * 1000, now);
    return awaited || !same;
}

bool origin_source_unanswered(struct origin_source *source, const char *error, uint64_t now) {
    CHECK_OBJ(source, ORIGIN_SOURCE_MAGIC);
    bool awaited = source->state == ORIGIN_SOURCE_AWAITED;
    if (awaited)
        source->state = ORIGIN_SOURCE_UNKNOWN;
    source->error = error;
    source->failing = true;
    source->ask_at = now + source->ttl_min;
    return awaited;
}
