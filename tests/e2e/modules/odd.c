/*
 * odd: a service that does what its setting Do says, mostly what no service should do. For the end-to-end tests of services
 * inside the proxy (test_inside.py).
 *
 *     service odd { module = ".../odd.so"  settings = { Do = shout } }
 */
#include "base/assert.h"
#include "base/spool.h"
#include "service/adapted_head.h"
#include "service/service.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ODD_ROOM = 64 * 1024, ODD_DEEP = 1 << 20 };

#ifndef ODD_CODE
#define ODD_CODE "" /* behind the word, so that it shows which code runs */
#endif

struct odd_settings {
    char *does, *word;
    bool tells;
    uint64_t lifetime;
    struct service_host *host;
};

static const struct service_option odd_options[] = {
    {"Do", SERVICE_OPTION_TEXT, offsetof(struct odd_settings, does), "shout", 0, 0, NULL,
     "what it does"},
    {"Word", SERVICE_OPTION_TEXT, offsetof(struct odd_settings, word), "1", 0, 0, NULL,
     "the value of X-Odd"},
    {"Lifetime", SERVICE_OPTION_NUMBER, offsetof(struct odd_settings, lifetime), "0", 0, 3600, NULL,
     "seconds that its verdict on a request may be used again"},
    {"Tell", SERVICE_OPTION_SWITCH, offsetof(struct odd_settings, tells), "off", 0, 0, NULL,
     "it logs that it starts and stops"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL}};

enum { ODD_SEEN };
static const char *const odd_counters[] = {[ODD_SEEN] = "SEEN", NULL};

struct odd {
    unsigned magic;
#define ODD_MAGIC 0x6f646421u
    struct service_exchange *exchange;
    const struct odd_settings *settings;
    struct http_head answer;
    struct spool body;
    int pipe[2]; /* -1: none */
    size_t taken, given;
    bool finished, ready;
    char decision; /* of "scan": what the test has written; 0: nothing yet */
};

static bool does(const struct odd *odd, const char *what) {
    return strcmp(odd->settings->does, what) == 0;
}

/* The rest does what a process is for: it ends, hangs, or writes where it has no right to. */

static _Noreturn void crash(void) {
    signal(SIGSEGV, SIG_DFL); /* without the report of a sanitizer */
    raise(SIGSEGV);
    abort();
}

/* Writes over the memory that it shares with the proxy. */
static void scribble(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end;
        if (strstr(line, "memfd:retort-service") != NULL &&
            sscanf(line, "%lx-%lx rw", &begin, &end) == 2)
            memset((void *)begin, 0xa5, end - begin);
    }
    if (maps != NULL)
        fclose(maps);
}

static void hang(void) {
    volatile bool forever = true;
    while (forever)
        usleep(1000);
}

/* Ends, and leaves a process behind that has all that it had open: until the file is gone. */
static _Noreturn void leave(const char *file) {
    if (fork() == 0) {
        while (access(file, F_OK) == 0)
            usleep(10000);
        _exit(0);
    }
    crash();
}

static void misbehave(const char *what, const char *where) {
    size_t length = strlen(where);
    if (strncmp(what, where, length) != 0 || what[length] != '-')
        return;
    what += length + 1;
    if (strcmp(what, "crash") == 0)
        crash();
    if (strcmp(what, "exit") == 0)
        _exit(3);
    if (strcmp(what, "hang") == 0)
        hang();
    if (strcmp(what, "scribble") == 0)
        scribble();
}

static void *odd_start(const void *settings, struct service_host *host, char *error,
                       size_t error_size) {
    const struct odd_settings *own = settings;
    if (strcmp(own->does, "refuse") == 0) {
        for (unsigned i = 0; own->tells && i < 200; i++)
            service_log(host, LOG_LEVEL_INFO, "it is about to refuse");
        snprintf(error, error_size, "odd.Do: it refuses");
        return NULL;
    }
    misbehave(own->does, "start");
    if (strcmp(own->does, "notice") == 0)
        snprintf(host->notice, sizeof host->notice, "it has something to say");
    if (own->tells)
        service_log(host, LOG_LEVEL_INFO, "it starts");
    ((struct odd_settings *)(uintptr_t)settings)->host = host;
    return (void *)settings;
}

static void odd_stop(void *service) {
    const struct odd_settings *settings = service;
    misbehave(settings->does, "stop");
    if (settings->tells)
        service_log(settings->host, LOG_LEVEL_INFO, "it stops");
}

/* The value of X-Odd. */
static struct slice odd_word(const struct odd *odd) {
    return arena_printf(odd->exchange->arena, "%s%s", odd->settings->word, ODD_CODE);
}

static void odd_wait(struct odd *odd, int64_t milliseconds) {
    ASSERT(pipe(odd->pipe) == 0);
    odd->exchange->wait = (struct service_wait){
        .fd = odd->pipe[0], .events = 1 /* POLLIN */, .deadline = service_now() + milliseconds};
}

