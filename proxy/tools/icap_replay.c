/*
 * retort-icap-replay: sends recorded messages to a service with the proxy's own ICAP client, several
 * exchanges at a time, and compares the answers with the recorded ones. "retortctl icap replay" runs
 * it. Exit status: 0: all are equal, 1: some differ, 2: there was trouble.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/plural.h"
#include "event/mailbox.h"
#include "http/head_parser.h"
#include "icap/adapter.h"
#include "icap/call.h"
#include "net/resolver.h"
#include "tls/trust_files.h"
#include "tools/difference.h"
#include "tools/icap_command.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { NEVER_DOWN = 1000000000, KEEP = RECORDED_MAX, IDLE_MILLISECONDS = 60000 };

struct tallies {
    uint64_t exchanges, equal, different, verdicts, heads, bodies, not_compared, answered;
};

struct replay {
    unsigned magic;
#define REPLAY_MAGIC 0x4e914a00u
    struct icap_choices *options;
    struct loop loop;
    struct mailbox mailbox;
    struct net_context net;
    struct settings settings;
    struct service_settings service_settings;
    char *uri_texts[2];
    struct url uri;
    struct tls_trust_settings trust;
    enum adapt_point point; /* the service does not know whether it is before or after the cache */
    struct adapter_host host;
    struct icap_quota *quota;
    struct icap_service *service;
    struct record_file *file;
    uint64_t number; /* of the latest exchange that was read */
    unsigned under_way;
    json_t *differences; /* NULL: differences are printed */
    struct tallies tallies;
    char error[400]; /* of the latest failure */
};

/* The body that was recorded. */
struct memory {
    struct source source;
    struct slice left;
    bool whole;
    bool ran_out; /* the service asked for more than was recorded */
};

struct item {
    unsigned magic;
#define ITEM_MAGIC 0x4e914a01u
    struct replay *replay;
    char *content;
    struct recorded_exchange recorded;
    struct difference difference;
    struct memory virgin;
    struct icap_call call;
    struct http_head adapted;
    struct task task;
    bool judged;
    struct source *body; /* that is being compared */
};

/* The virgin body. */

static enum source_status memory_read(struct source *source, char *buffer, size_t capacity,
                                      size_t *got) {
    struct memory *memory = CONTAINER_OF(source, struct memory, source);
    *got = memory->left.length < capacity ? memory->left.length : capacity;
    memcpy(buffer, memory->left.base, *got);
    memory->left.base += *got;
    memory->left.length -= *got;
    if (*got > 0)
        return SOURCE_DATA;
    memory->ran_out = !memory->whole;
    return memory->whole ? SOURCE_END : SOURCE_FAILED;
}

static void memory_close(struct source *source) {
    (void)source;
}

static const struct source_class memory_class = {"recorded body", memory_read, memory_close, NULL};

static struct source *virgin_of(struct item *item, struct loop *loop) {
    const struct recorded_exchange *recorded = &item->recorded;
    struct memory *memory = &item->virgin;
    if (!recorded->virgin_given)
        return NULL;
    memory->whole = recorded->virgin_whole && recorded->virgin.length == recorded->virgin_length;
    memory->left = slice_make(recorded->virgin.base != NULL ? recorded->virgin.base : "",
                              recorded->virgin.length);
    source_init(&memory->source, &memory_class, loop,
                recorded->virgin_whole ? (int64_t)recorded->virgin_length : -1);
    return &memory->source;
}

/* One exchange. */

static void icap_replay_finish(struct item *item) {
    struct replay *replay = item->replay;
    struct tallies *tallies = &replay->tallies;
    unsigned found = item->difference.found;
    if (found != 0)
        tallies->different++;
    tallies->verdicts += (found & DIFFERENCE_VERDICT) != 0;
    tallies->heads += (found & DIFFERENCE_HEAD) != 0;
    tallies->bodies += (found & DIFFERENCE_BODY) != 0;
    replay->under_way--;
    source_close(&item->body);
    icap_call_close(&item->call);
    task_cancel(&item->task);
    difference_release(&item->difference);
    free(item->content);
    FREE_OBJ(item);
}

static void finish_equal(struct item *item) {
    item->replay->tallies.equal += item->difference.found == 0;
    icap_replay_finish(item);
}

static void finish_uncompared(struct item *item, const char *why) {
    item->replay->tallies.not_compared++;
    if (item->difference.found == 0)
        difference_remark(&item->difference, why);
    icap_replay_finish(item);
}

