#include "transaction/trace.h"

#include "base/log.h"
#include "transaction/transaction.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The text of a line after the step. */
struct trace_text {
    char bytes[TRACE_TEXT];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void trace_say(struct trace_text *text,
                                                            const char *format, ...) {
    va_list arguments;
    size_t room = sizeof text->bytes - text->length;
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->length, room, format, arguments);
    va_end(arguments);
    text->length += (size_t)length < room ? (size_t)length : room - 1;
}

/* ---- what a step has found out ------------------------------------------------------------ */

static void trace_say_request(struct trace_text *text, struct transaction *transaction) {
    struct exchange *exchange = transaction->exchange;
    trace_say(text, "%.*s %.*s", SLICE_PRINT(transaction->request.original_method),
              SLICE_PRINT(transaction->request.original_url));
    if (exchange->background)
        trace_say(text, ", repeated in the background");
    else
        trace_say(text, "%s from %.*s", exchange->of_service ? " of a service" : "",
                  SLICE_PRINT(exchange_client_ip(exchange)));
}

static void trace_say_lookup(struct trace_text *text, const struct transaction *transaction) {
    const struct lookup *lookup = &transaction->lookup;
    if (transaction->outcome.result == RESULT_PASS)
        trace_say(text, "the cache has no part in it");
    else if (transaction->outcome.result == RESULT_STALE)
        trace_say(text, "a stale response is stored, and the request may have it");
    else if (transaction->outcome.result == RESULT_HIT)
        trace_say(text, "a fresh response is stored");
    else if (lookup->part != NULL)
        trace_say(text, "a part of the response is stored");
    else if (lookup->replaced != NULL)
        trace_say(text, "a response is stored that its services have to see again");
    else if (lookup->object != NULL)
        trace_say(text, "a stale response is stored%s",
                  lookup->revalidating ? ", which the origin can confirm" : "");
    else
        trace_say(text, "nothing is stored");
}

static void trace_say_origin(struct trace_text *text, const struct transaction *transaction) {
    if (transaction->fetch.call != NULL && transaction->fetch.call->state == ORIGIN_ANSWERED)
        trace_say(text, "%u from ", transaction->fetch.call->response->status);
    trace_say(text, "%.*s", SLICE_PRINT(transaction->fetch.origin_name));
    if (transaction->outcome.result == RESULT_REVALIDATED)
        trace_say(text, ", which confirms what is stored");
}

static void trace_say_services(struct trace_text *text, const struct transaction *transaction) {
    struct asked_service asked[ASKED_MAX];
    unsigned count = transaction_asked(transaction, transaction->step, asked);
    for (unsigned i = 0; i < count; i++) {
        trace_say(text, "%s%s %s after %u ms", i == 0 ? "" : ", ", asked[i].service,
                  asked[i].verdict, asked[i].milliseconds);
        if (asked[i].error != NULL)
            trace_say(text, " (%s)", asked[i].error);
    }
}

static void trace_say_storage(struct trace_text *text, const struct transaction *transaction) {
    if (transaction->storing.object != NULL)
        trace_say(text, "the response is stored in memory as it arrives");
    else if (transaction->storing.pump.stream != NULL)
        trace_say(text, "the response is written to disk as it arrives");
    else
        trace_say(text, "the response is not stored");
}

/* After an exchange was released, only its outcome is known. */
static void trace_say_end(struct trace_text *text, const struct transaction *transaction) {
    trace_say(text, "%.*s %u", SLICE_PRINT(cache_result_name(transaction->outcome.result)),
              transaction->outcome.status);
}

static void trace_say_result(struct trace_text *text, struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    if (exchange != NULL && exchange->state == EXCHANGE_ABORTED &&
        transaction->step != STEP_RECEIVE) {
        trace_say(text, "the client has gone");
        return;
    }
    switch (transaction->step) {
    case STEP_RECEIVE: trace_say_request(text, transaction); break;
    case STEP_LOOKUP: trace_say_lookup(text, transaction); break;
    case STEP_FETCH: trace_say_origin(text, transaction); break;
    case STEP_STORE: trace_say_storage(text, transaction); break;
    case STEP_DELIVER: trace_say(text, "%u", transaction->outcome.status); break;
    case STEP_LOG: trace_say_end(text, transaction); break;
    default: trace_say_services(text, transaction);
    }
    if (transaction->outcome.error != NULL)
        trace_say(text, "%s%s", text->length > 0 ? "; " : "", transaction->outcome.error);
}

/* ---- what it waits for -------------------------------------------------------------------- */

static void trace_say_awaited(struct trace_text *text, const struct transaction *transaction) {
    const struct adapt_chain *chain = transaction_chain(transaction, transaction->step);
    const char *service = chain != NULL ? transaction->host->adapting->awaited(chain) : NULL;
    if (service != NULL)
        trace_say(text, "the service %s", service);
    else if (transaction->step == STEP_LOOKUP)
        trace_say(text, "%s",
                  transaction->lookup.load != NULL ? "the disk"
                                                   : "another request that fetches the same");
    else if (transaction->step == STEP_FETCH && transaction->fetch.call == NULL)
        trace_say(text, "a place among the connections to the origin %.*s",
                  SLICE_PRINT(transaction->fetch.origin_name));
    else if (transaction->step == STEP_FETCH)
        trace_say(text, "the origin %.*s", SLICE_PRINT(transaction->fetch.origin_name));
    else if (transaction->step == STEP_TUNNEL)
        trace_say(text, "%s",
                  transaction->tunnel.relay != NULL ? "the end of the tunnel"
                                                    : "a connection to the origin");
    else if (transaction->step == STEP_DELIVER)
        trace_say(text, "the client to take the response");
    else
        trace_say(text, "the rest of the response");
}

void trace_found(struct transaction *transaction, char text[TRACE_TEXT]) {
    struct trace_text found = {.length = 0};
    trace_say_result(&found, transaction);
    memcpy(text, found.bytes, found.length + 1);
}

void trace_awaited(const struct transaction *transaction, char text[TRACE_TEXT]) {
    struct trace_text awaited = {.length = 0};
    trace_say_awaited(&awaited, transaction);
    memcpy(text, awaited.bytes, awaited.length + 1);
}

/* ---- the line ----------------------------------------------------------------------------- */

static void trace_wait(struct transaction *transaction) {
    struct trace_text text = {.length = 0};
    if (transaction->times->waits != 0)
        return;
    trace_say_awaited(&text, transaction);
    log_debug("%s %s waits for %s", transaction_id(transaction), step_name(transaction->step),
              text.bytes);
}

void trace_step(struct transaction *transaction, enum step next) {
    struct trace_text text = {.length = 0};
    if (next == STEP_WAIT) {
        trace_wait(transaction);
        return;
    }
    trace_say_result(&text, transaction);
    log_debug("%s %s -> %s%s%s", transaction_id(transaction), step_name(transaction->step),
              step_name(next), text.length > 0 ? ": " : "", text.bytes);
}
