#include "runner/frame.h"

#include "base/assert.h"

#include <string.h>

/* In front of the texts, in their order. */
struct message_lengths {
    uint32_t point, has_body, of_service, unused, request_version, version;
    uint32_t request, head, client_ip, client_user, arguments, transaction_id;
};

struct verdict_lengths {
    uint32_t skip, keeps_body, answers, failed;
    uint64_t body_length, lifetime;
    uint32_t version, head, because, opt_out;
};

static char *facts_join(const void *front, size_t front_length, const struct slice *texts,
                        unsigned count, size_t *length) {
    *length = front_length;
    for (unsigned i = 0; i < count; i++) {
        if (texts[i].length > FRAME_TEXT_MAX)
            return NULL;
        *length += texts[i].length;
    }
    if (*length > FRAME_TEXT_MAX)
        return NULL;
    char *bytes = xmalloc(*length), *at = bytes + front_length;
    memcpy(bytes, front, front_length);
    for (unsigned i = 0; i < count; i++) {
        if (texts[i].length > 0)
            memcpy(at, texts[i].base, texts[i].length);
        at += texts[i].length;
    }
    return bytes;
}

char *facts_of_message(const struct facts_message *facts, size_t *length) {
    const struct slice texts[] = {facts->request,     facts->head,      facts->client_ip,
                                  facts->client_user, facts->arguments, facts->transaction_id};
    const struct message_lengths lengths = {
        .point = facts->point,
        .has_body = facts->has_body,
        .of_service = facts->of_service,
        .request_version = facts->request_version,
        .version = facts->version,
        .request = (uint32_t)facts->request.length,
        .head = (uint32_t)facts->head.length,
        .client_ip = (uint32_t)facts->client_ip.length,
        .client_user = (uint32_t)facts->client_user.length,
        .arguments = (uint32_t)facts->arguments.length,
        .transaction_id = (uint32_t)facts->transaction_id.length,
    };
    return facts_join(&lengths, sizeof lengths, texts, 6, length);
}

char *facts_of_verdict(const struct facts_verdict *facts, size_t *length) {
    const struct slice texts[] = {facts->head, facts->because};
    const struct verdict_lengths lengths = {
        .skip = facts->skip,
        .keeps_body = facts->keeps_body,
        .answers = facts->answers,
        .failed = facts->failed,
        .opt_out = facts->opt_out,
        .body_length = facts->body_length,
        .lifetime = facts->lifetime,
        .version = facts->version,
        .head = (uint32_t)facts->head.length,
        .because = (uint32_t)facts->because.length,
    };
    return facts_join(&lengths, sizeof lengths, texts, 2, length);
}

bool bundle_add(struct bundle *bundle, const struct frame *frame, const char *payload) {
    if (frame->length == 0 || frame->number > FRAME_TEXT_MAX)
        return false;
    if (bundle->bytes == NULL) {
        bundle->total = (size_t)frame->number;
        bundle->bytes = xmalloc(bundle->total + 1);
    }
    if (frame->number != bundle->total || frame->length > bundle->total - bundle->length)
        return false;
    memcpy(bundle->bytes + bundle->length, payload, frame->length);
    bundle->length += frame->length;
    return true;
}

void bundle_release(struct bundle *bundle) {
    free(bundle->bytes);
    *bundle = (struct bundle){0};
}

/* Cuts the texts out, which have to fill the rest exactly. */
static bool facts_cut(const struct bundle *bundle, size_t at, const uint32_t *lengths,
                      struct slice *const *texts, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (lengths[i] > bundle->length - at)
            return false;
        *texts[i] = slice_make(bundle->bytes + at, lengths[i]);
        at += lengths[i];
    }
    return at == bundle->length;
}

bool facts_read_message(struct facts_message *facts, const struct bundle *bundle) {
    struct message_lengths lengths;
    if (bundle->length < sizeof lengths)
        return false;
    memcpy(&lengths, bundle->bytes, sizeof lengths);
    facts->point = lengths.point;
    facts->has_body = lengths.has_body;
    facts->of_service = lengths.of_service;
    facts->request_version = lengths.request_version;
    facts->version = lengths.version;
    const uint32_t cuts[] = {lengths.request,     lengths.head,      lengths.client_ip,
                             lengths.client_user, lengths.arguments, lengths.transaction_id};
    struct slice *const texts[] = {&facts->request,     &facts->head,      &facts->client_ip,
                                   &facts->client_user, &facts->arguments, &facts->transaction_id};
    return facts_cut(bundle, sizeof lengths, cuts, texts, 6);
}

bool facts_read_verdict(struct facts_verdict *facts, const struct bundle *bundle) {
    struct verdict_lengths lengths;
    if (bundle->length < sizeof lengths)
        return false;
    memcpy(&lengths, bundle->bytes, sizeof lengths);
    facts->skip = lengths.skip;
    facts->keeps_body = lengths.keeps_body;
    facts->answers = lengths.answers;
    facts->failed = lengths.failed;
    facts->opt_out = lengths.opt_out;
    facts->body_length = lengths.body_length;
    facts->lifetime = lengths.lifetime;
    facts->version = lengths.version;
    const uint32_t cuts[] = {lengths.head, lengths.because};
    struct slice *const texts[] = {&facts->head, &facts->because};
    return facts_cut(bundle, sizeof lengths, cuts, texts, 2) && lengths.skip <= 1 &&
           lengths.keeps_body <= 1 && lengths.answers <= 1 && lengths.failed <= 1 &&
           lengths.opt_out <= 1;
}
