#include "origin/source.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    source->reach = settings->local_destinations == LOCAL_ALLOW ? REACH_FOUND_LOCAL : REACH_FOUND;
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
