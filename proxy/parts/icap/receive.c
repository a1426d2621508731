#include "adapt/recording.h"
#include "base/assert.h"
#include "http/framing.h"
#include "http/head_parser.h"
#include "icap/call.h"
#include "icap/permission.h"
#include "icap/wire.h"

#include <errno.h>

/* Receives the answer of a service: the ICAP head, the HTTP head in it, the adapted body. */

enum { ICAP_HEAD_MAX = 16384, HTTP_HEADS_MAX = 128 * 1024 };

/* Was everything sent that was to be sent, so that the connection can serve again? */
bool icap_call_sent_all(const struct icap_call *call) {
    return sender_is_done(&call->sender) && call->keep_connection;
}

void icap_call_count_in(struct icap_call *call, size_t got) {
    call->heard_at = call->net->loop->now;
    call->service->base.account.bytes_in += got;
    call->base.figures.bytes_in += got;
}

/* 100: the service wants what follows the preview. */
static void icap_receive_go_on(struct icap_call *call) {
    if (!call->previewing) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, "it answered 100 although no preview was sent");
        return;
    }
    call->previewing = false;
    if (call->sender.feed.ended)
        return; /* a 100 after ieof: there is nothing to go on with */
    feed_lift_limit(&call->sender.feed);
    if (!call->may_204 && !call->may_206 && !call->service->base.settings->bypass &&
        !call->request.trickle)
        virgin_body_stop_keeping(&call->base.virgin); /* nothing can ask for it any more */
    icap_call_send(call);
}

/* Does the call still have the virgin body that the verdict refers to? False: the call has
 * failed. */
bool icap_call_has_original(struct icap_call *call) {
    bool whole = virgin_body_is_whole(&call->base.virgin);
    if (!whole)
        icap_call_fail(call, ICAP_FAILURE_REFUSED,
                       "it wants the original of a body that is larger than keep and keep_on_disk");
    return whole;
}

/* The service keeps the original from byte `from` on. These bytes need not come back, and those
 * that have not been sent yet need not be sent. If the length of the body is not known, only the
 * bytes that were sent count. */
void icap_call_count_saved(struct icap_call *call, uint64_t from) {
    uint64_t sent = call->sender.feed.taken;
    int64_t stated = call->base.virgin.first.length;
    uint64_t length = stated < 0 || (uint64_t)stated < sent ? sent : (uint64_t)stated;
    call->service->base.account.bytes_saved += length - sent + (from < length ? length - from : 0);
}

/* One Encapsulated field says where the parts are. Two could contradict each other. */
static bool take_parts(struct icap_call *call, const struct http_head *head) {
    const struct http_field *field = http_head_find(head, HTTP_ENCAPSULATED);
    return field != NULL && http_head_find_next(head, HTTP_ENCAPSULATED, field) == NULL &&
           icap_encapsulated_parse(&call->parts, field->value, HTTP_HEADS_MAX);
}

/* A 204 has no parts (RFC 3507 §4.6). The bytes of a part would be taken for the next answer. */
static bool has_no_parts(struct icap_call *call, const struct http_head *head) {
    struct icap_encapsulated *parts = &call->parts;
    bool none = !http_head_has(head, HTTP_ENCAPSULATED) ||
                (take_parts(call, head) && !parts->has_body && parts->body_at == 0);
    memset(parts, 0, sizeof *parts);
    return none;
}

static void unmodified(struct icap_call *call, const struct http_head *head) {
    bool within_preview = call->previewing;
    if (!has_no_parts(call, head)) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, "it answered 204 and sent a message with it");
        return;
    }
    if (!within_preview && !call->may_204) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL,
                       "it answered 204 although the request did not allow that");
        return;
    }
    if (!icap_call_has_original(call))
        return;
    bool idle = net_buffer_bytes(call->in).length == 0 && icap_call_sent_all(call);
    icap_call_count_saved(call, 0);
    call->step = ICAP_STEP_OVER;
    task_cancel(&call->send_task);
    sender_stop(&call->sender);
    net_buffer_give(call->net, &call->in);
    icap_endpoint_succeeded(call->endpoint);
    icap_call_leave_connection(call, idle);
    icap_call_settle(call, ADAPTER_UNMODIFIED);
}

