#include "admin/cache_object_page.h"
#include "admin/part_pages.h"
#include "content/injection.h"

/* The part content in the admin plane: an operator stores a response that nobody has fetched. */

/* False: an answer has been made. */
static bool injection_passed(const struct cache_call *call, const struct injection *injection,
                             enum injection_result result) {
    static const unsigned statuses[] = {[INJECTION_BAD] = 400,
                                        [INJECTION_REFUSED] = 409,
                                        [INJECTION_TOO_LARGE] = 413,
                                        [INJECTION_NOT_KEPT] = 500};
    if (result != INJECTION_GOOD)
        page_error(call->page, statuses[result], injection->error);
    return result == INJECTION_GOOD;
}

static void injection_answer(const struct cache_call *call, struct slice url,
                             struct injection *injection, struct slice bytes) {
    const struct content_store store = cache_call_store(call);
    struct object *object;
    if (!injection_passed(call, injection, injection_judge(injection)))
        return;
    struct body *body = body_of_many_bytes(bytes);
    if (body == NULL) {
        page_error(call->page, 503, "there is not enough memory now: try again later");
        return;
    }
    struct cache_name name = cache_call_name_of(call, url);
    enum injection_result result = injection_store(injection, &store, &name, body, &object);
    if (injection_passed(call, injection, result))
        page_json(call->page, 200,
                  json_pack("{s:o}", "stored", cache_object_page_json(call, object)));
    object_release(&object);
    body_release(&body);
}

static bool too_large(const struct cache_call *call) {
    const struct content_store store = cache_call_store(call);
    if (injection_fits(&store, call->request->body.length))
        return false;
    page_error(call->page, 413, "the response is larger than the whole cache");
    return true;
}

/* The body of the call is the whole response with its head. */
static void content_inject(const struct cache_call *call) {
    struct http_head response;
    struct injection injection = {.response = &response, .lifetime = INJECTION_BY_HEAD};
    struct slice message = call->request->body, url;
    uint64_t lifetime;
    if (too_large(call) || !cache_call_take_url(call, &url) ||
        !cache_call_take_number(call, "lifetime", 0, INT32_MAX, &lifetime))
        return;
    if (cache_call_argument(call, "lifetime") != NULL)
        injection.lifetime = (int64_t)lifetime;
    size_t used = injection_read_head(&response, message);
    if (used == 0)
        page_error(call->page, 400, "the body must be a whole final response: HTTP/1.1 200 OK ...");
    else if (!injection_states_length(&response, message.length - used))
        page_error(call->page, 400, "the response's Content-Length is not the length of its body");
    else
        injection_answer(call, url, &injection,
                         slice_make(message.base + used, message.length - used));
}

static void content_answer(struct page *page, const struct admin_calls *calls,
                           const struct page_request *request) {
    cache_call_make(content_inject, page, calls, request);
}

const struct part_pages content_pages = {.answer = content_answer};