static void compare_body(struct item *item) {
    char buffer[16384];
    size_t got;
    for (;;) {
        switch (source_read(item->body, buffer, sizeof buffer, &got)) {
        case SOURCE_DATA: difference_body(&item->difference, buffer, got); break;
        case SOURCE_WAIT: return;
        case SOURCE_END:
            difference_body_end(&item->difference);
            finish_equal(item);
            return;
        case SOURCE_FAILED:
            if (item->virgin.ran_out) {
                finish_uncompared(
                    item, "not compared: the service needs more of the body than was recorded");
                return;
            }
            difference_verdict(&item->difference, "failed", item->call.base.error);
            finish_equal(item);
            return;
        }
    }
}

static const char *icap_replay_verdict_name(const struct icap_call *call) {
    switch (call->base.verdict) {
    case ADAPTER_UNMODIFIED: return "unmodified";
    case ADAPTER_MODIFIED: return "modified";
    case ADAPTER_SATISFIED: return "satisfied";
    default: return "failed";
    }
}

/* Heads and bodies are compared only when the verdicts are the same. */
static void icap_replay_judge(struct item *item) {
    struct icap_call *call = &item->call;
    bool failed = call->base.verdict == ADAPTER_FAILED;
    if (failed && item->virgin.ran_out) {
        finish_uncompared(item,
                          "not compared: the service needs more of the body than was recorded");
        return;
    }
    if (failed)
        snprintf(item->replay->error, sizeof item->replay->error, "%s", call->base.error);
    else
        item->replay->tallies.answered++;
    difference_verdict(&item->difference, icap_replay_verdict_name(call),
                       failed ? call->base.error : NULL);
    if (item->difference.found != 0 || failed || call->base.verdict == ADAPTER_UNMODIFIED) {
        finish_equal(item);
        return;
    }
    difference_head(&item->difference, call->base.result.head_given ? call->base.adapted : NULL);
    item->body = adapter_call_body(&call->base);
    if (item->body != NULL) {
        source_set_waker(item->body, &item->task);
        compare_body(item);
        return;
    }
    difference_body_end(&item->difference);
    finish_equal(item);
}

static void icap_replay_on_news(struct task *task) {
    struct item *item = CONTAINER_OF(task, struct item, task);
    CHECK_OBJ(item, ITEM_MAGIC);
    if (item->call.base.verdict == ADAPTER_PENDING)
        return;
    if (item->judged) {
        compare_body(item);
        return;
    }
    item->judged = true;
    icap_replay_judge(item);
}

/* The reason why an exchange can't be compared: its recording is incomplete. */
static const char *icap_replay_unfit(const struct recorded_exchange *recorded) {
    struct slice verdict = recorded->verdict;
    if (recorded->request_head.length == 0)
        return "not compared: no message was recorded";
    if (slice_equal(verdict, SLICE("abandoned")))
        return "not compared: the client left before the verdict";
    if (recorded->error.length > 0 && !slice_equal(verdict, SLICE("failed")))
        return "not compared: the recorded answer is incomplete";
    return NULL;
}

static struct slice path_of(struct slice text) {
    struct url url;
    return url_parse(&url, text) ? url_path(&url) : SLICE("/");
}

/* The head that the service is given. */
static bool parse_given(struct http_head *given, const struct recorded_exchange *recorded) {
    struct slice response = recorded->response_head, request = recorded->request_head;
    if (response.length > 0)
        return http_head_parse_response(given, response.base, response.length, 0) > 0;
    return http_head_parse_request(given, request.base, request.length, 0) > 0;
}

static void icap_replay_start_call(struct item *item) {
    const struct recorded_exchange *recorded = &item->recorded;
    struct http_head given;
    if (!parse_given(&given, recorded)) {
        finish_uncompared(item, "not compared: the recorded head can't be parsed");
        return;
    }
    struct source *virgin = virgin_of(item, &item->replay->loop);
    const struct icap_request request = {
        .given = &given,
        .request_head = recorded->request_head,
        .response_head = recorded->response_head,
        .virgin = &virgin,
        .path = path_of(recorded->url),
        .client.ip = recorded->client_ip,
        .client.server_ip = recorded->server_ip,
        .client.port = (uint16_t)recorded->client_port,
        .transaction_id = recorded->id,
    };
    icap_call_start(&item->call, item->replay->service, &request, &item->adapted, &item->task);
}

/* Takes the content. */
static void start_item(struct replay *replay, const struct recorded_exchange *recorded,
                       char *content) {
    struct item *item;
    ALLOC_OBJ(item, ITEM_MAGIC);
    item->replay = replay;
    item->content = content;
    item->recorded = *recorded;
    item->difference = (struct difference){
        .recorded = &item->recorded,
        .number = replay->number,
        .json = replay->differences,
        .ignored = replay->options->ignored,
        .ignored_count = replay->options->ignored_count,
    };
    task_init(&item->task, icap_replay_on_news);
    replay->under_way++;
    replay->tallies.exchanges++;
    const char *why = icap_replay_unfit(recorded);
    if (why != NULL)
        finish_uncompared(item, why);
    else
        icap_replay_start_call(item);
}