static struct slice asked_method(const struct icap_call *call) {
    struct slice head = call->request.request_head;
    const char *end = memchr(head.base, ' ', head.length);
    return end == NULL ? head : slice_make(head.base, (size_t)(end - head.base));
}

/* A head that contradicts itself is not trusted, also where no body can follow it. The body is
 * framed by ICAP, but has to agree with the length in the head. */
static bool sound_framing(struct icap_call *call, bool response) {
    struct framing framing;
    const struct http_head *adapted = call->base.adapted;
    bool sound = response ? framing_of_response(&framing, adapted, HTTP_METHOD_GET)
                          : framing_of_request(&framing, adapted);
    if (sound)
        stated_length_take(&call->base.stated, adapted, http_method_lookup(asked_method(call)));
    return sound;
}

/* Parses the HTTP head that came back, from a copy that stays. */
static bool icap_receive_take_head(struct icap_call *call, struct slice bytes) {
    bool response = call->parts.has_response;
    size_t at = response ? call->parts.response_at : 0;
    if (!response && !call->parts.has_request) {
        call->base.result.head_given = false;
        return true;
    }
    size_t length = call->parts.body_at - at;
    call->adapted_bytes = xmalloc(length);
    call->base.result.head_text = slice_make(call->adapted_bytes, length);
    memcpy(call->adapted_bytes, bytes.base + at, length);
    ssize_t used =
        response ? http_head_parse_response(call->base.adapted, call->adapted_bytes, length, 0)
                 : http_head_parse_request(call->base.adapted, call->adapted_bytes, length, 0);
    call->base.result.head_given = true;
    if (response && call->base.adapted->status < 200)
        return false; /* a client would take what follows for another response */
    return used > 0 && (size_t)used == length && sound_framing(call, response);
}

/* RFC 3507 §4.4.1: "REQMOD response encapsulated_list: {[reqhdr] reqbody} | {[reshdr] resbody}",
 * "RESPMOD response encapsulated_list: [reshdr] resbody". The head may be missing when the body
 * goes with the head that we have. But a REQMOD answer with the body of a response must have a
 * head, since we have none. */
static bool fits_method(const struct icap_call *call) {
    bool reqmod = call->request.response_head.length == 0;
    const struct icap_encapsulated *parts = &call->parts;
    if (!reqmod)
        return !parts->has_request && !parts->body_is_request &&
               (parts->has_response || parts->has_body);
    if (parts->has_response)
        return !parts->has_request && !parts->body_is_request;
    return parts->has_body ? parts->body_is_request : parts->has_request;
}

static bool decides_framing(struct slice method) {
    return slice_equal_nocase(method, SLICE("HEAD")) ||
           slice_equal_nocase(method, SLICE("CONNECT"));
}

/* RFC 9112 §6.3: the method of the request, HEAD or CONNECT, decides whether a response has a body.
 * The client goes by the method that it has sent. */
static bool keeps_framing(const struct icap_call *call) {
    if (!call->base.result.head_given || call->parts.has_response)
        return true;
    struct slice before = asked_method(call), after = call->base.adapted->method;
    return slice_equal(before, after) || (!decides_framing(before) && !decides_framing(after));
}

static void icap_receive_modified(struct icap_call *call) {
    struct slice bytes = net_buffer_bytes(call->in);
    if (!fits_method(call) || !icap_receive_take_head(call, bytes)) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, "the message in its answer can't be parsed");
        return;
    }
    if (!keeps_framing(call)) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL,
                       "it changed the method from or to HEAD or CONNECT: the client would take "
                       "the wrong bytes for its response");
        return;
    }
    if (!call->parts.has_body && call->base.stated.least > 0) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, stated_length_no_body);
        return;
    }
    bool satisfied = call->request.response_head.length == 0 && call->parts.has_response;
    call->in->begin += call->parts.body_at;
    call->previewing = false; /* the preview was enough: nothing more is wanted */
    call->outcome = satisfied ? ADAPTER_SATISFIED : ADAPTER_MODIFIED;
    if (!call->base.result.partial && !call->service->base.settings->bypass)
        virgin_body_stop_keeping(&call->base.virgin);
    icap_endpoint_succeeded(call->endpoint);
    if (call->parts.has_body) {
        icap_call_body_init(call);
        call->step = ICAP_STEP_BODY;
        if (call->request.hold || call->base.stated.exact == 0) {
            icap_call_await_body(call);
            return;
        }
    } else {
        bool reusable = icap_call_sent_all(call) && net_buffer_bytes(call->in).length == 0;
        call->step = ICAP_STEP_OVER;
        net_buffer_give(call->net, &call->in);
        icap_call_leave_connection(call, reusable);
    }
    icap_call_settle(call, call->outcome);
}

