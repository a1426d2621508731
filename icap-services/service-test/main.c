/*
 * retort-service-test: runs a module of a service against messages, each in many ways, and says
 * where results differ and which promises of service/service.h are broken.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/signals.h"
#include "service-test/helperd.h"
#include "service-test/outcome.h"
#include "service-test/plan.h"
#include "service-test/watch.h"
#include "service-test/worker.h"

#include <string.h>
#include <unistd.h>

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