/* The file. */

static bool icap_replay_is_wanted(struct icap_choices *options,
                                  const struct recorded_exchange *recorded) {
    return record_filter_fits(&options->filter, recorded) &&
           record_filter_fits_verdict(&options->filter, recorded) &&
           record_filter_takes(&options->filter);
}

/* False: the file is at its end. */
static bool start_next(struct replay *replay) {
    struct recorded_exchange recorded;
    char *content;
    while (record_file_next(replay->file, &recorded, &content)) {
        replay->number++;
        if (icap_replay_is_wanted(replay->options, &recorded)) {
            start_item(replay, &recorded, content);
            return true;
        }
        free(content);
    }
    return false;
}

static void icap_replay_run(struct replay *replay) {
    bool more = true;
    while (more || replay->under_way > 0) {
        while (more && replay->under_way < replay->options->concurrency)
            more = start_next(replay);
        if (replay->under_way > 0)
            loop_run_once(&replay->loop);
    }
}

/* Exchanges of one service can't be compared with the answers of another one. */
static bool is_of_one_service(struct icap_choices *options, enum adapt_point *point_of) {
    char error[RECORD_FILE_ERROR], *content, *service = NULL, *point = NULL;
    struct recorded_exchange recorded;
    bool good = true;
    struct record_file *file = record_file_open(options->words[0], error);
    if (file == NULL) {
        icap_complain(0, error);
        return false;
    }
    while (good && record_file_next(file, &recorded, &content)) {
        if (record_filter_fits(&options->filter, &recorded)) {
            if (service == NULL) {
                service = slice_dup(recorded.service);
                point = slice_dup(recorded.point);
            }
            good = slice_equal(recorded.service, slice_from(service)) &&
                   slice_equal(recorded.point, slice_from(point));
        }
        free(content);
    }
    record_file_close(&file);
    *point_of = point != NULL && slice_starts_with(slice_from(point), SLICE("reqmod"))
                    ? ADAPT_REQMOD_PRECACHE
                    : ADAPT_RESPMOD_PRECACHE;
    free(service);
    free(point);
    if (!good)
        icap_complain(0, "the file has exchanges of several services: choose one with "
                         "--filter service=NAME");
    return good;
}

/* The service. */

static void set_up_service(struct replay *replay) {
    const struct icap_choices *options = replay->options;
    static char name[] = "replay";
    replay->service_settings = (struct service_settings){
        .name = name,
        .uri_texts = replay->uri_texts,
        .trust = replay->trust,
        .endpoints = &replay->uri,
        .endpoint_count = 1,
        .point = replay->point,
        .timeout = options->timeout * 1000,
        .total_timeout = options->timeout * 6000,
        .connect_timeout = options->timeout * 1000,
        .idle_timeout = IDLE_MILLISECONDS,
        .max_connections = (unsigned)options->concurrency,
        .queue_max = (unsigned)options->concurrency,
        .queue_timeout = options->timeout * 6000,
        .preview = (size_t)options->preview,
        .keep = KEEP,
        .temporary_directory = "/tmp",
        .failures_down = NEVER_DOWN,
        .down_min = 100,
        .down_max = 1000,
    };
    replay->settings.services = &replay->service_settings;
    replay->settings.service_count = 1;
    replay->settings.workers = 1;
    replay->host = (struct adapter_host){.net = &replay->net, .mailbox = &replay->mailbox};
    replay->quota = icap_quota_new(&icap_adapter_class, &replay->settings, 0, NULL);
    replay->service = icap_service_new(replay->quota, &replay->service_settings, &replay->host);
}

static bool icap_replay_set_up(struct replay *replay) {
    if (!loop_init(&replay->loop) || !mailbox_init(&replay->mailbox, &replay->loop))
        return false;
    net_context_init(&replay->net, &replay->loop);
    replay->net.settings = &replay->settings;
    replay->net.resolver = resolver_new(&replay->net);
    if (replay->net.resolver == NULL)
        return false;
    set_up_service(replay);
    return true;
}

static void tear_down(struct replay *replay) {
    icap_service_free(&replay->service);
    icap_quota_free(&replay->quota);
    resolver_free(&replay->net.resolver);
    mailbox_release(&replay->mailbox);
    net_context_release(&replay->net);
    loop_release(&replay->loop);
}

/* The end. */