/* RFC 9110 §15.2: "A client MUST be able to parse one or more 1xx responses received prior to a final
 * response, even if the client does not expect one." But nobody has asked for another protocol. */
static void icap_receive_interim(struct icap_call *call, unsigned status) {
    enum { INTERIMS_MOST = 16, SWITCHING_PROTOCOLS = 101 };
    if (status == SWITCHING_PROTOCOLS)
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL,
                       "it answered 101, but nobody wants another protocol");
    else if (++call->interims > INTERIMS_MOST)
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, "it sent more than 16 interim answers (1xx)");
}

/* Is there a response in the answer? Its head may be missing where the response has one. */
static bool brings_response(struct icap_call *call, const struct http_head *head) {
    bool respmod = call->request.response_head.length > 0;
    return take_parts(call, head) &&
           (call->parts.has_response || (respmod && call->parts.has_body));
}

static void icap_receive_refused(struct icap_call *call, unsigned status) {
    static const struct {
        unsigned status;
        enum icap_failure failure;
        const char *error;
    } refusals[] = {
        {206, ICAP_FAILURE_PROTOCOL, "it answered 206 although the request did not allow that"},
        {404, ICAP_FAILURE_GONE, "it answered 404: there is no such service; check uri"},
        {405, ICAP_FAILURE_GONE, "it answered 405: it does not support this method; check point"},
        {407, ICAP_FAILURE_GONE,
         "it answered 407: it does not accept the credentials; check credentials"},
        {408, ICAP_FAILURE_PATIENCE, "it answered 408: the message came too slowly for it"},
        {503, ICAP_FAILURE_OVERLOADED, "it answered 503: it is overloaded"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].status == status) {
            icap_call_fail(call, refusals[i].failure, refusals[i].error);
            return;
        }
    if (status >= 500)
        icap_call_fail(call, ICAP_FAILURE_SERVER, "it failed (status 5xx)");
    else
        icap_call_fail(call, ICAP_FAILURE_REFUSED, "it answered with an unexpected status");
}

/* RFC 9110 §5.3: a list may stand in several lines. */
static char *join_lines(const struct http_head *head, enum http_name id) {
    size_t length = 1;
    const struct http_field *first = http_head_find(head, id), *field;
    for (field = first; field != NULL; field = http_head_find_next(head, id, field))
        length += field->value.length + 1;
    char *text = xmalloc(length), *at = text;
    for (field = first; field != NULL; field = http_head_find_next(head, id, field)) {
        at = slice_put(at, field->value);
        *at++ = ',';
    }
    *at = '\0';
    return text;
}

static void take_next_services(struct icap_call *call, const struct http_head *head) {
    if (!call->service->base.settings->routing || !http_head_has(head, HTTP_X_NEXT_SERVICES))
        return;
    free(call->base.result.next_services);
    call->base.result.next_services = join_lines(head, HTTP_X_NEXT_SERVICES);
}

/* Our own services use this field to say what they could not do. A foreign service fails as a whole
 * (docs/ICAP.md). */
static void take_inability(struct icap_call *call, const struct http_head *head) {
    static const struct slice name = {"X-Retort-Failed", sizeof "X-Retort-Failed" - 1};
    const struct http_field *field = http_head_find_text(head, name);
    free(call->base.result.unable);
    call->base.result.unable = NULL;
    if (field != NULL)
        call->base.result.unable =
            slice_dup(field->value.length > 0 ? field->value : SLICE("failed"));
}

static void take_istag(struct icap_call *call, const struct http_head *head) {
    struct slice istag = http_head_value(head, HTTP_ISTAG);
    struct service_tag_sight sight = icap_endpoint_see_istag(call->endpoint, istag, &call->asked);
    call->base.result.tag = sight.result;
    if (sight.shifted)
        call->shifts = icap_health_shifts(call->endpoint->health);
}