/* A descriptor for which all wait that say "together"; it is readable for good as soon as there are two. Only a test does with a
 * static variable. */
static void odd_wait_together(struct odd *odd) {
    static int shared[2] = {-1, -1};
    static unsigned waiting;
    if (shared[0] < 0)
        ASSERT(pipe(shared) == 0);
    if (++waiting == 2)
        ASSERT(write(shared[1], "x", 1) == 1);
    odd->exchange->wait = (struct service_wait){
        .fd = shared[0], .events = 1 /* POLLIN */, .deadline = service_now() + 600000};
}

static void *odd_begin(void *service, struct service_exchange *exchange) {
    struct odd *odd;
    service_count(exchange->host, ODD_SEEN);
    if (strcmp(((const struct odd_settings *)service)->does, "nothing") == 0)
        return NULL;
    misbehave(((const struct odd_settings *)service)->does, "begin");
    if (strcmp(((const struct odd_settings *)service)->does, "begin-leave") == 0)
        leave(((const struct odd_settings *)service)->word);
    if (strcmp(((const struct odd_settings *)service)->does, "count") == 0)
        service_count(exchange->host, 1000);
    ALLOC_OBJ(odd, ODD_MAGIC);
    odd->exchange = exchange;
    exchange->lifetime = ((const struct odd_settings *)service)->lifetime;
    odd->settings = service;
    odd->pipe[0] = odd->pipe[1] = -1;
    spool_init(&odd->body);
    if (does(odd, "scan"))
        odd->pipe[0] = open(odd->settings->word, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return odd;
}

static void spin(unsigned milliseconds) {
    int64_t end = service_now() + milliseconds;
    while (service_now() < end)
        continue;
}

static enum service_verdict odd_answers(struct odd *odd) {
    struct service_exchange *exchange = odd->exchange;
    http_head_init(&odd->answer);
    odd->answer.version = 11;
    odd->answer.status = 403;
    odd->answer.reason = SLICE("Not here");
    http_head_add(&odd->answer, SLICE("Content-Type"), SLICE("text/plain"));
    exchange->answer = &odd->answer;
    exchange->body_length = does(odd, "answer-long") ? 5 : does(odd, "answer-short") ? 7 : 6;
    if (does(odd, "answer-other"))
        http_head_add(&odd->answer, SLICE("Content-Length"), SLICE("7"));
    if (does(odd, "answer-empty")) {
        http_head_add(&odd->answer, SLICE("Content-Length"), SLICE("0"));
        exchange->body_length = SERVICE_LENGTH_UNKNOWN;
    }
    spool_append(&odd->body, "denied", 6);
    odd->finished = true;
    return SERVICE_ADAPT;
}

/* Leaves no room for a field of anybody else. */
static void odd_crowd(struct http_head *head) {
    while (http_head_add(head, SLICE("X-Crowd"), SLICE("1")))
        continue;
}

static void odd_swell(const struct odd *odd) {
    enum { MUCH = 200 * 1024 };
    char *value = arena_alloc(odd->exchange->arena, MUCH);
    memset(value, 'x', MUCH);
    http_head_add(odd->exchange->head, SLICE("X-Swollen"), slice_make(value, MUCH));
}

static bool is_first(const struct service_exchange *exchange) {
    return memmem(exchange->request->target.base, exchange->request->target.length, "/first", 6) !=
           NULL;
}

static enum service_verdict odd_preview(void *state, struct slice body, bool complete) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    struct service_exchange *exchange = odd->exchange;
    (void)body, (void)complete;
    if (does(odd, "hold") || does(odd, "skip-late") || does(odd, "keep-late") ||
        does(odd, "hold-for-ever") || does(odd, "scan"))
        return SERVICE_HOLD;
    if (does(odd, "wait") || does(odd, "wait-for-ever")) {
        odd_wait(odd, does(odd, "wait") ? 200 : 600000);
        return SERVICE_HOLD;
    }
    if (does(odd, "together")) {
        odd_wait_together(odd);
        return SERVICE_HOLD;
    }
    if (does(odd, "wait-at-first") && is_first(exchange)) {
        odd_wait(odd, 600000);
        return SERVICE_HOLD;
    }
    if (does(odd, "slow"))
        spin(30);
    if (does(odd, "fail")) {
        service_failed(exchange, "tired");
        return SERVICE_SKIP;
    }
    if (strncmp(odd->settings->does, "answer", 6) == 0)
        return odd_answers(odd);
    if (does(odd, "bad-head"))
        http_head_add(exchange->head, SLICE("X-Odd"), SLICE("1\r\nX-Evil: 1"));
    else
        http_head_add(exchange->head, SLICE("X-Odd"), odd_word(odd));
    if (does(odd, "crowd"))
        odd_crowd(exchange->head);
    if (does(odd, "swell"))
        odd_swell(odd);
    if (does(odd, "head") || does(odd, "crowd") || does(odd, "swell"))
        exchange->keeps_body = true;
    if (does(odd, "long") || does(odd, "short"))
        exchange->body_length = 10;
    return SERVICE_ADAPT;
}

