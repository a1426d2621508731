#include "suites.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "service/driver.h"

#include <poll.h>
#include <unistd.h>

enum { SCRIPT_ROOM = 64 };

/* A service that does what the test says, and makes letters capitals. */
struct script {
    enum service_verdict preview, verdict; /* the second one when it has all of the body */
    bool indifferent, keeps; /* `keeps`: it gives nothing before the end, or a pause */
    enum service_flow flow;  /* when it has nothing more inside, before the end */
    size_t takes, lies;      /* bytes of a call at most; added to what it says */
    char inside[SCRIPT_ROOM];
    size_t length;
    bool finished;
    char calls[100]; /* a letter each */
};

static struct script *the_script;

static void *script_begin(void *service, struct service_exchange *exchange) {
    struct script *script = service;
    (void)exchange;
    return script->indifferent ? NULL : script;
}

static enum service_verdict script_preview(void *state, struct slice body, bool complete) {
    (void)body, (void)complete;
    return ((struct script *)state)->preview;
}

static size_t script_push(void *state, struct slice body) {
    struct script *script = state;
    size_t room = SCRIPT_ROOM - script->length;
    size_t count = body.length < script->takes ? body.length : script->takes;
    count = count < room ? count : room;
    for (size_t i = 0; i < count; i++)
        script->inside[script->length++] = (char)(body.base[i] & ~0x20);
    return count + script->lies;
}

static void script_finish(void *state) {
    ((struct script *)state)->finished = true;
}

static enum service_verdict script_verdict(void *state) {
    const struct script *script = state;
    return script->finished ? script->verdict : SERVICE_HOLD;
}

static enum service_flow script_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct script *script = state;
    if (script->keeps && !script->finished)
        return SERVICE_FLOW;
    size_t count = script->length < capacity ? script->length : capacity;
    memcpy(out, script->inside, count);
    script->length -= count;
    memmove(script->inside, script->inside + count, script->length);
    *got = count + script->lies;
    if (script->length > 0)
        return SERVICE_FLOW;
    return script->finished ? SERVICE_DONE : script->flow;
}

static void script_idle(void *state) {
    ((struct script *)state)->keeps = false;
}

static void script_nothing(void *state) {
    (void)state;
}

static const struct service_ops script_ops = {
    .begin = script_begin,
    .preview = script_preview,
    .push = script_push,
    .finish = script_finish,
    .verdict = script_verdict,
    .pull = script_pull,
    .idle = script_idle,
    .ready = script_nothing,
    .end = script_nothing,
};

static void note_call(struct driver *driver, enum driver_call call) {
    char letter[] = {"bwPfvgire"[call], '\0'};
    (void)driver;
    ck_assert_uint_lt(strlen(the_script->calls), sizeof the_script->calls - 1);
    strcat(the_script->calls, letter);
}

static void nothing_after(struct driver *driver, enum driver_call call) {
    (void)driver, (void)call;
}

static void fill_nothing(struct driver *driver) {
    (void)driver;
}

static const struct driver_hooks noting = {note_call, nothing_after, fill_nothing};

/* A message at a service. */
struct driver_lab {
    struct script script;
    struct service_ops ops;
    struct service_host host;
    struct arena arena;
    struct http_head request, response;
    struct driver driver;
    char out[SCRIPT_ROOM];
    size_t got;
};

static struct driver_lab *driver_lab_open(enum service_verdict preview) {
    static const char request[] = "POST http://h/ HTTP/1.1\r\nContent-Length: 9\r\n\r\n";
    static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    struct driver_lab *lab = xcalloc(1, sizeof *lab);
    the_script = &lab->script;
    lab->script = (struct script){.preview = preview, .takes = SCRIPT_ROOM};
    lab->ops = script_ops;
    arena_init(&lab->arena);
    ck_assert_int_gt(http_head_parse_request(&lab->request, request, strlen(request), 0), 0);
    ck_assert_int_gt(http_head_parse_response(&lab->response, response, strlen(response), 0), 0);
    driver_init(&lab->driver, &lab->ops, &noting, &lab->arena, &lab->host);
    lab->driver.exchange.point = SERVICE_RESPONSE;
    lab->driver.exchange.request = &lab->request;
    lab->driver.exchange.head = &lab->response;
    lab->driver.exchange.has_body = true;
    return lab;
}

