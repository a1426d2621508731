#include "service-test/run.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "http/head_parser.h"
#include "service-test/call.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 32, CANARY_BYTE = 0x5c, SPOILT_BYTE = 0xdb };

static void guarded_release(struct guarded *guarded) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (guarded->memory != NULL)
        munmap(guarded->memory, guarded->size + page);
    *guarded = (struct guarded){0};
}

static void guarded_make(struct guarded *guarded, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    guarded->size = (size + page - 1) / page * page;
    guarded->memory = mmap(NULL, guarded->size + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(guarded->memory != MAP_FAILED);
    ASSERT(mprotect(guarded->memory + guarded->size, page, PROT_NONE) == 0);
}

/* Valid until the next call. */
static char *guarded_take(struct guarded *guarded, size_t length) {
    if (guarded->memory == NULL || guarded->size < length + CANARY) {
        guarded_release(guarded);
        guarded_make(guarded, 2 * length + CANARY);
    }
    guarded->taken = length;
    char *bytes = guarded->memory + guarded->size - length;
    memset(bytes - CANARY, CANARY_BYTE, CANARY);
    return bytes;
}

static bool guarded_is_intact(const struct guarded *guarded) {
    const char *canary = guarded->memory + guarded->size - guarded->taken - CANARY;
    for (int i = 0; i < CANARY; i++)
        if (canary[i] != CANARY_BYTE)
            return false;
    return true;
}

static void guarded_spoil(struct guarded *guarded) {
    memset(guarded->memory + guarded->size - guarded->taken, SPOILT_BYTE, guarded->taken);
}

/* A service that gives more than this for a byte that it got goes on for ever. */
enum { BODY_SLACK = 64 << 20, BODY_GROWTH = 1024 };

static struct test_run *run_of(struct driver *driver) {
    return CONTAINER_OF(driver, struct test_run, driver);
}

static bool run_is_over(const struct test_run *run) {
    return run->driver.mode == DRIVER_OVER;
}

/* The run can't go on. */
static void run_break(struct test_run *run) {
    run->driver.mode = DRIVER_OVER;
    run->result.outcome = OUTCOME_BROKEN;
}

static void run_close(struct test_run *run, enum test_outcome outcome) {
    run->driver.mode = DRIVER_OVER;
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

static void run_before(struct driver *driver, enum driver_call call) {
    const struct test_run *run = run_of(driver);
    test_call_at(driver->taken, run->result.length);
    test_call_begin(CALL_BEGIN + call);
}

static void run_check_sent(const struct test_run *run) {
    const struct service_exchange *exchange = &run->driver.exchange;
    if (!heads_are_same(exchange->head, &run->head_kept))
        test_call_complain(FINDING_HEAD, "the service changes the head after its verdict ADAPT, "
                                         "when the head may have been sent");
    if (exchange->body_length != run->told)
        test_call_complain(FINDING_LENGTH,
                           "the service changes exchange->body_length after its verdict ADAPT, "
                           "when the head may have been sent");
}

/* Behind each call. The run is over when the service broke what the host works with. */
static void run_after(struct driver *driver, enum driver_call call) {
    struct test_run *run = run_of(driver);
    test_call_end();
    if (call == DRIVER_END)
        return;
    const char *member = changed_member(&driver->exchange, &run->exchange_kept);
    if (member != NULL) {
        test_call_complain(FINDING_CALL, "the service changes exchange->%s, which is the host's",
                           member);
        driver->exchange = run->exchange_kept;
        run_break(run);
        return;
    }
    if (driver->exchange.point == SERVICE_RESPONSE &&
        !heads_are_same(&run->request, &run->request_kept)) {
        test_call_complain(FINDING_HEAD,
                           "the service changes the head of the request of a response");
        http_head_assign(&run->request, &run->request_kept);
    }
    if (!run->skipped && (driver->mode == DRIVER_ADAPTED || driver->mode == DRIVER_ANSWERED))
        run_check_sent(run);
}

static const struct driver_hooks run_hooks = {.before = run_before, .after = run_after};

/* The driver can't go on, and says why, or run_after has said it. */
static void run_fail(struct test_run *run) {
    const struct driver *driver = &run->driver;
    const char *why = driver_failure_text(driver->failure);
    if (driver->failure == DRIVER_ABORTED)
        run_close(run, OUTCOME_ABORTED);
    if (why == NULL || driver->failure == DRIVER_ABORTED)
        return;
    int length = (int)strcspn(why, ";"); /* without what its user shall do */
    if (driver->odd > 0)
        test_call_complain(FINDING_CALL, "%.*s: %" PRIu64, length, why, driver->odd);
    else
        test_call_complain(FINDING_CALL, "%.*s", length, why);
    run_break(run);
}

/* ---- verdicts ----------------------------------------------------------------------------- */

/* The head stays the original. What the service did to it is not sent, but it is a sign of a
 * mistake: the head may be in use. */
static void run_check_skip(struct test_run *run) {
    struct slice now = head_as_text(run, run->driver.exchange.head, run_is_request(run));
    if (!slice_equal(now, run->head_before))
        test_call_complain(FINDING_HEAD, "the service says SKIP, and has changed the head");
}

static void run_answered(struct test_run *run) {
    const struct service_exchange *exchange = &run->driver.exchange;
    run->head_text = head_as_text(run, exchange->answer, false);
    run->result.outcome = OUTCOME_ANSWERED;
    run_head_is_sound(exchange->answer, run->head_text, false);
    if (run->driver.mode == DRIVER_COMPLETE)
        run->driver.mode = DRIVER_OVER;
    run->driver.finished = true; /* the body of the request is dropped */
}

static void run_give_rest(struct test_run *run, uint64_t from);

static void run_kept_body(struct test_run *run) {
    struct slice length = http_head_value(run->driver.exchange.head, HTTP_CONTENT_LENGTH);
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
    if (run->driver.exchange.keeps_body && run->driver.taken > 0 && !run->plan->copy)
        test_call_complain(FINDING_CALL,
                           "the service sets keeps_body after it has taken %" PRIu64
                           " bytes of the body: hosts that kept no copy have lost them",
                           run->driver.taken);
}

static void run_adapted(struct test_run *run) {
    struct service_exchange *exchange = &run->driver.exchange;
    run->told = exchange->body_length;
    if (exchange->answer != NULL) {
        run_answered(run);
    } else {
        run->head_text = head_as_text(run, exchange->head, run_is_request(run));
        run_head_is_sound(exchange->head, run->head_text, run_is_request(run));
        run->result.outcome = OUTCOME_ADAPTED;
        run_check_keeps(run);
        if (run->driver.mode == DRIVER_PASSED)
            run_kept_body(run);
    }
    http_head_assign(&run->head_kept, exchange->head);
}

/* After HOLD: the bytes that the service holds come back, unless the host has kept a copy. */
static void run_skipped(struct test_run *run) {
    run_check_skip(run);
    run->result.outcome = OUTCOME_UNCHANGED;
    if (run->driver.mode == DRIVER_ADAPTED && !run->plan->copy && run->message->has_body) {
        run->skipped = true;
        return;
    }
    run->driver.mode = DRIVER_OVER;
    run_give_rest(run, 0);
}

/* Its first descriptor says that it waits at all. */
static void run_check_also(const struct test_run *run) {
    if (run->driver.exchange.wait.fd < 0 && run->driver.exchange.also.fd >= 0)
        test_call_complain(FINDING_CALL,
                           "the service names a second descriptor to wait for (exchange->also) and "
                           "no first one: no host looks at it");
}

static void run_follow_verdict(struct test_run *run) {
    const struct driver *driver = &run->driver;
    if (driver->mode == DRIVER_OVER)
        run_fail(run);
    else if (driver->verdict == SERVICE_SKIP)
        run_skipped(run);
    else if (driver->verdict == SERVICE_ADAPT)
        run_adapted(run);
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
    struct driver *driver = &run->driver;
    size_t rest = input_end(run) - (size_t)driver->taken;
    if (rest == 0 || driver->finished)
        return false;
    if (run->piece == 0)
        run->piece = test_plan_piece(run->plan, driver->taken, rest);
    char *bytes = guarded_take(&run->in, run->piece);
    memcpy(bytes, run->message->body.base + driver->taken, run->piece);
    driver->in = slice_make(bytes, run->piece);
    bool took = driver_push(driver);
    guarded_spoil(&run->in);
    if (driver->failure != DRIVER_NO_FAILURE) {
        run_fail(run);
        return false;
    }
    run->piece = driver->in.length;
    driver->in = SLICE("");
    uint64_t given = run->result.length;
    if (driver->taken > given && driver->taken - given > run->result.held_most)
        run->result.held_most = driver->taken - given;
    return took && !run_is_over(run);
}

/* False: the end was told before, or there is more. */
static bool run_finish(struct test_run *run) {
    struct driver *driver = &run->driver;
    driver->in_ended = driver->taken >= input_end(run) && run->plan->stop == TEST_NEVER;
    return driver_finish(driver) && !run_is_over(run);
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

static void run_take_flow(struct test_run *run) {
    struct driver *driver = &run->driver;
    if (driver->mode == DRIVER_OVER) {
        run_fail(run);
    } else if (driver->mode == DRIVER_PASSED || driver->mode == DRIVER_COMPLETE) {
        if (driver->mode == DRIVER_PASSED)
            run_give_rest(run, driver->taken);
        driver->mode = DRIVER_OVER;
        run_check_length(run);
    }
}

/* False: nothing moved. */
static bool run_pull(struct test_run *run) {
    struct driver *driver = &run->driver;
    size_t room = run->plan->out, got;
    if (driver->mode != DRIVER_ADAPTED && driver->mode != DRIVER_ANSWERED)
        return false;
    char *bytes = guarded_take(&run->out, room);
    enum driver_status status = driver_pull(driver, bytes, room, &got);
    if (!guarded_is_intact(&run->out)) {
        driver->odd = got;
        driver_fail(driver, DRIVER_OVERFULL);
    }
    run_append(run, bytes, got);
    run_take_flow(run);
    uint64_t most = BODY_SLACK + BODY_GROWTH * (uint64_t)run->message->body.length;
    if (!run_is_over(run) && run->result.length > most) {
        test_call_complain(FINDING_STUCK,
                           "the service has given %zu bytes for %zu, and does not come "
                           "to an end",
                           run->result.length, run->message->body.length);
        run_break(run);
        return false;
    }
    return status != DRIVER_RESTS && run->result.outcome != OUTCOME_BROKEN;
}

/* ---- waiting ------------------------------------------------------------------------------ */

static bool run_is_open(struct test_run *run, int fd) {
    if (fd < 0 || fcntl(fd, F_GETFD) >= 0)
        return true;
    test_call_complain(FINDING_CALL, "the service waits for descriptor %d, which is not open", fd);
    run_break(run);
    return false;
}

static bool run_may_wait(struct test_run *run) {
    const struct driver *driver = &run->driver;
    if (driver->exchange.wait.fd >= 0 && driver->ops->ready == NULL) {
        test_call_complain(FINDING_CALL, "the service waits for a descriptor, and has no function "
                                         "ready");
        run_break(run);
    }
    return !run_is_over(run) && driver_may_wait(driver) &&
           run_is_open(run, driver->exchange.wait.fd) && run_is_open(run, driver->exchange.also.fd);
}

/* Waits for what the service waits for, or looks whether it is there. False: it was not. */
static bool run_wait(struct test_run *run, bool only_look) {
    if (!run_may_wait(run) ||
        !driver_wait(&run->driver, only_look ? 0 : (int64_t)run->options->deadline))
        return false;
    driver_ready(&run->driver);
    return true;
}

static void run_stuck(struct test_run *run) {
    run_check_also(run);
    bool waits = run->driver.exchange.wait.fd >= 0;
    const char *what =
        waits && !driver_may_wait(&run->driver) ? "it goes on waiting past its own deadline"
        : waits                                 ? "what it waits for does not come"
        : run->driver.finished ? "it has the whole body, gives nothing and waits for nothing"
                               : "it takes no input, gives no output and waits for nothing";
    test_call_complain(FINDING_STUCK,
                       "the service does not go on: %s (%" PRIu64 " bytes in, %zu bytes out)", what,
                       run->driver.taken, run->result.length);
    run_break(run);
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool run_ask_verdict(struct test_run *run) {
    if (!driver_ask_verdict(&run->driver) || run->result.outcome == OUTCOME_BROKEN)
        return false;
    run_follow_verdict(run);
    return true;
}

static void run_idle(struct test_run *run, bool pushed) {
    struct driver *driver = &run->driver;
    if (!run->plan->idle || !pushed || driver->mode != DRIVER_ADAPTED || driver->finished ||
        driver->ops->idle == NULL || run->piece > 0)
        return;
    driver_idle(driver);
    run_pull(run);
}

/* Has the plan an end of its own that is reached now? */
static bool run_is_cut_short(struct test_run *run) {
    bool left = run->result.length >= run->plan->leave;
    bool stopped = run->plan->stop != TEST_NEVER && !run->driver.finished &&
                   run->driver.taken >= input_end(run);
    if (left || stopped)
        run->result.cut_short = true;
    return left || stopped;
}

/* Input, then output; true when anything moved. */
static bool run_move(struct test_run *run) {
    if (run->plan->wait_first && run->driver.exchange.wait.fd >= 0)
        run_wait(run, false);
    else
        run_wait(run, true);
    if (run_is_over(run))
        return true;
    bool pushed = run_push(run), finished = false;
    if (run_is_over(run))
        return true;
    if (!pushed || (run->plan->late && run->piece == 0))
        finished = run_finish(run);
    bool moved = pushed || finished;
    if (run->driver.mode == DRIVER_HELD)
        return run_ask_verdict(run) || moved;
    if (!run->plan->late || !pushed)
        moved |= run_pull(run);
    run_idle(run, pushed);
    return moved;
}

bool test_run_step(struct test_run *run) {
    CHECK_OBJ(run, TEST_RUN_MAGIC);
    if (run_is_over(run))
        return false;
    test_call_run(run->index, run->plan_text);
    bool moved = run_move(run);
    if (run_is_over(run))
        return false;
    if (run_is_cut_short(run)) {
        run->driver.mode = DRIVER_OVER;
        return false;
    }
    if (!moved && !run_wait(run, false) && !run_is_over(run))
        run_stuck(run);
    if (!run_is_over(run) &&
        clocks_milliseconds(CLOCK_MONOTONIC) - run->begun > 4 * run->options->deadline) {
        test_call_complain(FINDING_TIME,
                           "the service has not come to its end after %" PRIu64 " seconds",
                           4 * run->options->deadline / 1000);
        run_break(run);
    }
    return !run_is_over(run);
}

/* ---- begin and end ------------------------------------------------------------------------ */

static void run_fill_exchange(struct test_run *run) {
    const struct tester_options *options = run->options;
    struct slice client = slice_from(options->client), user = slice_from(options->user);
    run->driver.exchange.point = run_is_request(run) ? SERVICE_REQUEST : SERVICE_RESPONSE;
    run->driver.exchange.request = &run->request;
    run->driver.exchange.head = run_is_request(run) ? &run->request : &run->response;
    run->driver.exchange.has_body = run->message->has_body;
    run->driver.exchange.client_ip = client;
    run->driver.exchange.client_user = user;
    run->driver.exchange.arguments = slice_from(options->arguments);
    run->driver.exchange.transaction_id = SLICE("0123456789abcdef");
    run->exchange_kept = run->driver.exchange;
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
    driver_preview(&run->driver, slice_make(bytes, length), complete);
    guarded_spoil(&run->in);
    run_follow_verdict(run);
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
    run->begun = clocks_milliseconds(CLOCK_MONOTONIC);
    arena_init(&run->arena);
    driver_init(&run->driver, instance->ops, &run_hooks, &run->arena, &instance->host);
    test_plan_write(plan, run->plan_text);
    test_call_run(index, run->plan_text);
    run_parse_heads(run);
    run_fill_exchange(run);
    run->head_before = head_as_text(run, run->driver.exchange.head, run_is_request(run));
    driver_begin(&run->driver, instance->service);
    if (run->driver.state == NULL)
        run_follow_verdict(run);
    else if (!run_is_over(run))
        run_preview(run);
}

/* The head that was sent is still in use when the service ends: values that lie in memory of the
 * service, or in a piece of the body, would have changed meanwhile. */
static void run_check_head(struct test_run *run) {
    if (run->head_text.length == 0)
        return;
    bool answered = run->result.outcome == OUTCOME_ANSWERED;
    const struct http_head *head =
        answered ? run->driver.exchange.answer : run->driver.exchange.head;
    struct slice now = head_as_text(run, head, !answered && run_is_request(run));
    if (!slice_equal(now, run->head_text))
        test_call_complain(FINDING_HEAD,
                           "a value in the head changed after the verdict: values have to be "
                           "literals or in memory of exchange->arena");
}

void test_run_end(struct test_run *run, struct test_result *result) {
    CHECK_OBJ(run, TEST_RUN_MAGIC);
    test_call_run(run->index, run->plan_text);
    run->result.failed = run->driver.exchange.failed;
    if (run->driver.exchange.failed)
        snprintf(run->result.failed_because, sizeof run->result.failed_because, "%s",
                 run->driver.exchange.failed_because != NULL ? run->driver.exchange.failed_because
                                                             : "failed");
    driver_end(&run->driver);
    if (run->driver.exchange.magic == SERVICE_EXCHANGE_MAGIC)
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
