#include "origin/call.h"

#include "base/assert.h"
#include "tls/client.h"

/* LOOK_AGAIN: milliseconds between two checks of a host that may be lost. */
enum { LOOK_AGAIN = 250, INTERIM_MAX = 100 };

static void origin_call_finish(struct origin_call *call, enum origin_state state) {
    call->state = state;
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    if (call->waker != NULL)
        loop_defer(call->net->loop, call->waker);
}

void origin_call_let_go(struct origin_call *call) {
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    timer_set(&call->net->loop->timers, &call->total_timer, TIMER_NEVER);
    if (call->request.slot != NULL)
        origin_slot_leave(call->request.slot);
    call->request.slot = NULL; /* its next server belongs to another call */
}

/* An old connection was closed, or the origin has done nothing for the request, so that it can be
 * sent on another connection. */
static bool origin_call_may_repeat(const struct origin_call *call, enum origin_failure failure) {
    bool harmless = call->unprocessed || (call->reused && call->request.repeatable);
    return failure == ORIGIN_BROKE_OFF && harmless && !call->heard && !call->body_begun &&
           call->repeats < ORIGIN_REPEATS_MOST &&
           (!call->wants_http1 || call->request.on_http1 != NULL);
}

/* Leads the call to the same origin by HTTP/1.1. */
static void origin_call_turn_to_http1(struct origin_call *call) {
    struct tls_client *old = call->request.security, *old_of_proxy = call->request.proxy.tls;
    call->wants_http1 = false;
    call->request.on_http1(call->request.http1_arg, &call->request);
    tls_client_release(&old);
    tls_client_release(&old_of_proxy);
    origin_site_leave(&call->site);
}

static void origin_call_queue(struct origin_call *call) {
    list_append(&call->site->waiting, &call->waiting);
    call->waits = true;
    call->unsent = true; /* earlier failures did no harm, otherwise this code would not run */
    origin_call_await(call, call->request.connect_timeout);
    origin_site_wake(call->site);
}

/* On a new connection, or on one that calls share: the one that has failed takes none any more. */
static void origin_call_repeat(struct origin_call *call) {
    call->net->counters.origin_retries++;
    call->repeats += call->sent_on ? ORIGIN_REPEAT_SENT_ON : ORIGIN_REPEAT;
    call->reused = call->unprocessed = call->sent_on = false;
    call->state = ORIGIN_CONNECTING;
    call->class = NULL;
    if (call->wants_http1)
        origin_call_turn_to_http1(call);
    if (call->site == NULL || !call->site->shares)
        origin_call_dial(call);
    else
        origin_call_queue(call);
}

const char *origin_call_keep_error(struct origin_call *call, const char *error) {
    char *kept = xstrdup(error);
    free(call->own_error);
    call->own_error = kept;
    return kept;
}

/* Nothing carries the request any more. */
static void origin_call_drop(struct origin_call *call) {
    if (call->class != NULL)
        call->class->drop(call);
}

static void origin_call_unqueue(struct origin_call *call) {
    if (!call->waits)
        return;
    call->waits = false;
    list_remove(&call->waiting);
    origin_call_pause(call);
}

/* The calls that wait for the same connection would not get one either. */
static void fail_waiting(struct origin_call *opener, struct origin_site *site) {
    struct list_link all;
    list_init(&all);
    while (!list_empty(&site->waiting)) {
        struct list_link *link = list_first(&site->waiting);
        list_remove(link);
        list_append(&all, link);
    }
    while (!list_empty(&all)) {
        struct origin_call *call = CONTAINER_OF(list_first(&all), struct origin_call, waiting);
        call->reached = opener->reached;
        call->unsent = opener->unsent;
        call->address = opener->address;
        origin_call_fail(call, opener->failure, origin_call_keep_error(call, opener->error));
    }
}

/* Has the opener failed as each call would? Whether an address is allowed, and how many names may
 * be looked up, differs from client to client. */
static bool has_failed_for_all(const struct origin_call *opener) {
    return opener->dial_failed && opener->failure != ORIGIN_DENIED &&
           !opener->dial.query.result.refused;
}

/* The opener has a connection, has failed, or is closed. If only it has failed, another one tries. */
/* If the call opens a connection for its site, it is done: it has one, has failed, or is closed. */
static void origin_call_opener_is_done(struct origin_call *call) {
    struct origin_site *site = call->site;
    if (site == NULL)
        return;
    if (call->class != NULL && call->state == ORIGIN_CONNECTING) {
        site->known = true;
        site->shares = call->class == call->connections->http2;
    }
    if (site->opener != call)
        return;
    site->opener = NULL;
    if (has_failed_for_all(call))
        fail_waiting(call, site);
    else
        origin_site_wake(site);
}