static void driver_lab_begin(struct driver_lab *lab) {
    driver_begin(&lab->driver, &lab->script);
    if (lab->driver.mode == DRIVER_PREVIEW)
        driver_preview(&lab->driver, SLICE(""), false);
}

static struct driver_lab *driver_lab_run(enum service_verdict preview) {
    struct driver_lab *lab = driver_lab_open(preview);
    driver_lab_begin(lab);
    return lab;
}

static void driver_lab_close(struct driver_lab *lab) {
    driver_end(&lab->driver);
    ck_assert_ptr_null(lab->driver.state);
    arena_release(&lab->arena);
    free(lab);
}

static void gets(struct driver_lab *lab, const char *bytes) {
    lab->driver.in = slice_from(bytes);
}

static void gets_last(struct driver_lab *lab, const char *bytes) {
    gets(lab, bytes);
    lab->driver.in_ended = true;
}

static void says_with(struct driver_lab *lab, size_t room, enum driver_status status,
                      const char *bytes) {
    ck_assert_int_eq(driver_run(&lab->driver, lab->out, room, &lab->got), status);
    ck_assert_uint_eq(lab->got, strlen(bytes));
    ck_assert_int_eq(memcmp(lab->out, bytes, lab->got), 0);
}

static void says(struct driver_lab *lab, enum driver_status status, const char *bytes) {
    says_with(lab, sizeof lab->out, status, bytes);
}

static void fails(struct driver_lab *lab, enum driver_failure failure, const char *words) {
    ck_assert_int_eq(lab->driver.mode, DRIVER_OVER);
    ck_assert_int_eq(lab->driver.failure, failure);
    ck_assert_ptr_nonnull(strstr(driver_failure_text(failure), words));
    says(lab, DRIVER_FAILED, "");
    driver_lab_close(lab);
}

/* b begin, w preview, P push, f finish, v verdict, g pull, i idle, r ready, e end */
static void called(const struct driver_lab *lab, const char *letters) {
    ck_assert_str_eq(lab->script.calls, letters);
}

START_TEST(a_body_goes_through_with_no_call_in_vain) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    ck_assert_ptr_null(http_head_find(&lab->response, HTTP_CONTENT_LENGTH));
    gets(lab, "one");
    says(lab, DRIVER_GAVE, "ONE");
    gets_last(lab, "two");
    says(lab, DRIVER_GAVE, "TWO");
    says(lab, DRIVER_ENDED, "");
    ck_assert_uint_eq(lab->driver.taken, 6);
    driver_lab_close(lab);
}
END_TEST

START_TEST(what_was_left_comes_before_more_goes_in) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    gets(lab, "letters");
    says_with(lab, 4, DRIVER_GAVE, "LETT");
    gets(lab, "more");
    says_with(lab, 4, DRIVER_GAVE, "ERS");
    says_with(lab, 4, DRIVER_GAVE, "MORE");
    says_with(lab, 4, DRIVER_RESTS, "");
    called(lab, "bwPggPgg");
    driver_lab_close(lab);
}
END_TEST

START_TEST(without_room_bytes_go_in_and_none_come_out) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    gets(lab, "letters");
    says_with(lab, 0, DRIVER_RESTS, "");
    ck_assert_uint_eq(lab->driver.in.length, 0);
    says(lab, DRIVER_GAVE, "LETTERS");
    driver_lab_close(lab);
}
END_TEST

/* One that takes little at a time, and gives nothing before the end. */
START_TEST(others_have_their_turn) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.takes = 1;
    lab->script.keeps = true;
    gets_last(lab, "tenletters");
    says(lab, DRIVER_TURN, "");
    ck_assert_uint_eq(lab->driver.taken, 8);
    says(lab, DRIVER_GAVE, "TENLETTERS");
    driver_lab_close(lab);
}
END_TEST

START_TEST(a_pause_brings_out_what_is_kept) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.keeps = true;
    gets(lab, "letters");
    says(lab, DRIVER_RESTS, "");
    driver_idle(&lab->driver);
    says(lab, DRIVER_GAVE, "LETTERS");
    driver_lab_close(lab);
}
END_TEST