static size_t odd_push(void *state, struct slice body) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    bool deep = does(odd, "hold") || does(odd, "skip-late") || does(odd, "keep-late") ||
                does(odd, "hold-for-ever") || does(odd, "scan");
    size_t most = deep ? ODD_DEEP : ODD_ROOM;
    size_t room = odd->body.length < most ? most - odd->body.length : 0;
    size_t length = body.length < room ? body.length : room;
    char byte;
    bool kept = does(odd, "skip-late") || does(odd, "keep-late") || does(odd, "scan");
    misbehave(odd->settings->does, "push");
    if (does(odd, "greedy"))
        return body.length + 1;
    if (does(odd, "stuck"))
        return 0;
    for (size_t i = 0; i < length; i++) {
        byte = (char)toupper((unsigned char)body.base[i]);
        spool_append(&odd->body, kept ? body.base + i : &byte, 1);
    }
    odd->taken += length;
    return length;
}

static void odd_finish(void *state) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    odd->finished = true;
    if (does(odd, "scan"))
        odd->exchange->wait = (struct service_wait){
            .fd = odd->pipe[0], .events = 1 /* POLLIN */, .deadline = service_now() + 600000};
}

/* Once it has seen all, it waits for the test to write into the FIFO that Word names: c for clean, i for infected. */
static enum service_verdict odd_scanned(struct odd *odd) {
    if (odd->decision == 0)
        return SERVICE_HOLD;
    if (odd->decision == 'c')
        return SERVICE_SKIP;
    spool_release(&odd->body);
    spool_init(&odd->body);
    spool_append(&odd->body, "denied", 6);
    odd->exchange->head->status = 403;
    odd->exchange->body_length = 6;
    return SERVICE_ADAPT;
}

static enum service_verdict odd_verdict(void *state) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    if (does(odd, "hold") && odd->finished) {
        http_head_add(odd->exchange->head, SLICE("X-Odd"), odd_word(odd));
        return SERVICE_ADAPT;
    }
    if (does(odd, "skip-late") && odd->finished)
        return SERVICE_SKIP;
    if (does(odd, "keep-late") && odd->finished) {
        http_head_add(odd->exchange->head, SLICE("X-Odd"), odd_word(odd));
        odd->exchange->keeps_body = true;
        return SERVICE_ADAPT;
    }
    if (does(odd, "scan"))
        return odd_scanned(odd);
    if ((does(odd, "wait") || does(odd, "together")) && odd->ready)
        return SERVICE_ADAPT;
    return SERVICE_HOLD;
}

static enum service_flow odd_pull(void *state, char *out, size_t capacity, size_t *got) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    *got = spool_read(&odd->body, out, capacity);
    odd->given += *got;
    if ((does(odd, "abort") && odd->given >= 20000) || does(odd, "abort-at-once"))
        return SERVICE_ABORT;
    if (does(odd, "pass") && odd->given > 0 && odd->body.length == 0)
        return SERVICE_PASS;
    if (does(odd, "silent"))
        return SERVICE_FLOW;
    return odd->finished && odd->body.length == 0 ? SERVICE_DONE : SERVICE_FLOW;
}

static void odd_ready(void *state) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    odd->ready = true;
    if (does(odd, "scan") && read(odd->pipe[0], &odd->decision, 1) != 1)
        odd->decision = 'i';
    if (!does(odd, "wait-for-ever"))
        service_wait_none(odd->exchange);
}

static void odd_end(void *state) {
    struct odd *odd;
    CAST_OBJ(odd, state, ODD_MAGIC);
    for (int i = 0; i < 2; i++)
        if (odd->pipe[i] >= 0)
            close(odd->pipe[i]);
    spool_release(&odd->body);
    FREE_OBJ(odd);
}

SERVICE_DEFINE(odd) = {
    .version = SERVICE_VERSION,
    .name = "odd",
    .description = "does what tests ask for",
    .points = SERVICE_REQUEST | SERVICE_RESPONSE,
    .preview_size = 1024,
    .settings_size = sizeof(struct odd_settings),
    .options = odd_options,
    .counters = odd_counters,
    .start = odd_start,
    .stop = odd_stop,
    .begin = odd_begin,
    .preview = odd_preview,
    .push = odd_push,
    .finish = odd_finish,
    .verdict = odd_verdict,
    .pull = odd_pull,
    .ready = odd_ready,
    .end = odd_end,
};