void origin_call_fail(struct origin_call *call, enum origin_failure failure, const char *error) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    task_cancel(&call->send_task);
    task_cancel(&call->dial_task);
    dial_cancel(&call->dial);
    origin_call_unqueue(call);
    origin_call_drop(call);
    if (call->state == ORIGIN_WAITING && origin_call_may_repeat(call, failure)) {
        origin_call_repeat(call);
        return;
    }
    call->failure = failure;
    call->error = error;
    origin_call_opener_is_done(call);
    if (call->request.slot != NULL && failure != ORIGIN_NO_REQUEST && failure != ORIGIN_DENIED)
        origin_slot_failed(call->request.slot, error);
    origin_call_let_go(call);
    if (call->state != ORIGIN_ANSWERED) {
        origin_call_finish(call, ORIGIN_FAILED);
        return;
    }
    call->body_failed = true;
    source_wake(&call->body);
}

void origin_call_await(struct origin_call *call, uint64_t patience) {
    uint64_t first = call->request.connect_timeout;
    call->patience_ends = call->net->loop->now + patience;
    call->doubts = 0;
    loop_timer_after(call->net->loop, &call->timer, patience < first ? patience : first);
}

static void look_again(struct origin_call *call, uint64_t after) {
    uint64_t at = call->net->loop->now + after;
    timer_set(&call->net->loop->timers, &call->timer,
              at < call->patience_ends ? at : call->patience_ends);
}

/* The other idle connections will fail as well. A group has other servers. */
static void lose_host(struct origin_call *call) {
    if (call->request.slot != NULL)
        call->repeats = ORIGIN_REPEATS_MOST;
    call->class->lose_host(call);
}

/* The origin has been silent for a while. Checks that its host still acknowledges packets, as a
 * slow one does. */
static void look(struct origin_call *call) {
    uint64_t unanswered = call->class == NULL ? 0 : call->class->unanswered(call);
    call->doubts = unanswered >= call->request.connect_timeout ? call->doubts + 1 : 0;
    if (call->doubts > 1)
        lose_host(call);
    else
        look_again(call, unanswered > 0 ? LOOK_AGAIN : call->request.connect_timeout);
}

/* The dial of another call has a limit of its own; what comes after it does not. */
static void origin_call_waited_long(struct origin_call *call) {
    if (call->site->opener != NULL) {
        origin_call_await(call, call->request.connect_timeout);
        return;
    }
    call->net->counters.origin_http2_wait_timeouts++;
    origin_call_fail(
        call, ORIGIN_TIMED_OUT,
        "all streams of its HTTP/2 connections were in use for origin.connect_timeout; "
        "raise origin.http2_connections or the limit of the origin");
}

static void origin_call_on_timeout(struct timer *timer) {
    struct origin_call *call = CONTAINER_OF(timer, struct origin_call, timer);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    /* Received bytes wait until there is room for them; the next read sets the timer again. */
    if (call->state == ORIGIN_ANSWERED && call->class->has_unread(call))
        return;
    if (call->net->loop->now < call->patience_ends) {
        look(call);
        return;
    }
    if (call->waits) {
        origin_call_waited_long(call);
        return;
    }
    origin_call_fail(call, ORIGIN_TIMED_OUT,
                     call->state == ORIGIN_ANSWERED
                         ? "it stopped sending in the middle of the response"
                         : "it did not answer in time");
}

static void origin_call_on_total_timeout(struct timer *timer) {
    struct origin_call *call = CONTAINER_OF(timer, struct origin_call, total_timer);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    /* Connections from the pool do not help here. */
    call->request.repeatable = false;
    origin_call_fail(call, ORIGIN_TIMED_OUT, "it took longer than origin.total_timeout");
}

/* The connection is open: sends the request and reads at the same time. */
static void origin_call_begin(struct origin_call *call) {
    call->state = ORIGIN_WAITING;
    call->unsent = false;
    call->interim = 0;
    call->net->counters.origin_requests++;
    origin_call_await(call, call->request.first_byte_timeout);
    call->class->begin(call);
}

/* An address that is not allowed is the fault of a server that DNS has named, not the client's. */
static enum origin_failure dial_failure(struct origin_call *call) {
    const struct dial *dial = &call->dial;
    call->net->counters.origin_srv_refused += dial->denied && egress_is_found(call->request.egress);
    if (dial->denied && !egress_is_found(call->request.egress))
        return ORIGIN_DENIED;
    if (dial->proxy_answered && !dial->timed_out)
        return ORIGIN_REFUSED;
    return dial->timed_out ? ORIGIN_TIMED_OUT : ORIGIN_UNREACHABLE;
}

