/* Chains of services, by an adapter that does what the test says: no protocol and no server. */
#include "suites.h"

#include "adapt/chain.h"
#include "event/source.h"
#include "http/head_parser.h"

#include <string.h>

enum { SERVICES = 3, TEXT = 256 };

struct pretended_call {
    struct adapter_call base;
    struct source body; /* what the service makes */
    struct slice left;
};

struct pretended {
    struct adapter base;
    struct service_settings settings;
    struct shared_service shared;
    struct pretended_call *call; /* the latest; NULL: none is open */
    unsigned started;
    char got[TEXT]; /* what the latest call has read of its body */
};

struct chain_lab {
    struct loop loop;
    struct net_context net;
    struct arena arena;
    struct adapter_host host;
    struct pretended services[SERVICES];
    struct adapter *adapters[SERVICES];
    struct adapt_set set;
    struct http_head request, response;
    struct adapt_message message;
    struct bytes_source origin;
    struct adapt_chain chain;
    struct task task;
};

static struct pretended *pretended_of(struct adapter_call *call) {
    return CONTAINER_OF(call->adapter, struct pretended, base);
}

static void pretended_start(struct adapter_call *base, struct adapter *adapter,
                            const struct adapter_request *request, struct http_head *adapted,
                            struct task *waker) {
    struct pretended_call *call = CONTAINER_OF(base, struct pretended_call, base);
    struct pretended *service = CONTAINER_OF(adapter, struct pretended, base);
    memset(call, 0, sizeof *call);
    adapter_call_init(base, adapter, request->response, request->body, request->recording, adapted,
                      waker);
    memset(service->got, 0, sizeof service->got);
    service->call = call;
    service->started++;
}

static enum source_status pretended_read(struct source *source, char *buffer, size_t capacity,
                                         size_t *got) {
    struct pretended_call *call = CONTAINER_OF(source, struct pretended_call, body);
    *got = call->left.length < capacity ? call->left.length : capacity;
    memcpy(buffer, call->left.base, *got);
    call->left.base += *got;
    call->left.length -= *got;
    if (*got > 0)
        return SOURCE_DATA;
    return call->base.broken ? SOURCE_FAILED : SOURCE_END;
}

static void pretended_close(struct source *source) {
    (void)source;
}

static const struct source_class pretended_body_class = {"pretended body", pretended_read,
                                                         pretended_close, NULL};

static struct source *pretended_body(struct adapter_call *base) {
    return &CONTAINER_OF(base, struct pretended_call, base)->body;
}

static void pretended_end(struct adapter_call *base) {
    pretended_of(base)->call = NULL;
    adapter_call_release(base);
}

static unsigned pretended_client_fields(const struct adapter *adapter) {
    return 0;
}

static const struct adapter_class pretended_class = {
    .name = "pretended",
    .client_fields = pretended_client_fields,
    .call_size = sizeof(struct pretended_call),
    .start = pretended_start,
    .body = pretended_body,
    .end = pretended_end,
};

/* What the services do. */

/* Reads what there is; the status behind it. */
static enum source_status service_reads(struct pretended *service) {
    size_t length = strlen(service->got), got;
    enum source_status status;
    while ((status = source_read(&service->call->base.virgin.first, service->got + length,
                                 TEXT - 1 - length, &got)) == SOURCE_DATA)
        length += got;
    return status;
}

static void service_makes(struct pretended *service, const char *body, bool breaks) {
    struct pretended_call *call = service->call;
    call->left = slice_from(body);
    call->base.broken = breaks;
    call->base.error = breaks ? "it broke off" : NULL;
    call->base.result.has_body = true;
    source_init(&call->body, &pretended_body_class, service->base.host->net->loop, -1);
    adapter_call_settle(&call->base, ADAPTER_MODIFIED);
}

static void service_fails(struct pretended *service) {
    service->call->base.error = "it failed";
    adapter_call_settle(&service->call->base, ADAPTER_FAILED);
}

static void service_leaves(struct pretended *service) {
    adapter_call_settle(&service->call->base, ADAPTER_UNMODIFIED);
}

/* The lab. */

static void lab_on_chain(struct task *task) {
    (void)task;
}

static void parse(struct http_head *head, const char *text, bool response) {
    size_t length = strlen(text);
    ck_assert_int_eq(response ? http_head_parse_response(head, text, length, 0)
                              : http_head_parse_request(head, text, length, 0),
                     (ssize_t)length);
}

