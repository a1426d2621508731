/*
 * retort-service-test: runs a module of a service against messages, each in many ways, and says
 * where results differ and which promises of service/service.h are broken.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/signals.h"
#include "service-test/helperd.h"
#include "service-test/message.h"
#include "service-test/options.h"
#include "service-test/plan.h"
#include "service-test/report.h"
#include "service-test/watch.h"
#include "service-test/worker.h"
#include "service/service.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

/* What came of a test, for people or as JSON. Returns the exit status. */

struct totals {
    unsigned tested, foreign;
    uint64_t runs;
};

static struct totals totals_of(const struct test_report *report) {
    struct totals totals = {0, 0, 0};
    for (unsigned i = 0; i < report->message_count; i++) {
        totals.foreign += report->messages[i].foreign;
        totals.tested += report->messages[i].runs > 0;
        totals.runs += report->messages[i].runs;
    }
    return totals;
}

static const char *points_text(unsigned points) {
    return points == SERVICE_REQUEST    ? "requests"
           : points == SERVICE_RESPONSE ? "responses"
                                        : "requests and responses";
}

static int status_of(const struct test_report *report) {
    if (report->finding_count > 0)
        return TESTER_BROKEN;
    return report->cannot[0] != '\0' || totals_of(report).tested == 0 ? TESTER_NOT_RUN
                                                                      : TESTER_KEPT;
}

static const char *outcome_name_of(const struct test_messages *messages, int message) {
    return message == TEST_SERVICE ? "the service" : messages->list[message].name;
}

/* ---- for people --------------------------------------------------------------------------- */

static void print_message(FILE *out, const struct test_message *message,
                          const struct test_message_report *report) {
    fprintf(out, "%s: ", message->name);
    if (report->foreign) {
        fprintf(out, "not for this service\n");
        return;
    }
    fprintf(out, "%s, %" PRIu64 " bytes in, %" PRIu64 " out, %" PRIu64 " runs%s%s\n",
            report->failed_because[0] != '\0' ? "could not be adapted"
                                              : test_outcome_text(report->outcome),
            report->in, report->out, report->runs, report->failed_because[0] != '\0' ? ": " : "",
            report->failed_because);
    if (report->by_preview)
        fprintf(out,
                "    Whether it is adapted depends on how much of the body the preview shows.\n");
}

static void print_finding(FILE *out, const struct test_messages *messages,
                          const struct test_finding *finding) {
    fprintf(out, "BROKEN (%s): %s", finding_kind_name(finding->kind),
            outcome_name_of(messages, finding->message));
    if (finding->call != CALL_NONE)
        fprintf(out, ", in %s", test_call_text(finding->call));
    fprintf(out, "\n    %s\n", finding->text);
    if (finding->plan[0] != '\0')
        fprintf(out, "    Met with --plan \"%s\"", finding->plan);
    if (finding->plan[0] != '\0' && finding->times > 1)
        fprintf(out, ", and %" PRIu64 " more %s of this kind", finding->times - 1,
                plural((int64_t)finding->times - 1, "finding", "findings"));
    if (finding->plan[0] != '\0')
        fprintf(out, "\n");
}

static void print_reason(FILE *out, const struct tester_options *options,
                         const struct test_report *report, const struct totals *totals) {
    if (report->cannot[0] != '\0')
        fprintf(out, "%s can't be tested: %s.\n", options->module, report->cannot);
    else if (totals->tested == 0 && report->finding_count == 0)
        fprintf(out,
                "Nothing was tested: the service %s adapts %s, and none of the %u messages is "
                "one.\n",
                report->service, points_text(report->points), report->message_count);
}