static void count_handshake(struct origin_call *call) {
    struct counters *counters = &call->net->counters;
    if (call->dial.state == DIAL_FAILED) {
        counters->origin_tls_failures += call->dial.reached;
        counters->origin_tls_unverified += call->dial.unverified;
        return;
    }
    counters->origin_tls_handshakes++;
    counters->origin_tls_resumed += tls_stream_is_resumed(call->dial.connection->tls);
}

static void origin_call_on_dialled(struct task *task) {
    struct origin_call *call = CONTAINER_OF(task, struct origin_call, dial_task);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    call->address = call->dial.address;
    if (call->request.security != NULL)
        count_handshake(call);
    if (call->dial.proxy_answered && call->request.slot != NULL)
        origin_slot_answered(call->request.slot,
                             200); /* what fails now is not the parent's fault */
    call->unsent = !call->dial.proxy_answered;
    call->reached = call->dial.reached;
    if (call->dial.state == DIAL_FAILED) {
        call->dial_failed = true;
        origin_call_fail(call, dial_failure(call), origin_call_keep_error(call, call->dial.error));
        return;
    }
    struct connection *connection = dial_take(&call->dial, NULL, NULL);
    call->class = origin_pool_class(call->connections, connection, call->request.protocols);
    call->class->use(call, &connection);
    call->net->counters.origin_connections++;
    origin_call_opener_is_done(call);
    origin_call_begin(call);
}

void origin_call_dial(struct origin_call *call) {
    call->state = ORIGIN_CONNECTING;
    call->class = NULL;
    call->reused = call->heard = call->dial_failed = false;
    call->unsent = true; /* earlier failures did no harm, otherwise this code would not run */
    const struct dial_target target = {
        .host = call->request.host,
        .port = call->request.port,
        .egress = call->request.egress,
        .permit = call->request.permit,
        .permit_arg = call->request.permit_arg,
        .timeout = call->request.connect_timeout,
        .from = call->request.from,
        .client = call->request.client,
        .preface = call->request.preface,
        .tls = call->request.security,
        .proxy = call->request.proxy,
    };
    dial_start(&call->dial, call->net, &target, &call->dial_task);
    call->request.client = NULL; /* it may be gone when the request is repeated */
}

static void on_body_news(struct task *task) {
    struct origin_call *call = CONTAINER_OF(task, struct origin_call, send_task);
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    if (call->class != NULL)
        call->class->send(call);
}

bool origin_call_reuse(struct origin_call *call, const struct origin_call_class *class) {
    call->class = class;
    if (class->reuse(call)) {
        call->net->counters.origin_connections_reused += call->reused;
        origin_call_begin(call);
        return true;
    }
    call->class = NULL;
    return false;
}

void origin_call_start(struct origin_call *call, struct net_context *net,
                       struct origin_pool *connections, const struct origin_request *request,
                       struct http_head *response, struct task *waker) {
    memset(call, 0, offsetof(struct origin_call, room));
    call->magic = ORIGIN_CALL_MAGIC;
    call->dial.magic = 0;
    call->net = net;
    call->started = net->loop->now_nanoseconds;
    call->connections = connections;
    call->request = *request;
    if (request->security != NULL)
        tls_client_take(request->security);
    if (request->proxy.tls != NULL)
        tls_client_take(request->proxy.tls);
    call->response = response;
    call->waker = waker;
    timer_init(&call->timer, origin_call_on_timeout);
    timer_init(&call->total_timer, origin_call_on_total_timeout);
    if (request->deadline != TIMER_NEVER)
        timer_set(&net->loop->timers, &call->total_timer, request->deadline);
    task_init(&call->dial_task, origin_call_on_dialled);
    task_init(&call->send_task, on_body_news);
    if (request->body != NULL)
        source_set_waker(request->body, &call->send_task);
    if (request->protocols != ORIGIN_HTTP1) {
        call->site = origin_site_take(connections, request->pool_key);
        origin_call_seek(call);
    } else if (!request->repeatable || !origin_call_reuse(call, connections->http1)) {
        origin_call_dial(call);
    }
}

void origin_call_pause(struct origin_call *call) {
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
}

void origin_call_note_heard(struct origin_call *call) {
    call->heard = true;
    times_add(&call->net->durations.origin_first_byte_seconds,
              (call->net->loop->now_nanoseconds - call->started) / 1000);
}

bool origin_call_take_interim(struct origin_call *call) {
    const struct origin_request *request = &call->request;
    if (++call->interim > INTERIM_MAX) {
        origin_call_fail(call, ORIGIN_BAD, "it sent too many interim (1xx) responses");
        return false;
    }
    if (call->response->status != 100 && request->on_interim != NULL)
        request->on_interim(request->interim_arg, call->response);
    return true;
}