START_TEST(what_is_of_no_interest_passes) {
    struct driver_lab *lab = driver_lab_open(SERVICE_ADAPT);
    lab->script.indifferent = true;
    driver_lab_begin(lab);
    ck_assert_int_eq(lab->driver.verdict, SERVICE_SKIP);
    gets_last(lab, "letters");
    says_with(lab, 4, DRIVER_GAVE, "lett");
    says_with(lab, 4, DRIVER_GAVE, "ers");
    says(lab, DRIVER_ENDED, "");
    called(lab, "b");
    driver_lab_close(lab);
}
END_TEST

START_TEST(the_rest_passes_without_the_service) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.flow = SERVICE_PASS;
    lab->script.takes = 3;
    gets(lab, "letters");
    says(lab, DRIVER_GAVE, "LET");
    says(lab, DRIVER_GAVE, "ters");
    says(lab, DRIVER_RESTS, "");
    gets_last(lab, "");
    says(lab, DRIVER_ENDED, "");
    called(lab, "bwPg");
    driver_lab_close(lab);
}
END_TEST

/* It asks for the verdict only when something went in, and the body comes from the service. */
START_TEST(a_verdict_that_is_held_back) {
    for (int verdict = SERVICE_SKIP; verdict <= SERVICE_ADAPT; verdict++) {
        struct driver_lab *lab = driver_lab_run(SERVICE_HOLD);
        lab->script.verdict = (enum service_verdict)verdict;
        gets(lab, "one");
        says(lab, DRIVER_RESTS, "");
        gets_last(lab, "two");
        says(lab, DRIVER_DECIDED, "");
        ck_assert_int_eq(lab->driver.verdict, verdict);
        ck_assert_int_eq(lab->driver.mode, DRIVER_ADAPTED);
        ck_assert_int_eq(http_head_has(&lab->response, HTTP_CONTENT_LENGTH),
                         verdict == SERVICE_SKIP);
        called(lab, "bwPvPfv");
        says(lab, DRIVER_GAVE, "ONETWO");
        says(lab, DRIVER_ENDED, "");
        driver_lab_close(lab);
    }
}
END_TEST

START_TEST(nothing_comes_back_from_who_took_nothing) {
    struct driver_lab *lab = driver_lab_run(SERVICE_HOLD);
    gets_last(lab, "");
    says(lab, DRIVER_DECIDED, "");
    ck_assert_int_eq(lab->driver.mode, DRIVER_PASSED);
    says(lab, DRIVER_ENDED, "");
    driver_lab_close(lab);
}
END_TEST

START_TEST(heads_say_the_length_of_the_body) {
    struct driver_lab *lab = driver_lab_open(SERVICE_ADAPT);
    lab->driver.exchange.body_length = 12;
    driver_lab_begin(lab);
    ck_assert(slice_equal(http_head_value(&lab->response, HTTP_CONTENT_LENGTH), SLICE("12")));
    driver_lab_close(lab);
    lab = driver_lab_open(SERVICE_ADAPT);
    lab->driver.exchange.keeps_body = true;
    driver_lab_begin(lab);
    ck_assert_int_eq(lab->driver.mode, DRIVER_PASSED);
    ck_assert(slice_equal(http_head_value(&lab->response, HTTP_CONTENT_LENGTH), SLICE("9")));
    driver_lab_close(lab);
}
END_TEST

static struct driver_lab *driver_lab_answer(enum service_point point, uint64_t length) {
    static const struct http_head answer = {.status = 200};
    struct driver_lab *lab = driver_lab_open(SERVICE_ADAPT);
    lab->driver.exchange.point = point;
    lab->driver.exchange.head = &lab->request;
    lab->driver.exchange.answer = &answer;
    lab->driver.exchange.body_length = length;
    driver_lab_begin(lab);
    return lab;
}

