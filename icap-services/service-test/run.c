#include "service-test/run.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "http/head_parser.h"
#include "service-test/call.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

/* A service that gives more than this for a byte that it got goes on for ever. */
enum { BODY_SLACK = 64 << 20, BODY_GROWTH = 1024 };

static const struct service_ops *ops_of(const struct test_run *run) {
    return run->instance->ops;
}

/* The run can't go on. */
static void run_break(struct test_run *run) {
    run->mode = RUN_OVER;
    run->result.outcome = OUTCOME_BROKEN;
}

static void run_close(struct test_run *run, enum test_outcome outcome) {
    run->mode = RUN_OVER;
    run->result.outcome = outcome;
}

static bool run_is_request(const struct test_run *run) {
    return run->message->response.length == 0;
}

/* ---- heads -------------------------------------------------------------------------------- */

static struct slice head_as_text(struct test_run *run, const struct http_head *head,
                                 bool is_request) {
    return http_head_text(head, is_request ? http_head_write_request : http_head_write_response,
                          &run->arena);
}

/* What a head is, without its unused fields. */
static bool heads_are_same(const struct http_head *a, const struct http_head *b) {
    return slice_equal(a->method, b->method) && slice_equal(a->target, b->target) &&
           a->version == b->version && a->status == b->status && a->field_count == b->field_count &&
           slice_equal(a->reason, b->reason) &&
           memcmp(a->fields, b->fields, a->field_count * sizeof *a->fields) == 0;
}

static bool run_head_is_sound(const struct http_head *head, struct slice text, bool is_request) {
    struct http_head parsed;
    ssize_t used = is_request ? http_head_parse_request(&parsed, text.base, text.length, 0)
                              : http_head_parse_response(&parsed, text.base, text.length, 0);
    if (used <= 0 || (size_t)used != text.length)
        test_call_complain(
            FINDING_HEAD,
            "the head that the service made can't be read: %s. Values that come from "
            "outside must not have control bytes in them",
            used < 0 ? http_error_text((enum http_error) - used) : "it ends in its middle");
    else if (parsed.field_count != head->field_count)
        test_call_complain(FINDING_HEAD,
                           "a value in the head has the end of a line in it, so that the head gets "
                           "a field that nobody meant. Values that come from outside must not have "
                           "control bytes in them");
    else if (http_head_has(&parsed, HTTP_TRANSFER_ENCODING))
        test_call_complain(FINDING_HEAD, "the service adds Transfer-Encoding to the head: how the "
                                         "body is transferred is the host's business");
    else
        return true;
    return false;
}

/* ---- promises that hold around each call -------------------------------------------------- */

/* The first member that is the host's and has another value than before. */
static const char *changed_member(const struct service_exchange *now,
                                  const struct service_exchange *before) {
#define SAME(member)                                                                               \
    if (memcmp(&now->member, &before->member, sizeof now->member) != 0)                            \
    return #member
    SAME(magic);
    SAME(point);
    SAME(request);
    SAME(head);
    SAME(has_body);
    SAME(client_ip);
    SAME(client_user);
    SAME(arguments);
    SAME(transaction_id);
    SAME(arena);
    SAME(host);
#undef SAME
    return NULL;
}

static void run_call(struct test_run *run, enum test_call_name call) {
    test_call_at(run->taken, run->result.length);
    test_call_begin(call);
}

/* Behind each call. False: the service broke what the host works with. */
static bool run_called(struct test_run *run) {
    const struct service_exchange *exchange = &run->exchange;
    test_call_end();
    const char *member = changed_member(exchange, &run->exchange_kept);
    if (member != NULL) {
        test_call_complain(FINDING_CALL, "the service changes exchange->%s, which is the host's",
                           member);
        run->exchange = run->exchange_kept;
        run_break(run);
        return false;
    }
    if (exchange->point == SERVICE_RESPONSE && !heads_are_same(&run->request, &run->request_kept)) {
        test_call_complain(FINDING_HEAD,
                           "the service changes the head of the request of a response");
        http_head_assign(&run->request, &run->request_kept);
    }
    if (run->mode != RUN_ADAPTED && run->mode != RUN_ANSWERED)
        return true;
    if (!run->skipped && !heads_are_same(exchange->head, &run->head_kept))
        test_call_complain(FINDING_HEAD, "the service changes the head after its verdict ADAPT, "
                                         "when the head may have been sent");
    if (!run->skipped && exchange->body_length != run->told)
        test_call_complain(FINDING_LENGTH,
                           "the service changes exchange->body_length after its verdict ADAPT, "
                           "when the head may have been sent");
    return true;
}

