#include "admin/answer.h"
#include "base/assert.h"
#include "base/plural.h"
#include "tools/admin_page.h"
#include "tools/http_call.h"
#include "tools/icap_command.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* retortctl icap record: starts a recording, and reads its data until the end. */

enum { PAUSE_MILLISECONDS = 100 };

struct taking {
    const struct icap_choices *options;
    json_int_t number; /* of the recording */
    FILE *file;
    bool told_to_stop;
    bool over;
    struct recorded_exchange last; /* its numbers after the end */
    char reason[100];
};

static volatile sig_atomic_t interrupted;

static void icap_record_on_signal(int number) {
    (void)number;
    interrupted = 1;
}

/* The signal ends the call at once (no SA_RESTART). */
static void watch_signals(void) {
    const struct sigaction action = {.sa_handler = icap_record_on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static bool icap_record_refused(const struct http_answer *answer) {
    json_t *json = answer_load(answer->body, answer->length);
    const char *reason = json_string_value(json_object_get(json, "error"));
    if (reason != NULL)
        icap_complain(0, reason);
    else
        fprintf(stderr, "retortctl: retort answered with status %u\n", answer->status);
    json_decref(json);
    return false;
}

static bool icap_record_call(const struct icap_choices *options, const char *target,
                             struct http_answer *answer) {
    char error[HTTP_CALL_ERROR];
    if (!http_call(answer, options->admin, "POST", target, error)) {
        icap_complain(0, error);
        return false;
    }
    if (answer->status == 200)
        return true;
    icap_record_refused(answer);
    http_answer_release(answer);
    return false;
}

static void put_size(FILE *out, const char *name, bool given, uint64_t size) {
    if (given)
        fprintf(out, "%s=%llu&", name, (unsigned long long)size);
}

static char *start_target(const struct icap_choices *options) {
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    fputs("/icap/record?", out);
    for (unsigned i = 0; i < options->filter_count; i++)
        admin_page_put(out, options->filters[i].name, options->filters[i].value);
    admin_page_put(out, "exchanges", options->exchanges);
    admin_page_put(out, "seconds", options->seconds);
    admin_page_put(out, "unmasked", options->unmasked ? "yes" : NULL);
    put_size(out, "body", options->body_given, options->body);
    put_size(out, "memory", options->memory_given, options->memory);
    ASSERT(fclose(out) == 0);
    text[length - 1] = '\0'; /* the last & or the ? */
    return text;
}

static bool icap_record_start(struct taking *taking) {
    struct http_answer answer;
    char *target = start_target(taking->options);
    bool good = icap_record_call(taking->options, target, &answer);
    free(target);
    if (!good)
        return false;
    json_t *json = answer_load(answer.body, answer.length);
    taking->number = json_integer_value(json_object_get(json, "recording"));
    json_decref(json);
    http_answer_release(&answer);
    return true;
}

/* Searches the records only for the last one. */
static bool take_records(struct taking *taking, struct slice bytes) {
    struct icap_record_head head;
    const char *error;
    while (bytes.length > 0) {
        if (bytes.length < RECORDED_HEAD || !icap_record_head_parse(&head, bytes.base) ||
            head.length > bytes.length - RECORDED_HEAD)
            return false;
        struct slice content = slice_make(bytes.base + RECORDED_HEAD, head.length);
        if (head.kind == RECORDED_END) {
            taking->over = recorded_exchange_parse(&taking->last, content, &error);
            snprintf(taking->reason, sizeof taking->reason, "%.*s",
                     SLICE_PRINT(taking->last.ended));
            return taking->over;
        }
        bytes.base += RECORDED_HEAD + head.length;
        bytes.length -= RECORDED_HEAD + head.length;
    }
    return true;
}

static bool say(struct taking *taking, const char *what, struct http_answer *answer) {
    char target[80];
    snprintf(target, sizeof target, "/icap/record%s?recording=%lld", what,
             (long long)taking->number);
    return icap_record_call(taking->options, target, answer);
}

static void icap_record_stop(struct taking *taking) {
    struct http_answer answer;
    taking->told_to_stop = true;
    if (say(taking, "/stop", &answer))
        http_answer_release(&answer);
}

static void pause_a_little(void) {
    const struct timespec time = {.tv_nsec = PAUSE_MILLISECONDS * 1000000};
    nanosleep(&time, NULL);
}

static void cannot_write(const struct icap_choices *options) {
    fprintf(stderr,
            "retortctl: can't write %s: %s; free some space, or record less with --filter\n",
            options->words[0], strerror(errno));
}

/* Returns false after a failure, with a message. */
static bool icap_record_take(struct taking *taking) {
    struct http_answer answer;
    if (!say(taking, "/take", &answer))
        return false;
    size_t length = answer.length;
    bool written = fwrite(answer.body, 1, length, taking->file) == length;
    if (!written)
        cannot_write(taking->options);
    bool good = written && take_records(taking, slice_make(answer.body, length));
    http_answer_release(&answer);
    if (written && !good)
        icap_complain(0, "the data from retort can't be read: does retort have another version?");
    if (good && length == 0)
        pause_a_little();
    return good;
}

static bool icap_record_run(struct taking *taking) {
    while (!taking->over) {
        if (interrupted && !taking->told_to_stop)
            icap_record_stop(taking);
        if (!icap_record_take(taking)) {
            if (!taking->told_to_stop)
                icap_record_stop(taking);
            return false;
        }
    }
    return true;
}

/* The file is readable by its owner only, and never replaces an existing one. */
static FILE *icap_record_create(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (file == NULL)
        fprintf(stderr, "retortctl: can't create %s: %s%s\n", path, strerror(errno),
                errno == EEXIST ? "; choose another name, or remove the file" : "");
    return file;
}

static void icap_record_tell(const struct taking *taking) {
    const struct recorded_exchange *last = &taking->last;
    long long kept = (long long)last->kept, dropped = (long long)last->dropped,
              unfinished = (long long)last->unfinished;
    if (taking->options->json) {
        json_t *json = json_pack("{s:I, s:I, s:I, s:s}", "exchanges", kept, "dropped", dropped,
                                 "unfinished", unfinished, "ended", taking->reason);
        json_dumpf(json, stdout, JSON_ENSURE_ASCII);
        putchar('\n');
        json_decref(json);
        return;
    }
    printf("%lld %s recorded, %lld dropped, %lld not finished at the end: %s\n", kept,
           plural(kept, "exchange", "exchanges"), dropped, unfinished, taking->reason);
}

int icap_record(struct icap_choices *options) {
    struct taking taking = {.options = options};
    const char *path = options->words[0];
    taking.file = icap_record_create(path);
    if (taking.file == NULL)
        return EXIT_FAILURE;
    watch_signals();
    if (!icap_record_start(&taking)) {
        fclose(taking.file);
        unlink(path);
        return EXIT_FAILURE;
    }
    bool good = fwrite(RECORDED_FILE_HEAD, 1, RECORDED_FILE_HEAD_LENGTH, taking.file) ==
                    RECORDED_FILE_HEAD_LENGTH &&
                fflush(taking.file) == 0 && icap_record_run(&taking);
    if (fclose(taking.file) != 0 && good) {
        cannot_write(options);
        good = false;
    }
    if (good)
        icap_record_tell(&taking);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