START_TEST(requests_are_answered) {
    struct driver_lab *lab = driver_lab_answer(SERVICE_REQUEST, 0);
    ck_assert_int_eq(lab->driver.mode, DRIVER_COMPLETE);
    driver_lab_close(lab);
    lab = driver_lab_answer(SERVICE_REQUEST, 6);
    ck_assert_int_eq(lab->driver.mode, DRIVER_ANSWERED);
    memcpy(lab->script.inside, "ANSWER", lab->script.length = 6);
    lab->script.finished = true;
    says(lab, DRIVER_GAVE, "ANSWER");
    says(lab, DRIVER_ENDED, "");
    driver_lab_close(lab);
}
END_TEST

START_TEST(what_no_service_may_do) {
    fails(driver_lab_run((enum service_verdict)7), DRIVER_UNKNOWN, "unknown verdict");
    fails(driver_lab_answer(SERVICE_RESPONSE, 6), DRIVER_RESPONSE, "answered a response");
    struct driver_lab *lab = driver_lab_answer(SERVICE_REQUEST, 6);
    lab->script.flow = SERVICE_PASS;
    says(lab, DRIVER_FAILED, "");
    fails(lab, DRIVER_PASSES, "passed on the body");
    lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.lies = 1;
    gets(lab, "letters");
    says(lab, DRIVER_FAILED, "");
    ck_assert_uint_eq(lab->driver.odd, 8);
    fails(lab, DRIVER_GREEDY, "took more");
    lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.lies = SCRIPT_ROOM + 1;
    says(lab, DRIVER_FAILED, "");
    ck_assert_uint_eq(lab->driver.odd, SCRIPT_ROOM + 1);
    fails(lab, DRIVER_OVERFULL, "more than there was room for");
    lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.flow = (enum service_flow)9;
    says(lab, DRIVER_FAILED, "");
    ck_assert_uint_eq(lab->driver.odd, 9);
    fails(lab, DRIVER_OVERFULL, "an unknown answer");
    lab = driver_lab_run(SERVICE_ADAPT);
    lab->script.flow = SERVICE_ABORT;
    says(lab, DRIVER_FAILED, "");
    fails(lab, DRIVER_ABORTED, "can't complete");
}
END_TEST

START_TEST(functions_that_are_missing) {
    struct driver_lab *lab = driver_lab_open(SERVICE_ADAPT);
    lab->ops.finish = NULL;
    driver_lab_begin(lab);
    fails(lab, DRIVER_FUNCTIONS, "no functions");
    lab = driver_lab_open(SERVICE_HOLD);
    lab->ops.verdict = NULL;
    driver_lab_begin(lab);
    fails(lab, DRIVER_FUNCTIONS, "no functions");
    lab = driver_lab_open(SERVICE_ADAPT); /* none is needed for the head alone */
    lab->ops.push = NULL;
    lab->driver.exchange.keeps_body = true;
    driver_lab_begin(lab);
    ck_assert_int_eq(lab->driver.mode, DRIVER_PASSED);
    driver_lab_close(lab);
}
END_TEST

START_TEST(one_that_goes_on_with_nothing_hangs) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    ck_assert_int_eq(driver_rest(&lab->driver), DRIVER_WANTS);
    lab->script.takes = 0;
    gets(lab, "letters");
    says(lab, DRIVER_RESTS, "");
    ck_assert_int_eq(driver_rest(&lab->driver), DRIVER_HANGS);
    fails(lab, DRIVER_STUCK, "neither goes on nor waits");
}
END_TEST

static void waits_for(struct driver_lab *lab, int fd, int64_t milliseconds) {
    lab->driver.exchange.wait = (struct service_wait){fd, POLLIN, service_now() + milliseconds};
}

START_TEST(what_a_service_waits_for) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    waits_for(lab, ends[0], 600000);
    ck_assert_int_eq(driver_rest(&lab->driver), DRIVER_WAITS);
    ck_assert(!driver_wait(&lab->driver, 0));
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    ck_assert(driver_wait(&lab->driver, -1));
    driver_ready(&lab->driver);
    ck_assert_int_eq(driver_rest(&lab->driver), DRIVER_WAITS);
    called(lab, "bwr");
    close(ends[0]);
    close(ends[1]);
    driver_lab_close(lab);
}
END_TEST