/* RFC 9110 §15: "a client MUST understand the class of any status code [...] and treat an unrecognized
 * status code as being equivalent to the x00 status code of that class". So 201 is 200: scanners say
 * it when they have put a page in the place of the message. So is 403, if the page is there. True:
 * the answer is read on. */
static bool judge_class(struct icap_call *call, const struct http_head *head) {
    enum { FORBIDDEN = 403 };
    if (head->status / 100 == 2 || (head->status == FORBIDDEN && brings_response(call, head)))
        return true;
    if (head->status < 200)
        icap_receive_interim(call, head->status);
    else
        icap_receive_refused(call, head->status);
    return false;
}

static void icap_receive_judge(struct icap_call *call, const struct http_head *head) {
    call->base.figures.status = head->status;
    take_istag(call, head);
    call->keep_connection = !http_head_has_token(head, HTTP_CONNECTION, SLICE("close"));
    if (call->request.response_head.length == 0 && !call->base.has_body)
        call->base.result.lifetime = icap_permission(head, call->net->loop->wall);
    take_next_services(call, head);
    take_inability(call, head);
    switch (head->status) {
    case 100: icap_receive_go_on(call); return;
    case 204: unmodified(call, head); return;
    case 206:
        call->base.result.partial = call->may_206;
        if (!call->base.result.partial)
            icap_receive_refused(call, head->status);
        if (!call->base.result.partial || !icap_call_has_original(call))
            return;
        break;
    default:
        if (judge_class(call, head))
            break;
        return;
    }
    if (take_parts(call, head))
        call->parts_known = true;
    else
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL,
                       "the Encapsulated header of its answer is wrong");
}

/* True: something was parsed, look again. */
static bool icap_receive_parse(struct icap_call *call) {
    struct slice bytes = net_buffer_bytes(call->in);
    if (call->parts_known) {
        if (bytes.length < call->parts.body_at)
            return false;
        icap_receive_modified(call);
        return true;
    }
    if (bytes.length == 0)
        return false;
    struct http_head head;
    ssize_t used = icap_head_parse(&head, call->in->data + call->in->begin, bytes.length);
    if (used < 0 || (used == 0 && bytes.length > ICAP_HEAD_MAX)) {
        icap_call_fail(call, ICAP_FAILURE_PROTOCOL, "its answer is not ICAP");
        return true;
    }
    if (used == 0)
        return false;
    if (call->base.recording != NULL)
        call->base.recording->class->answered(call->base.recording,
                                              slice_make(bytes.base, (size_t)used));
    call->in->begin += (size_t)used;
    icap_receive_judge(call, &head);
    return true;
}

/* Takes the buffer for the answer. Mostly an answer is as large as what was sent. */
static void icap_receive_take_buffer(struct icap_call *call) {
    bool large = call->sender.feed.taken > NET_BUFFER_SIZE;
    if (call->in != NULL &&
        (!large || call->in->capacity > NET_BUFFER_SIZE || net_buffer_bytes(call->in).length > 0))
        return;
    net_buffer_give(call->net, &call->in);
    if (large)
        call->in = net_buffer_take_large(call->net);
    if (call->in == NULL)
        call->in = net_buffer_take(call->net);
}

void icap_call_receive(struct icap_call *call) {
    size_t got;
    while (call->step == ICAP_STEP_ANSWER) {
        icap_receive_take_buffer(call);
        if (!net_buffer_make_room(call->net, &call->in, HTTP_HEADS_MAX + ICAP_HEAD_MAX)) {
            icap_call_fail(call, ICAP_FAILURE_PROTOCOL, "the heads in its answer are too large");
            return;
        }
        switch (connection_read(call->connection, call->in->data + call->in->end,
                                call->in->capacity - call->in->end, &got)) {
        case IO_DONE: break;
        case IO_WAIT: return;
        case IO_END: icap_call_fail(call, ICAP_FAILURE_CLOSED, "it closed the connection"); return;
        case IO_FAILED:
            icap_call_fail(call, ICAP_FAILURE_CLOSED, icap_call_connection_error(call));
            return;
        }
        call->heard = true;
        icap_call_count_in(call, got);
        call->in->end += got;
        while (call->step == ICAP_STEP_ANSWER && call->in != NULL && icap_receive_parse(call))
            ;
        if (call->connection == NULL || !call->connection->readable)
            return;
    }
}
