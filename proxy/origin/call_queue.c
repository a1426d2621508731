#include "origin/call.h"

/* Calls to a site where they may share a connection: each takes one that is there, opens one, or
 * waits. */

/* False: the call has to wait. */
static bool origin_call_try(struct origin_call *call) {
    struct origin_connections *connections = call->connections;
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

void origin_call_queue(struct origin_call *call) {
    list_append(&call->site->waiting, &call->waiting);
    call->waits = true;
    call->unsent = true; /* earlier failures did no harm, otherwise this code would not run */
    origin_call_await(call, call->request.connect_timeout);
    origin_site_wake(call->site);
}

void origin_call_unqueue(struct origin_call *call) {
    if (!call->waits)
        return;
    call->waits = false;
    list_remove(&call->waiting);
    origin_call_pause(call);
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
void origin_call_opener_is_done(struct origin_call *call) {
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

/* The dial of another call has a limit of its own; what comes after it does not. */
void origin_call_waited_long(struct origin_call *call) {
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