START_TEST(nobody_waits_past_its_own_deadline) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    lab->driver.in_ended = true;
    waits_for(lab, ends[0], 10);
    ck_assert(driver_wait(&lab->driver, -1));
    driver_ready(&lab->driver);
    ck_assert_int_eq(driver_rest(&lab->driver), DRIVER_HANGS);
    close(ends[0]);
    close(ends[1]);
    driver_lab_close(lab);
}
END_TEST

static unsigned times_over;

static void count_over(struct driver_watch *watch) {
    ck_assert(!watch->watches);
    times_over++;
}

/* A loop watches: the second descriptor, the deadline, and one that the service has closed meanwhile. */
START_TEST(a_loop_watches_for_it) {
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    struct driver_watch watch = {0};
    struct loop loop;
    int first[2], second[2];
    ck_assert_int_eq(pipe(first), 0);
    ck_assert_int_eq(pipe(second), 0);
    ck_assert(loop_init(&loop));
    driver_watch_init(&watch, &lab->driver, &loop, count_over);
    waits_for(lab, first[0], 600000);
    lab->driver.exchange.also = (struct service_wait){.fd = second[0], .events = POLLIN};
    driver_watch_start(&watch);
    ck_assert_int_eq(write(second[1], "x", 1), 1);
    loop_run_once(&loop);
    ck_assert_uint_eq(times_over, 1);
    lab->driver.exchange.also.fd = -1;
    waits_for(lab, first[0], 20);
    close(first[0]);
    driver_watch_start(&watch);
    while (times_over == 1)
        loop_run_once(&loop);
    ck_assert_uint_eq(times_over, 2);
    driver_watch_release(&watch);
    loop_release(&loop);
    close(first[1]);
    close(second[0]);
    close(second[1]);
    driver_lab_close(lab);
}
END_TEST

static void end_it(struct driver *driver, enum driver_call call) {
    if (call == DRIVER_PULL || call == DRIVER_ASK_VERDICT)
        driver->mode = DRIVER_OVER;
}

static void fill_twice(struct driver *driver) {
    driver->in_ended = driver->taken > 0;
    if (driver->taken == 0)
        driver->in = SLICE("letters");
}

START_TEST(hooks_bring_bytes_and_end_messages) {
    static const struct driver_hooks ending = {note_call, end_it, fill_nothing};
    static const struct driver_hooks filling = {note_call, nothing_after, fill_twice};
    struct driver_lab *lab = driver_lab_run(SERVICE_ADAPT);
    lab->driver.hooks = &filling;
    says(lab, DRIVER_GAVE, "LETTERS");
    says(lab, DRIVER_ENDED, "");
    driver_lab_close(lab);
    lab = driver_lab_run(SERVICE_ADAPT);
    lab->driver.hooks = &ending;
    gets_last(lab, "letters");
    ck_assert_int_eq(driver_run(&lab->driver, lab->out, SCRIPT_ROOM, &lab->got), DRIVER_FAILED);
    driver_lab_close(lab);
    lab = driver_lab_run(SERVICE_HOLD);
    lab->driver.hooks = &ending;
    lab->script.verdict = SERVICE_ADAPT;
    gets_last(lab, "letters");
    says(lab, DRIVER_FAILED, "");
    driver_lab_close(lab);
}
END_TEST

Suite *driver_suite(void) {
    const TTest *const tests[] = {
        a_body_goes_through_with_no_call_in_vain,
        what_was_left_comes_before_more_goes_in,
        without_room_bytes_go_in_and_none_come_out,
        others_have_their_turn,
        a_pause_brings_out_what_is_kept,
        what_is_of_no_interest_passes,
        the_rest_passes_without_the_service,
        a_verdict_that_is_held_back,
        nothing_comes_back_from_who_took_nothing,
        heads_say_the_length_of_the_body,
        requests_are_answered,
        what_no_service_may_do,
        functions_that_are_missing,
        one_that_goes_on_with_nothing_hangs,
        what_a_service_waits_for,
        nobody_waits_past_its_own_deadline,
        a_loop_watches_for_it,
        hooks_bring_bytes_and_end_messages,
    };
    return suite_of("driver", tests, COUNT_OF(tests));
}