static void tell_json(const struct replay *replay, const char *complaint) {
    const struct tallies *t = &replay->tallies;
    json_t *json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O, s:s?}", "exchanges",
                             (json_int_t)t->exchanges, "equal", (json_int_t)t->equal, "different",
                             (json_int_t)t->different, "verdicts", (json_int_t)t->verdicts, "heads",
                             (json_int_t)t->heads, "bodies", (json_int_t)t->bodies, "not_compared",
                             (json_int_t)t->not_compared, "differences", replay->differences,
                             "complaint", complaint);
    json_dumpf(json, stdout, JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}

static void tell_text(const struct tallies *t) {
    printf("%llu %s: %llu equal, %llu differ (%llu in the verdict, %llu in the head, %llu in "
           "the body), %llu not compared\n",
           (unsigned long long)t->exchanges, plural((int64_t)t->exchanges, "exchange", "exchanges"),
           (unsigned long long)t->equal, (unsigned long long)t->different,
           (unsigned long long)t->verdicts, (unsigned long long)t->heads,
           (unsigned long long)t->bodies, (unsigned long long)t->not_compared);
}

static int icap_replay_tell(const struct replay *replay) {
    const struct tallies *tallies = &replay->tallies;
    const char *complaint = record_file_end(replay->file)->complaint;
    if (replay->differences != NULL)
        tell_json(replay, complaint);
    else
        tell_text(tallies);
    if (complaint != NULL)
        return icap_complain(ICAP_EXIT_TROUBLE, complaint);
    if (tallies->exchanges == tallies->not_compared)
        return icap_complain(ICAP_EXIT_TROUBLE, "no exchange could be compared");
    if (tallies->answered == 0 && replay->error[0] != '\0') {
        fprintf(stderr, "retortctl: the service answered nothing: %s%s\n", replay->error,
                strstr(replay->error, "ca_file") != NULL ? " (here: --ca FILE)" : "");
        return ICAP_EXIT_TROUBLE;
    }
    return tallies->different > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool icap_replay_load_trust(struct replay *replay) {
    char error[TLS_TRUST_ERROR];
    replay->trust = (struct tls_trust_settings){
        .ca_file = (char *)replay->options->ca,
        .verify = true,
        .check_staple = TLS_STAPLE_ON,
    };
    if (tls_trust_load(&replay->trust, error))
        return true;
    fprintf(stderr, "retortctl: %s (here: --ca FILE)\n", error);
    return false;
}

static int replay_file(struct icap_choices *options, struct replay *replay) {
    char error[RECORD_FILE_ERROR];
    replay->file = record_file_open(options->words[0], error);
    if (replay->file == NULL)
        return icap_complain(ICAP_EXIT_TROUBLE, error);
    int status = ICAP_EXIT_TROUBLE;
    if (!icap_replay_set_up(replay)) {
        icap_complain(0, "can't create an event loop");
    } else {
        icap_replay_run(replay);
        status = icap_replay_tell(replay);
        tear_down(replay);
    }
    record_file_close(&replay->file);
    return status;
}

/* Returns an error message, or NULL when the URI is good. */
static const char *take_uri(struct replay *replay) {
    const struct icap_choices *options = replay->options;
    struct url *uri = &replay->uri;
    replay->uri_texts[0] = (char *)options->service;
    bool is_uri = url_parse(uri, slice_from(options->service));
    if (is_uri && slice_equal_nocase(uri->scheme, SLICE("icaps")))
        return NULL;
    if (!is_uri || !slice_equal_nocase(uri->scheme, SLICE("icap")))
        return "--service needs a URI: icap://HOST:PORT/NAME, or icaps:// for TLS";
    return options->ca == NULL ? NULL : "--ca works only with icaps:// in --service";
}

static int icap_replay(struct icap_choices *options) {
    struct replay *replay;
    if (options->service == NULL)
        return icap_complain(ICAP_EXIT_TROUBLE,
                             "--service is missing: write --service icap://HOST:PORT/NAME");
    signal(SIGPIPE, SIG_IGN); /* TLS may write to connections that are already closed */
    ALLOC_OBJ(replay, REPLAY_MAGIC);
    replay->options = options;
    const char *complaint = take_uri(replay);
    if (options->json)
        replay->differences = json_array();
    log_open(STDERR_FILENO, "retortctl", LOG_LEVEL_ERROR);
    int status = ICAP_EXIT_TROUBLE;
    if (complaint != NULL)
        icap_complain(0, complaint);
    else if (icap_replay_load_trust(replay) && is_of_one_service(options, &replay->point))
        status = replay_file(options, replay);
    json_decref(replay->differences);
    tls_trust_unload(&replay->trust);
    FREE_OBJ(replay);
    return status;
}

static int icap_replay_line(const struct command_line *line) {
    return icap_command(NULL, line, icap_replay);
}

int main(int argc, char **argv) {
    return command_alone("retort-icap-replay", "icap", "replay", argc, argv, icap_replay_line);
}