/* ---- verdicts ----------------------------------------------------------------------------- */

/* The head stays the original. What the service did to it is not sent, but it is a sign of a
 * mistake: the head may be in use. */
static void run_check_skip(struct test_run *run) {
    struct slice now = head_as_text(run, run->exchange.head, run_is_request(run));
    if (!slice_equal(now, run->head_before))
        test_call_complain(FINDING_HEAD, "the service says SKIP, and has changed the head");
}

static void run_answered(struct test_run *run) {
    const struct service_exchange *exchange = &run->exchange;
    if (exchange->point != SERVICE_REQUEST) {
        test_call_complain(FINDING_CALL, "the service sets exchange->answer for a response: only a "
                                         "request can be answered");
        run_break(run);
        return;
    }
    run->head_text = head_as_text(run, exchange->answer, false);
    run->result.outcome = OUTCOME_ANSWERED;
    run_head_is_sound(exchange->answer, run->head_text, false);
    run->mode = exchange->body_length == 0 ? RUN_OVER : RUN_ANSWERED;
    run->finished = true; /* the body of the request is dropped */
}

/* As every host does it: the length of the adapted body takes the place of the original's. */
static void run_put_length(struct test_run *run) {
    struct service_exchange *exchange = &run->exchange;
    http_head_remove(exchange->head, HTTP_CONTENT_LENGTH);
    if (exchange->body_length != SERVICE_LENGTH_UNKNOWN)
        http_head_add(exchange->head, SLICE("Content-Length"),
                      arena_printf(&run->arena, "%" PRIu64, exchange->body_length));
}

static void run_give_rest(struct test_run *run, uint64_t from);

static void run_kept_body(struct test_run *run) {
    struct slice length = http_head_value(run->exchange.head, HTTP_CONTENT_LENGTH);
    uint64_t told;
    if (run->message->has_body && length.base != NULL &&
        (!slice_to_uint64(length, &told) ||
         (told != run->message->body.length && run->message->body.length > 0)))
        test_call_complain(FINDING_LENGTH,
                           "the service keeps the body of %zu bytes, and the head says %.*s",
                           run->message->body.length, SLICE_PRINT(length));
    run_close(run, OUTCOME_ADAPTED);
    run_give_rest(run, 0);
}

/* A host that has kept no copy has nothing else to pass on. */
static void run_check_keeps(const struct test_run *run) {
    if (run->exchange.keeps_body && run->taken > 0 && !run->plan->copy)
        test_call_complain(FINDING_CALL,
                           "the service sets keeps_body after it has taken %" PRIu64
                           " bytes of the body: hosts that kept no copy have lost them",
                           run->taken);
}

static void run_adapted(struct test_run *run) {
    struct service_exchange *exchange = &run->exchange;
    run->told = exchange->body_length;
    if (exchange->answer != NULL) {
        run_answered(run);
    } else {
        bool keeps = !exchange->has_body || exchange->keeps_body;
        if (!keeps)
            run_put_length(run);
        run->head_text = head_as_text(run, exchange->head, run_is_request(run));
        run_head_is_sound(exchange->head, run->head_text, run_is_request(run));
        run->mode = RUN_ADAPTED;
        run->result.outcome = OUTCOME_ADAPTED;
        run_check_keeps(run);
        if (keeps)
            run_kept_body(run);
    }
    http_head_assign(&run->head_kept, exchange->head);
    if (run->mode != RUN_OVER && (ops_of(run)->pull == NULL ||
                                  (run->mode == RUN_ADAPTED &&
                                   (ops_of(run)->push == NULL || ops_of(run)->finish == NULL)))) {
        test_call_complain(FINDING_CALL,
                           "the service adapts a body, and has not all of the functions "
                           "push, finish and pull");
        run_break(run);
    }
}

