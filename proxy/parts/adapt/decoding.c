#include "adapt/decoding.h"

#include "adapt/representation.h"
#include "base/assert.h"
#include "base/log.h"

enum { URL_SHOWN = 200 };

static bool may_be_transformed(const struct http_head *request, const struct http_head *response) {
    struct slice no_transform = SLICE("no-transform");
    return !http_head_has_token(response, HTTP_CACHE_CONTROL, no_transform) &&
           !http_head_has_token(request, HTTP_CACHE_CONTROL, no_transform);
}

/* Returns the codings to be decoded, as coding_list does. All lines of the field are one list
 * (RFC 9110 §5.3). */
static int codings_of(const struct http_head *request, const struct http_head *response,
                      struct arena *arena, const struct coding *codings[CODING_LAYERS_MAX]) {
    const struct http_field *field = http_head_find(response, HTTP_CONTENT_ENCODING);
    struct slice all = SLICE("");
    if (field == NULL || !may_be_transformed(request, response))
        return 0;
    for (; field != NULL; field = http_head_find_next(response, HTTP_CONTENT_ENCODING, field))
        all = arena_concat(arena, all, SLICE(","), field->value);
    return coding_list(all, codings);
}

bool decoding_would_begin(const struct http_head *request, const struct http_head *response,
                          struct arena *arena) {
    const struct coding *codings[CODING_LAYERS_MAX];
    return codings_of(request, response, arena, codings) > 0;
}

static struct decoding *decoding_decode(struct adapt_message *message,
                                        const struct coding *const *codings, int count,
                                        const struct service_settings *service, struct arena *arena,
                                        struct net_context *net) {
    struct decoding *decoding = arena_alloc(arena, sizeof *decoding);
    const struct spill_file_limits keep = {
        .memory = service->keep,
        .file = service->keep_on_disk,
        .directory = service->temporary_directory,
        .spare = &net->spare_blocks,
    };
    const struct decoder_limits limits = {service->decode_size, service->decode_ratio};
    INIT_OBJ(decoding, DECODING_MAGIC);
    decoding->net = net;
    decoding->service = service->name;
    decoding->url = message->request->target;
    decoding->head = arena_alloc(arena, sizeof *decoding->head);
    http_head_assign(decoding->head, message->response);
    virgin_body_init(&decoding->coded, net->loop, &message->body, &keep);
    decoder_init(&decoding->decoder, codings, count, &limits, &decoding->coded.first, net->loop);
    representation_decoded(message->response, arena);
    message->body = decoder_body(&decoding->decoder);
    net->counters.adapt_decoded++;
    return decoding;
}

struct decoding *decoding_begin(struct adapt_message *message,
                                const struct service_settings *service, struct arena *arena,
                                struct net_context *net) {
    const struct coding *codings[CODING_LAYERS_MAX];
    if (message->body == NULL || message->body->length == 0)
        return NULL;
    int count = codings_of(message->request, message->response, arena, codings);
    if (count == CODING_UNKNOWN)
        net->counters.adapt_decode_unknown++;
    return count > 0 ? decoding_decode(message, codings, count, service, arena, net) : NULL;
}

const char *decoding_error(const struct decoding *decoding) {
    CHECK_OBJ(decoding, DECODING_MAGIC);
    return decoding->decoder.error;
}

bool decoding_restore(struct decoding *decoding, struct adapt_message *message) {
    CHECK_OBJ(decoding, DECODING_MAGIC);
    if (decoding->coded.from != NULL) /* the waiting transaction may be gone */
        source_set_waker(decoding->coded.from, NULL);
    if (!virgin_body_is_whole(&decoding->coded))
        return false;
    http_head_assign(message->response, decoding->head);
    message->body = virgin_body_replay(&decoding->coded);
    return true;
}

void decoding_commit(struct decoding *decoding) {
    CHECK_OBJ(decoding, DECODING_MAGIC);
    virgin_body_stop_keeping(&decoding->coded);
}

static void tell_error(const struct decoding *decoding) {
    struct counters *counters = &decoding->net->counters;
    const struct decoder *decoder = &decoding->decoder;
    struct slice url = decoding->url;
    if (url.length > URL_SHOWN)
        url.length = URL_SHOWN;
    if (decoder->limited) {
        counters->adapt_decode_limited++;
        log_warn("service %s: %.*s: %s; raise this limit if such bodies should be adapted",
                 decoding->service, SLICE_PRINT(url), decoder->error);
    } else {
        counters->adapt_decode_broken++;
        log_info("service %s: %.*s: %s", decoding->service, SLICE_PRINT(url), decoder->error);
    }
}

void decoding_close(struct decoding *decoding) {
    CHECK_OBJ(decoding, DECODING_MAGIC);
    decoding->net->counters.adapt_decoded_bytes += decoder_given(&decoding->decoder);
    if (decoding->decoder.error != NULL)
        tell_error(decoding);
    decoder_close(&decoding->decoder);
    virgin_body_release(&decoding->coded);
    decoding->magic = 0;
}