static void print_people(FILE *out, const struct tester_options *options,
                         const struct test_messages *messages, const struct test_report *report) {
    struct totals totals = totals_of(report);
    for (unsigned i = 0; i < report->message_count; i++)
        if (options->verbose || (report->messages[i].failed_because[0] != '\0'))
            print_message(out, &messages->list[i], &report->messages[i]);
    for (unsigned i = 0; i < report->finding_count; i++)
        print_finding(out, messages, &report->findings[i]);
    if (report->more > 0)
        fprintf(out, "%u more findings are not shown.\n", report->more);
    if (messages->left_out > 0)
        fprintf(out,
                "%u recorded exchanges were left out: their bodies are not whole. Record them "
                "with a larger --body.\n",
                messages->left_out);
    print_reason(out, options, report, &totals);
    if (totals.tested == 0 && report->finding_count == 0)
        return;
    fprintf(out, "%s: %u %s, %" PRIu64 " runs%s: ", report->service, totals.tested,
            plural(totals.tested, "message", "messages"), totals.runs,
            options->valgrind ? " under memcheck" : "");
    if (report->finding_count > 0)
        fprintf(out, "%u %s broken.\n", report->finding_count,
                plural(report->finding_count, "promise is", "promises are"));
    else
        fprintf(out, "all promises were kept.\n");
    if (options->verbose)
        fprintf(out, "The longest of %" PRIu64 " calls was %s, with %" PRIu64 " us.\n",
                report->calls, test_call_text(report->slowest), report->slowest_us);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *json_text(const char *text) {
    json_t *value = json_string(text);
    return value != NULL ? value : json_string("(no UTF-8)");
}

static json_t *json_of_message(const struct test_message *message,
                               const struct test_message_report *report) {
    const char *outcome = report->foreign ? "foreign" : test_outcome_text(report->outcome);
    return json_pack("{so ss ss sI sI sI sI sb ss}", "name", json_text(message->name), "kind",
                     message->response.length > 0 ? "response" : "request", "outcome", outcome,
                     "runs", (json_int_t)report->runs, "bytes_in", (json_int_t)report->in,
                     "bytes_out", (json_int_t)report->out, "held_most",
                     (json_int_t)report->held_most, "depends_on_preview", report->by_preview,
                     "failed_because", report->failed_because);
}

static json_t *json_of_finding(const struct test_messages *messages,
                               const struct test_finding *finding) {
    json_t *object = json_pack(
        "{ss so ss so ss sI}", "kind", finding_kind_name(finding->kind), "message",
        finding->message == TEST_SERVICE ? json_null()
                                         : json_text(outcome_name_of(messages, finding->message)),
        "call", finding->call == CALL_NONE ? "" : test_call_text(finding->call), "text",
        json_text(finding->text), "plan", finding->plan, "times", (json_int_t)finding->times);
    if (finding->kind == FINDING_DIFFERS)
        json_object_set_new(object, "offset", json_integer((json_int_t)finding->offset));
    return object;
}

static void outcome_print_json(FILE *out, const struct tester_options *options,
                               const struct test_messages *messages,
                               const struct test_report *report) {
    json_t *list = json_array(), *findings = json_array();
    struct totals totals = totals_of(report);
    for (unsigned i = 0; i < report->message_count; i++)
        json_array_append_new(list, json_of_message(&messages->list[i], &report->messages[i]));
    for (unsigned i = 0; i < report->finding_count; i++)
        json_array_append_new(findings, json_of_finding(messages, &report->findings[i]));
    json_t *object = json_pack(
        "{so ss sb ss sI sI sI ss so so si}", "module", json_text(options->module), "service",
        report->service, "kept", status_of(report) == TESTER_KEPT, "cannot", report->cannot, "runs",
        (json_int_t)totals.runs, "calls", (json_int_t)report->calls, "slowest_microseconds",
        (json_int_t)report->slowest_us, "slowest_call", test_call_text(report->slowest), "messages",
        list, "findings", findings, "left_out", (int)messages->left_out);
    json_dumpf(object, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(object);
}

static int test_outcome_print(FILE *out, const struct tester_options *options,
                              const struct test_messages *messages,
                              const struct test_report *report) {
    if (options->json)
        outcome_print_json(out, options, messages, report);
    else
        print_people(out, options, messages, report);
    return status_of(report);
}

static int tester_fail(const char *error) {
    fprintf(stderr, "retort-service-test: %s\n", error);
    return TESTER_NOT_RUN;
}

static bool tester_read_messages(const struct tester_options *options,
                                 struct test_messages *messages, char error[TEST_MESSAGE_ERROR]) {
    for (char **file = options->files; *file != NULL; file++)
        if (!test_messages_read(messages, *file, options->messages, error))
            return false;
    if (options->files[0] == NULL)
        test_messages_make(messages);
    return true;
}

/* The arguments with the setting for the helpers in front, for a worker that is a program of its
 * own. */
static char **arguments_with(char *setting, int argc, char **argv) {
    char **list = xcalloc((size_t)argc + 3, sizeof *list);
    list[0] = argv[0];
    list[1] = setting[0] == '\0' ? argv[0] : (char *)"--set";
    if (setting[0] == '\0') {
        memcpy(list, argv, (size_t)argc * sizeof *list);
        return list;
    }
    list[2] = setting;
    memcpy(list + 3, argv + 1, (size_t)argc * sizeof *list);
    return list;
}

/* In front of the user's settings, so that his own count. */
static void tester_add_setting(struct tester_options *options, char *setting) {
    options->settings =
        xrealloc(options->settings, (options->setting_count + 1) * sizeof *options->settings);
    memmove(options->settings + 1, options->settings,
            options->setting_count * sizeof *options->settings);
    options->settings[0] = setting;
    options->setting_count++;
}

static int tester_run(struct tester_options *options, const struct test_messages *messages,
                      int argc, char **argv) {
    struct test_helperd helperd = {.process = 0};
    char error[400] = "";
    int fd, status = TESTER_NOT_RUN;
    struct test_report *report = test_report_create(messages->count, &fd);
    if (report == NULL)
        return tester_fail("no memory can be shared with the process that runs the service");
    if (options->helper_count > 0 && !test_helperd_start(&helperd, options, error, sizeof error)) {
        tester_fail(error);
    } else {
        char **list = arguments_with(helperd.setting, argc, argv);
        if (options->helper_count > 0)
            tester_add_setting(options, helperd.setting);
        test_watch(options, messages, report, fd, list);
        status = test_outcome_print(stdout, options, messages, report);
        free(list);
    }
    test_helperd_stop(&helperd);
    test_report_unmap(&report);
    close(fd);
    return status;
}

static int tester_work(const struct tester_options *options, const struct test_messages *messages) {
    struct test_report *report = test_report_map(options->worker, messages->count);
    if (report == NULL)
        return TESTER_NOT_RUN;
    int status = test_worker(options, messages, report);
    test_report_unmap(&report);
    return status;
}

int main(int argc, char **argv) {
    struct tester_options options;
    struct test_messages messages = {0};
    struct test_plan plan;
    char error[TEST_MESSAGE_ERROR] = "";
    int status;
    signals_ignore_harmless();
    log_open(STDERR_FILENO, "retort-service-test", LOG_LEVEL_WARN);
    tester_options_read(&options, argc, argv);
    if (options.plan != NULL && !test_plan_read(&plan, options.plan, error))
        status = tester_fail(error);
    else if (!tester_read_messages(&options, &messages, error))
        status = tester_fail(error);
    else if (options.worker >= 0)
        status = tester_work(&options, &messages);
    else
        status = tester_run(&options, &messages, argc, argv);
    test_messages_release(&messages);
    tester_options_release(&options);
    return status;
}