static void run_held(struct test_run *run) {
    const struct service_ops *ops = ops_of(run);
    run->mode = RUN_HELD;
    if (ops->verdict != NULL && ops->push != NULL && ops->finish != NULL && ops->pull != NULL)
        return;
    test_call_complain(FINDING_CALL,
                       "the service says HOLD, and has not all of the functions push, "
                       "finish, verdict and pull");
    run_break(run);
}

/* After HOLD: the bytes that the service holds come back, unless the host has kept a copy. */
static void run_skipped(struct test_run *run) {
    bool was_held = run->mode == RUN_HELD;
    run_check_skip(run);
    if (was_held && !run->plan->copy && run->message->has_body) {
        run->skipped = true;
        run->mode = RUN_ADAPTED;
        run->result.outcome = OUTCOME_UNCHANGED;
        return;
    }
    run_close(run, OUTCOME_UNCHANGED);
    run_give_rest(run, 0);
}

/* Its first descriptor says that it waits at all. */
static void run_check_also(const struct test_run *run) {
    if (run->exchange.wait.fd < 0 && run->exchange.also.fd >= 0)
        test_call_complain(FINDING_CALL,
                           "the service names a second descriptor to wait for (exchange->also) and "
                           "no first one: no host looks at it");
}

static void run_take_verdict(struct test_run *run, enum service_verdict verdict) {
    switch (verdict) {
    case SERVICE_SKIP: run_skipped(run); return;
    case SERVICE_ADAPT: run_adapted(run); return;
    case SERVICE_HOLD: run_held(run); return;
    }
    test_call_complain(FINDING_CALL, "the verdict is %d, which is none of SKIP, ADAPT and HOLD",
                       (int)verdict);
    run_break(run);
}

/* ---- the body ----------------------------------------------------------------------------- */

static void run_append(struct test_run *run, const char *bytes, size_t length) {
    struct test_result *result = &run->result;
    if (result->room - result->length < length) {
        result->room = 2 * (result->length + length);
        result->body = xrealloc(result->body, result->room);
    }
    if (length > 0)
        memcpy(result->body + result->length, bytes, length);
    result->length += length;
}

/* The body passes without the service. */
static void run_give_rest(struct test_run *run, uint64_t from) {
    struct slice body = run->message->body;
    if (run->plan->stop < body.length) {
        run->result.cut_short = true;
        return;
    }
    run_append(run, body.base + from, body.length - (size_t)from);
}

static size_t input_end(const struct test_run *run) {
    size_t length = run->message->body.length;
    return run->plan->stop < length ? (size_t)run->plan->stop : length;
}

/* Offers a piece, or what the service left of it. False: nothing moved. */
static bool run_push(struct test_run *run) {
    size_t rest = input_end(run) - (size_t)run->taken;
    if (rest == 0 || run->finished)
        return false;
    if (run->piece == 0)
        run->piece = test_plan_piece(run->plan, run->taken, rest);
    size_t length = run->piece;
    char *bytes = guarded_take(&run->in, length);
    memcpy(bytes, run->message->body.base + run->taken, length);
    run_call(run, CALL_PUSH);
    size_t took = ops_of(run)->push(run->state, slice_make(bytes, length));
    bool good = run_called(run);
    guarded_spoil(&run->in);
    if (took > length) {
        test_call_complain(FINDING_CALL, "push took %zu bytes of %zu", took, length);
        run_break(run);
        return false;
    }
    run->taken += took;
    run->piece -= took;
    if (run->taken > run->result.length && run->taken - run->result.length > run->result.held_most)
        run->result.held_most = run->taken - run->result.length;
    return good && took > 0;
}

/* False: the end was told before, or there is more. */
static bool run_finish(struct test_run *run) {
    if (run->finished || run->taken < input_end(run) || run->plan->stop != TEST_NEVER)
        return false;
    run->finished = true;
    run_call(run, CALL_FINISH);
    ops_of(run)->finish(run->state);
    return run_called(run);
}

static void run_passed(struct test_run *run) {
    run->mode = RUN_OVER;
    if (run->result.outcome != OUTCOME_ANSWERED)
        run_give_rest(run, run->taken);
}