static void open_service(struct chain_lab *lab, unsigned index) {
    static char *const names[SERVICES] = {"one", "two", "three"};
    struct pretended *service = &lab->services[index];
    service->settings = (struct service_settings){
        .name = names[index],
        .point = ADAPT_RESPMOD_PRECACHE,
        .keep = 1 << 16,
        .temporary_directory = "/tmp",
    };
    shared_service_init(&service->shared, &pretended_class, &service->settings, NULL);
    adapter_init(&service->base, &service->shared, &service->settings, &lab->host);
    lab->adapters[index] = &service->base;
}

static struct chain_lab *lab_open(void) {
    struct chain_lab *lab = xcalloc(1, sizeof *lab);
    ck_assert(loop_init(&lab->loop));
    net_context_init(&lab->net, &lab->loop);
    arena_init(&lab->arena);
    lab->host.net = &lab->net;
    for (unsigned i = 0; i < SERVICES; i++)
        open_service(lab, i);
    lab->set.services = lab->adapters;
    lab->set.service_count = SERVICES;
    parse(&lab->request, "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n", false);
    parse(&lab->response, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", true);
    task_init(&lab->task, lab_on_chain);
    return lab;
}

static void lab_start(struct chain_lab *lab, const char *body, unsigned count) {
    lab->message = (struct adapt_message){
        .request = &lab->request,
        .response = &lab->response,
        .body = bytes_source_start(&lab->origin, slice_from(body), &lab->loop),
    };
    adapt_chain_start(&lab->chain, &lab->set, lab->adapters, count, &lab->message, &lab->arena,
                      &lab->net, &lab->task);
}

/* Until nothing is deferred any more. */
static void lab_turn(struct chain_lab *lab) {
    struct task awake;
    task_init(&awake, lab_on_chain);
    for (unsigned i = 0; i < 4; i++) {
        loop_defer(&lab->loop, &awake);
        loop_run_once(&lab->loop);
    }
}

static void lab_close(struct chain_lab *lab) {
    adapt_chain_close(&lab->chain);
    for (unsigned i = 0; i < SERVICES; i++) {
        ck_assert_ptr_null(lab->services[i].call);
        adapter_release(&lab->services[i].base);
        shared_service_end(&lab->services[i].shared);
    }
    task_cancel(&lab->task);
    arena_release(&lab->arena);
    net_context_release(&lab->net);
    loop_release(&lab->loop);
    free(lab);
}

/* The chain is done, and this is its body. */
static void done_with(struct chain_lab *lab, const char *body) {
    char text[TEXT] = "";
    size_t length = 0, got;
    lab_turn(lab);
    ck_assert_int_eq(lab->chain.state, ADAPT_DONE);
    while (source_read(lab->message.body, text + length, TEXT - 1 - length, &got) == SOURCE_DATA)
        length += got;
    ck_assert_str_eq(text, body);
}

START_TEST(each_gets_what_the_one_before_it_made) {
    struct chain_lab *lab = lab_open();
    lab_start(lab, "a", 2);
    ck_assert_int_eq(service_reads(&lab->services[0]), SOURCE_END);
    ck_assert_str_eq(lab->services[0].got, "a");
    ck_assert_ptr_null(lab->services[1].call);
    service_makes(&lab->services[0], "b", false);
    lab_turn(lab);
    service_reads(&lab->services[1]);
    ck_assert_str_eq(lab->services[1].got, "b");
    service_makes(&lab->services[1], "c", false);
    done_with(lab, "c");
    ck_assert(lab->chain.modified && !lab->chain.bypassed);
    ck_assert_str_eq(lab->chain.records[1].service, "two");
    lab_close(lab);
}
END_TEST

START_TEST(one_that_fails_is_bypassed_at_each_place) {
    for (unsigned failing = 0; failing < SERVICES; failing++) {
        struct chain_lab *lab = lab_open();
        lab->services[failing].settings.bypass = true;
        lab_start(lab, "a", SERVICES);
        for (unsigned i = 0; i < SERVICES; i++) {
            service_reads(&lab->services[i]);
            if (i == failing)
                service_fails(&lab->services[i]);
            else
                service_makes(&lab->services[i], "b", false);
            lab_turn(lab);
        }
        done_with(lab, "b");
        ck_assert(lab->chain.bypassed && !adapt_chain_is_storable(&lab->chain));
        ck_assert_str_eq(lab->chain.records[failing].verdict, "BYPASSED");
        ck_assert_uint_eq(lab->services[failing].base.account.bypassed, 1);
        lab_close(lab);
    }
}
END_TEST

START_TEST(without_bypass_a_failure_ends_the_chain) {
    struct chain_lab *lab = lab_open();
    lab_start(lab, "a", 2);
    service_fails(&lab->services[0]);
    lab_turn(lab);
    ck_assert_int_eq(lab->chain.state, ADAPT_FAILED);
    ck_assert_ptr_nonnull(lab->chain.error);
    ck_assert_uint_eq(lab->services[1].started, 0);
    lab_close(lab);
}
END_TEST

START_TEST(a_service_names_those_that_follow) {
    struct chain_lab *lab = lab_open();
    lab->services[0].settings.routing = true;
    lab_start(lab, "a", 2);
    lab->services[0].call->base.result.next_services = xstrdup("three, nobody");
    service_leaves(&lab->services[0]);
    lab_turn(lab);
    ck_assert_uint_eq(lab->services[1].started, 0);
    service_leaves(&lab->services[2]);
    done_with(lab, "a");
    ck_assert(!lab->chain.modified);
    lab_close(lab);
}
END_TEST

START_TEST(a_body_that_breaks_off_under_the_next_service_is_gone_back_from) {
    struct chain_lab *lab = lab_open();
    lab->services[0].settings.bypass = true;
    lab_start(lab, "a", 2);
    service_reads(&lab->services[0]);
    service_makes(&lab->services[0], "b", true);
    lab_turn(lab);
    ck_assert_int_eq(service_reads(&lab->services[1]), SOURCE_FAILED);
    service_fails(&lab->services[1]);
    lab_turn(lab);
    ck_assert_uint_eq(lab->services[1].started, 2); /* it is asked about the original */
    service_reads(&lab->services[1]);
    ck_assert_str_eq(lab->services[1].got, "a");
    service_makes(&lab->services[1], "c", false);
    done_with(lab, "c");
    ck_assert(lab->chain.bypassed);
    lab_close(lab);
}
END_TEST

START_TEST(closes_in_each_state) {
    for (unsigned verdicts = 0; verdicts <= 2; verdicts++) {
        struct chain_lab *lab = lab_open();
        lab_start(lab, "a", 2);
        for (unsigned i = 0; i < verdicts; i++) {
            service_makes(&lab->services[i], "b", false);
            lab_turn(lab);
        }
        lab_close(lab);
    }
}
END_TEST

START_TEST(a_little_trickles_while_the_last_service_thinks) {
    struct chain_lab *lab = lab_open();
    char buffer[TEXT];
    size_t got;
    lab->services[0].settings.trickle_after = 1;
    lab->services[0].settings.trickle_every = 1000;
    lab->services[0].settings.trickle_bytes = 100;
    lab_start(lab, "abcdefgh", 1);
    service_reads(&lab->services[0]);
    while (lab->chain.state == ADAPT_RUNNING)
        loop_run_once(&lab->loop);
    ck_assert_int_eq(lab->chain.state, ADAPT_DONE);
    ck_assert_int_eq(source_read(lab->message.body, buffer, TEXT, &got), SOURCE_DATA);
    ck_assert_uint_eq(got, 4); /* half of what has come */
    ck_assert(!adapt_chain_is_storable(&lab->chain));
    service_leaves(&lab->services[0]);
    done_with(lab, "efgh");
    lab_close(lab);
}
END_TEST

Suite *chain_suite(void) {
    const TTest *const tests[] = {
        each_gets_what_the_one_before_it_made,
        one_that_fails_is_bypassed_at_each_place,
        without_bypass_a_failure_ends_the_chain,
        a_service_names_those_that_follow,
        a_body_that_breaks_off_under_the_next_service_is_gone_back_from,
        closes_in_each_state,
    };
    const TTest *const with_trickling[] = {a_little_trickles_while_the_last_service_thinks};
    Suite *suite = suite_of("chain", tests, COUNT_OF(tests));
    suite_add_with(suite, "patience", with_trickling, COUNT_OF(with_trickling));
    return suite;
}