void origin_call_answer(struct origin_call *call) {
    call->state = ORIGIN_ANSWERED;
    origin_call_pause(call);
    if (call->request.slot != NULL)
        origin_slot_answered(call->request.slot, call->response->status);
    if (call->waker != NULL)
        loop_defer(call->net->loop, call->waker);
}

void origin_call_refuse_head(struct origin_call *call) {
    call->net->counters.origin_heads_too_large++;
    origin_call_fail(call, ORIGIN_BAD, "its response head is larger than origin.max_head");
}

struct source *origin_call_body(struct origin_call *call) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    ASSERT(call->state == ORIGIN_ANSWERED && !call->body_open);
    if (call->no_body) {
        if (!call->body_ended && !call->body_failed)
            call->class->finish(call);
        return NULL;
    }
    call->body_open = true;
    return &call->body;
}

struct duplex *origin_call_take_tunnel(struct origin_call *call) {
    CHECK_OBJ(call, ORIGIN_CALL_MAGIC);
    ASSERT(call->state == ORIGIN_ANSWERED &&
           (call->response->status == 101 || call->request.method == HTTP_METHOD_CONNECT));
    origin_call_pause(call);
    timer_set(&call->net->loop->timers, &call->total_timer, TIMER_NEVER);
    return call->class->take_tunnel(call);
}

void origin_call_forget_request(struct origin_call *call) {
    if (call->magic != ORIGIN_CALL_MAGIC || call->request.body == NULL)
        return;
    if (call->request.body->waker == &call->send_task)
        source_set_waker(call->request.body, NULL);
    task_cancel(&call->send_task);
    call->request.body = NULL;
    if (call->class != NULL)
        call->class->forget_request(call);
}

void origin_call_close(struct origin_call *call) {
    if (call->magic != ORIGIN_CALL_MAGIC)
        return;
    call->waker = NULL;
    call->body.waker = NULL;
    origin_call_forget_request(call);
    task_cancel(&call->send_task);
    task_cancel(&call->dial_task);
    dial_cancel(&call->dial);
    origin_call_let_go(call);
    timer_cancel(&call->net->loop->timers, &call->timer);
    timer_cancel(&call->net->loop->timers, &call->total_timer);
    origin_call_unqueue(call);
    origin_call_drop(call);
    call->class = NULL;
    origin_call_opener_is_done(call);
    origin_site_leave(&call->site);
    tls_client_release(&call->request.security);
    tls_client_release(&call->request.proxy.tls);
    free(call->own_error);
    call->magic = 0;
}

static const enum url_scheme_id fetched[] = {
    URL_HTTP,
    URL_HTTPS,
};

bool origin_can_fetch(struct slice scheme) {
    for (size_t i = 0; i < sizeof fetched / sizeof fetched[0]; i++)
        if (slice_equal_nocase(scheme, url_schemes[fetched[i]].name))
            return true;
    return false;
}

/* Calls to a site where they may share a connection: each takes one that is there, opens one, or
 * waits. */

/* False: the call has to wait. */
static bool origin_call_try(struct origin_call *call) {
    struct origin_pool *connections = call->connections;
    struct origin_site *site = call->site;
    if (origin_call_reuse(call, connections->http2))
        return true;
    if (site->known && !site->shares) {
        if (!call->request.repeatable || !origin_call_reuse(call, connections->http1))
            origin_call_dial(call);
        return true;
    }
    if (site->opener != NULL || !connections->http2->may_open(call))
        return false;
    site->opener = call;
    origin_call_dial(call);
    return true;
}

/* A call that has to go on waiting keeps its place, and its time. */
static bool call_queue_try(struct origin_call *call) {
    struct list_link *next = call->waiting.next;
    uint64_t deadline = call->timer.deadline;
    origin_call_unqueue(call);
    if (origin_call_try(call))
        return true;
    list_insert_before(next, &call->waiting);
    call->waits = true;
    timer_set(&call->net->loop->timers, &call->timer, deadline);
    return false;
}

/* In their order. But an upload for which a connection has no room must not stop requests without a
 * body, for which it may have. */
void origin_call_let_try(struct origin_site *site) {
    bool uploads_wait = false;
    LIST_FOR_EACH_SAFE (link, next, &site->waiting) {
        struct origin_call *call = CONTAINER_OF(link, struct origin_call, waiting);
        bool is_upload = call->request.body != NULL;
        if ((is_upload && uploads_wait) || call_queue_try(call))
            continue;
        if (!is_upload)
            return;
        uploads_wait = true;
    }
}

void origin_call_seek(struct origin_call *call) {
    struct origin_site *site = call->site;
    if (list_empty(&site->waiting) && origin_call_try(call))
        return;
    call->net->counters.origin_http2_waits++;
    origin_call_queue(call);
}