/* All has come that will. */
static void run_check_length(struct test_run *run) {
    if (run->skipped || run->told == SERVICE_LENGTH_UNKNOWN || run->result.cut_short ||
        run->result.length == run->told)
        return;
    test_call_complain(FINDING_LENGTH,
                       "the service said that the body has %" PRIu64 " bytes, and it has %zu: a "
                       "receiver would %s",
                       run->told, run->result.length,
                       run->result.length < run->told ? "wait for the others" : "lose the others");
}

static void run_take_flow(struct test_run *run, enum service_flow flow) {
    switch (flow) {
    case SERVICE_FLOW: return;
    case SERVICE_ABORT: run_close(run, OUTCOME_ABORTED); return;
    case SERVICE_PASS:
        run_passed(run);
        run_check_length(run);
        return;
    case SERVICE_DONE:
        run->mode = RUN_OVER;
        run_check_length(run);
        return;
    }
    test_call_complain(FINDING_CALL,
                       "pull returned %d, which is none of FLOW, DONE, PASS and ABORT", (int)flow);
    run_break(run);
}

/* False: nothing moved. */
static bool run_pull(struct test_run *run) {
    size_t room = run->plan->out, got = 0;
    if (run->mode != RUN_ADAPTED && run->mode != RUN_ANSWERED)
        return false;
    char *bytes = guarded_take(&run->out, room);
    run_call(run, CALL_PULL);
    enum service_flow flow = ops_of(run)->pull(run->state, bytes, room, &got);
    if (!run_called(run))
        return false;
    if (got > room || !guarded_is_intact(&run->out)) {
        test_call_complain(FINDING_CALL,
                           "pull says that it gave %zu bytes, and there was room for %zu", got,
                           room);
        run_break(run);
        return false;
    }
    run_append(run, bytes, got);
    run_take_flow(run, flow);
    uint64_t most = BODY_SLACK + BODY_GROWTH * (uint64_t)run->message->body.length;
    if (run->mode != RUN_OVER && run->result.length > most) {
        test_call_complain(FINDING_STUCK,
                           "the service has given %zu bytes for %zu, and does not come "
                           "to an end",
                           run->result.length, run->message->body.length);
        run_break(run);
        return false;
    }
    return got > 0 || flow != SERVICE_FLOW;
}

/* ---- waiting ------------------------------------------------------------------------------ */

static void run_tell_ready(struct test_run *run) {
    const struct service_wait before = run->exchange.wait;
    if (ops_of(run)->ready == NULL) {
        test_call_complain(FINDING_CALL, "the service waits for a descriptor, and has no function "
                                         "ready");
        run_break(run);
        return;
    }
    run_call(run, CALL_READY);
    ops_of(run)->ready(run->state);
    run_called(run);
    const struct service_wait *after = &run->exchange.wait;
    run->overdue = after->fd == before.fd && after->deadline == before.deadline &&
                   service_now() >= before.deadline;
}

/* Waits for what the service waits for, or looks whether it is there. False: it was not. */
static bool run_wait(struct test_run *run, bool only_look) {
    const struct service_wait *wait = &run->exchange.wait;
    int64_t left = wait->deadline - service_now(), most = (int64_t)run->options->deadline;
    struct pollfd poll_fds[] = {{.fd = wait->fd, .events = wait->events},
                                {.fd = run->exchange.also.fd, .events = run->exchange.also.events}};
    if (wait->fd < 0 || run->overdue)
        return false;
    int count = poll(poll_fds, 2, only_look || left < 0 ? 0 : (int)(left < most ? left : most));
    for (unsigned i = 0; count > 0 && i < 2; i++) {
        if ((poll_fds[i].revents & POLLNVAL) == 0)
            continue;
        test_call_complain(FINDING_CALL, "the service waits for descriptor %d, which is not open",
                           poll_fds[i].fd);
        run_break(run);
        return false;
    }
    if (count <= 0 && wait->deadline > service_now())
        return false;
    run_tell_ready(run);
    return true;
}

static void run_stuck(struct test_run *run) {
    run_check_also(run);
    const char *what = run->overdue                 ? "it goes on waiting past its own deadline"
                       : run->exchange.wait.fd >= 0 ? "what it waits for does not come"
                       : run->finished
                           ? "it has the whole body, gives nothing and waits for nothing"
                           : "it takes no input, gives no output and waits for nothing";
    test_call_complain(FINDING_STUCK,
                       "the service does not go on: %s (%" PRIu64 " bytes in, %zu bytes out)", what,
                       run->taken, run->result.length);
    run_break(run);
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool run_ask_verdict(struct test_run *run) {
    run_call(run, CALL_VERDICT);
    enum service_verdict verdict = ops_of(run)->verdict(run->state);
    if (!run_called(run))
        return false;
    if (verdict == SERVICE_HOLD)
        return false;
    run_take_verdict(run, verdict);
    return true;
}

static void run_idle(struct test_run *run, bool pushed) {
    if (!run->plan->idle || !pushed || run->mode != RUN_ADAPTED || run->finished ||
        ops_of(run)->idle == NULL || run->piece > 0)
        return;
    run_call(run, CALL_IDLE);
    ops_of(run)->idle(run->state);
    if (run_called(run))
        run_pull(run);
}

/* Has the plan an end of its own that is reached now? */
static bool run_is_cut_short(struct test_run *run) {
    bool left = run->result.length >= run->plan->leave;
    bool stopped = run->plan->stop != TEST_NEVER && !run->finished && run->taken >= input_end(run);
    if (left || stopped)
        run->result.cut_short = true;
    return left || stopped;
}

/* Input, then output; true when anything moved. */
static bool run_move(struct test_run *run) {
    if (run->plan->wait_first && run->exchange.wait.fd >= 0)
        run_wait(run, false);
    else
        run_wait(run, true);
    if (run->mode == RUN_OVER)
        return true;
    bool pushed = run_push(run), finished = false;
    if (run->mode == RUN_OVER)
        return true;
    if (!pushed || (run->plan->late && run->piece == 0))
        finished = run_finish(run);
    bool moved = pushed || finished;
    if (run->mode == RUN_HELD)
        return run_ask_verdict(run) || moved;
    if (!run->plan->late || !pushed)
        moved |= run_pull(run);
    run_idle(run, pushed);
    return moved;
}

bool test_run_step(struct test_run *run) {
    CHECK_OBJ(run, TEST_RUN_MAGIC);
    if (run->mode == RUN_OVER)
        return false;
    test_call_run(run->index, run->plan_text);
    bool moved = run_move(run);
    if (run->mode == RUN_OVER)
        return false;
    if (run_is_cut_short(run)) {
        run->mode = RUN_OVER;
        return false;
    }
    if (!moved && !run_wait(run, false) && run->mode != RUN_OVER)
        run_stuck(run);
    if (run->mode != RUN_OVER &&
        clocks_milliseconds(CLOCK_MONOTONIC) - run->begun > 4 * run->options->deadline) {
        test_call_complain(FINDING_TIME,
                           "the service has not come to its end after %" PRIu64 " seconds",
                           4 * run->options->deadline / 1000);
        run_break(run);
    }
    return run->mode != RUN_OVER;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static void run_fill_exchange(struct test_run *run) {
    const struct tester_options *options = run->options;
    struct slice client = slice_from(options->client), user = slice_from(options->user);
    INIT_OBJ(&run->exchange, SERVICE_EXCHANGE_MAGIC);
    run->exchange.point = run_is_request(run) ? SERVICE_REQUEST : SERVICE_RESPONSE;
    run->exchange.request = &run->request;
    run->exchange.head = run_is_request(run) ? &run->request : &run->response;
    run->exchange.has_body = run->message->has_body;
    run->exchange.client_ip = client;
    run->exchange.client_user = user;
    run->exchange.arguments = slice_from(options->arguments);
    run->exchange.transaction_id = SLICE("0123456789abcdef");
    run->exchange.arena = &run->arena;
    run->exchange.host = &run->instance->host;
    run->exchange.body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(&run->exchange);
    run->exchange_kept = run->exchange;
}

/* The bytes of the heads live in the arena, as they do in a host. */
static void run_parse_heads(struct test_run *run) {
    struct slice request = arena_slice(&run->arena, run->message->request);
    struct slice response = arena_slice(&run->arena, run->message->response);
    ssize_t used = http_head_parse_request(&run->request, request.base, request.length, 0);
    ASSERT(used > 0);
    http_head_assign(&run->request_kept, &run->request);
    if (response.length > 0)
        ASSERT(http_head_parse_response(&run->response, response.base, response.length, 0) > 0);
}

static void run_preview(struct test_run *run) {
    struct slice body = run->message->body;
    size_t most = input_end(run);
    size_t length = run->plan->preview < 0 ? 0 : (size_t)run->plan->preview;
    length = length < most ? length : most;
    bool complete = !run->message->has_body || (run->plan->end && length == body.length);
    char *bytes = guarded_take(&run->in, length);
    memcpy(bytes, body.base, length);
    run_call(run, CALL_PREVIEW);
    enum service_verdict verdict =
        ops_of(run)->preview(run->state, slice_make(bytes, length), complete);
    bool good = run_called(run);
    guarded_spoil(&run->in);
    if (good)
        run_take_verdict(run, verdict);
}

void test_run_begin(struct test_run *run, struct test_instance *instance,
                    const struct test_message *message, int index, const struct test_plan *plan,
                    const struct tester_options *options) {
    INIT_OBJ(run, TEST_RUN_MAGIC);
    run->instance = instance;
    run->message = message;
    run->index = index;
    run->plan = plan;
    run->options = options;
    run->told = SERVICE_LENGTH_UNKNOWN;
    run->mode = RUN_HELD;
    run->begun = clocks_milliseconds(CLOCK_MONOTONIC);
    arena_init(&run->arena);
    test_plan_write(plan, run->plan_text);
    test_call_run(index, run->plan_text);
    run_parse_heads(run);
    run_fill_exchange(run);
    run->head_before = head_as_text(run, run->exchange.head, run_is_request(run));
    run_call(run, CALL_BEGIN);
    run->state = ops_of(run)->begin(instance->service, &run->exchange);
    bool good = run_called(run);
    run->mode = RUN_OVER; /* until the verdict says otherwise */
    if (!good)
        return;
    if (run->state == NULL)
        run_skipped(run);
    else
        run_preview(run);
}

/* The head that was sent is still in use when the service ends: values that lie in memory of the
 * service, or in a piece of the body, would have changed meanwhile. */
static void run_check_head(struct test_run *run) {
    if (run->head_text.length == 0)
        return;
    bool answered = run->result.outcome == OUTCOME_ANSWERED;
    const struct http_head *head = answered ? run->exchange.answer : run->exchange.head;
    struct slice now = head_as_text(run, head, !answered && run_is_request(run));
    if (!slice_equal(now, run->head_text))
        test_call_complain(FINDING_HEAD,
                           "a value in the head changed after the verdict: values have to be "
                           "literals or in memory of exchange->arena");
}

static void run_end_service(struct test_run *run) {
    if (run->state == NULL)
        return;
    run_call(run, CALL_END);
    ops_of(run)->end(run->state);
    test_call_end();
}

void test_run_end(struct test_run *run, struct test_result *result) {
    CHECK_OBJ(run, TEST_RUN_MAGIC);
    test_call_run(run->index, run->plan_text);
    run->result.failed = run->exchange.failed;
    if (run->exchange.failed)
        snprintf(run->result.failed_because, sizeof run->result.failed_because, "%s",
                 run->exchange.failed_because != NULL ? run->exchange.failed_because : "failed");
    run_end_service(run);
    if (run->exchange.magic == SERVICE_EXCHANGE_MAGIC)
        run_check_head(run);
    run->result.head = slice_make(slice_dup(run->head_text), run->head_text.length);
    *result = run->result;
    arena_release(&run->arena);
    guarded_release(&run->in);
    guarded_release(&run->out);
    run->magic = 0;
}

void test_run_whole(struct test_instance *instance, const struct test_message *message, int index,
                    const struct test_plan *plan, const struct tester_options *options,
                    struct test_result *result) {
    struct test_run run;
    test_run_begin(&run, instance, message, index, plan, options);
    while (test_run_step(&run))
        ;
    test_run_end(&run, result);
}

void test_result_release(struct test_result *result) {
    free((char *)result->head.base);
    free(result->body);
    *result = (struct test_result){0};
}
