/*
 * retort-service: runs a module of a service for the proxy, in a process of its own (`runs = process`).
 * The proxy starts it, and gives it all that it needs by the socket PROCESS_SOCKET.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/scheduling.h"
#include "base/signals.h"
#include "base/threads.h"
#include "base/version.h"
#include "runner/process.h"
#include "runner/runner.h"
#include "service/module.h"
#include "service/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The order of the descriptors. */
enum { FD_BOARD, FD_WISH, FD_EVENT, FD_WORKERS };

struct process {
    int *fds;
    int event_fd; /* of these: the thread that watches the proxy outlives them */
    unsigned fd_count, counter_count;
    char *wish;
    const char *module;
    unsigned nice, workers;
    struct service_setting *settings;
    struct service_configuration configuration;
    struct board *board;
    struct service_host host;
    struct service_start start;
    const struct service_ops *ops;
    _Atomic bool stopping;
};

/* To the proxy */

static void main_say(char kind, const char *bytes, size_t length, int flags) {
    char message[PROCESS_MESSAGE];
    if (length > sizeof message - 1)
        length = sizeof message - 1;
    message[0] = kind;
    if (length > 0)
        memcpy(message + 1, bytes, length);
    ssize_t sent = send(PROCESS_SOCKET, message, length + 1, flags | MSG_NOSIGNAL);
    (void)sent; /* lines of the log may be lost when there are too many */
}

_Noreturn static void refuse(const char *sentence) {
    main_say(PROCESS_ERROR, sentence, strlen(sentence), 0);
    _exit(1);
}

static void host_log(void *context, enum log_level level, const char *text) {
    char line[1024];
    (void)context;
    int length = snprintf(line, sizeof line, "%d%s", (int)level < 0 ? 2 : (int)level, text);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    main_say(PROCESS_LOG, line, (size_t)length, MSG_DONTWAIT);
}

static void host_count(void *context, unsigned counter) {
    struct process *process = context;
    if (counter >= process->counter_count) {
        host_log(context, LOG_LEVEL_WARN,
                 "it counts an event that has no name; please report this bug of the service");
        return;
    }
    atomic_fetch_add_explicit(&process->board->counts[counter], 1, memory_order_relaxed);
}

static void say_ready(const struct process *process) {
    const struct service_ops *ops = process->ops;
    struct words words = {0};
    unsigned counters = process->counter_count;
    words_add_number(&words, process->host.fingerprint);
    words_add_number(&words, ops->points);
    words_add_number(&words, ops->preview_size);
    words_add_number(&words, ops->wants_client_ip);
    words_add_number(&words, process->host.answers_within);
    words_add_number(&words, service_has_events(ops));
    words_add(&words, ops->name);
    words_add(&words, ops->description);
    words_add(&words, process->host.notice);
    words_add_number(&words, counters);
    for (unsigned i = 0; i < counters; i++)
        words_add(&words, ops->counters[i]);
    main_say(PROCESS_READY, words.bytes, words.length, 0);
    words_release(&words);
}

/* From the proxy */

static void main_take_fds(struct process *process, struct msghdr *message) {
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        unsigned count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        process->fds = xrealloc(process->fds, (process->fd_count + count) * sizeof *process->fds);
        memcpy(process->fds + process->fd_count, CMSG_DATA(header), count * sizeof(int));
        process->fd_count += count;
    }
}

static void receive_fds(struct process *process) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(PROCESS_DESCRIPTORS * sizeof(int))];
    } control;
    char byte;
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (recvmsg(PROCESS_SOCKET, &message, MSG_CMSG_CLOEXEC) <= 0)
        _exit(1); /* the proxy is gone */
    main_take_fds(process, &message);
}

static const char *main_next_word(struct words_reader *reader) {
    const char *word = words_next(reader);
    return word != NULL ? word : "";
}

static void read_settings(struct process *process, struct words_reader *reader) {
    size_t count = (size_t)words_next_number(reader);
    if (count > reader->left)
        refuse("the proxy sent no list of settings");
    process->settings = xcalloc(count + 1, sizeof *process->settings);
    for (size_t i = 0; i < count; i++) {
        process->settings[i].name = slice_from(main_next_word(reader));
        process->settings[i].value = slice_from(main_next_word(reader));
        process->settings[i].where = main_next_word(reader);
    }
    process->configuration.settings = process->settings;
    process->configuration.setting_count = count;
}

static void read_wish(struct process *process) {
    struct stat status;
    if (fstat(process->fds[FD_WISH], &status) != 0 || status.st_size > PROCESS_WISH)
        refuse("the proxy sent no wish");
    size_t length = (size_t)status.st_size;
    process->wish = xcalloc(1, length + 1);
    if (pread(process->fds[FD_WISH], process->wish, length, 0) != (ssize_t)length)
        refuse("the wish of the proxy can't be read");
    close(process->fds[FD_WISH]);
    struct words_reader reader = {process->wish, length, false};
    process->configuration.name = main_next_word(&reader);
    process->configuration.where = main_next_word(&reader);
    process->module = main_next_word(&reader);
    const char *helpers = main_next_word(&reader);
    process->configuration.helpers = helpers[0] != '\0' ? helpers : NULL;
    process->nice = (unsigned)words_next_number(&reader);
    process->workers = (unsigned)words_next_number(&reader);
    read_settings(process, &reader);
    if (reader.bad || process->workers == 0 || process->workers > PROCESS_WORKERS)
        refuse("the wish of the proxy makes no sense: its version is another one; restart it");
}

static void map_board(struct process *process) {
    void *memory = mmap(NULL, board_size(process->workers), PROT_READ | PROT_WRITE, MAP_SHARED,
                        process->fds[FD_BOARD], 0);
    if (memory == MAP_FAILED)
        refuse("the memory that it shares with the proxy can't be mapped");
    close(process->fds[FD_BOARD]);
    process->board = memory;
}

/* The proxy wants it to end, or is gone. Its service may hang: then nobody else would end it. */
static void watch_proxy(void *arg) {
    struct process *process = arg;
    const struct timespec grace = {.tv_sec = PROCESS_GRACE};
    char byte;
    while (recv(PROCESS_SOCKET, &byte, 1, 0) < 0 && errno == EINTR)
        continue;
    atomic_store(&process->stopping, true);
    link_wake(process->event_fd);
    nanosleep(&grace, NULL);
    _exit(1);
}

static void main_prepare(struct process *process) {
    receive_fds(process);
    if (process->fd_count < FD_WORKERS)
        refuse("the proxy sent too few descriptors");
    read_wish(process);
    while (process->fd_count < FD_WORKERS + process->workers)
        receive_fds(process);
    map_board(process);
    process->event_fd = process->fds[FD_EVENT];
    if (!thread_start_alone(watch_proxy, process, "rt-watch"))
        refuse("its thread can't be started");
    if (process->nice > 0)
        setpriority(PRIO_PROCESS, 0, (int)process->nice);
    scheduling_take_long_slices(0, process->nice > 0);
}

/* The service */

static void start(struct process *process) {
    char why[SERVICE_MODULE_ERROR], error[SERVICE_START_ERROR];
    const struct service_configuration *configuration = &process->configuration;
    process->host = (struct service_host){
        .context = process,
        .log = host_log,
        .count = host_count,
        .fingerprint = SERVICE_FINGERPRINT_SEED,
    };
    process->ops = service_module_load(process->module, why);
    if (process->ops == NULL) {
        snprintf(error, sizeof error, "%s: service %s: %s", configuration->where,
                 configuration->name, why);
        refuse(error);
    }
    while (process->ops->counters != NULL && process->ops->counters[process->counter_count] != NULL)
        process->counter_count++;
    service_module_mix_build(&process->host.fingerprint, process->ops);
    if (!service_start(&process->start, process->ops, configuration, &process->host, error))
        refuse(error);
}

static void run(struct process *process) {
    struct runner runner;
    const struct runner_task task = {
        .ops = process->ops,
        .service = process->start.service,
        .host = &process->host,
        .board = process->board,
        .workers = process->workers,
        .event_fd = process->event_fd,
        .worker_fds = process->fds + FD_WORKERS,
        .stopping = &process->stopping,
        .owns_process = true,
    };
    if (!runner_init(&runner, &task))
        refuse("there are no descriptors left for its loop");
    say_ready(process);
    runner_run(&runner);
    runner_release(&runner);
    service_stop(&process->start, process->ops);
}

static const char usage[] =
    "usage: retort-service\n"
    "\n"
    "The proxy starts this program itself, for services with \"runs = process\"; "
    "see retort.conf(5).\n"
    "--help prints this, --version the version.\n";

/* Called by a person. Returns the exit status. */
static int answer_person(int argc, char **argv) {
    const char *option = argc == 2 ? argv[1] : "";
    if (strcmp(option, "--version") == 0 || strcmp(option, "-V") == 0) {
        version_print("retort-service", NULL);
        return 0;
    }
    bool asked = strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0;
    fputs(usage, asked ? stdout : stderr);
    return asked ? 0 : 2;
}

int main(int argc, char **argv) {
    static struct process process;
    struct stat status;
    if (argc > 1 || fstat(PROCESS_SOCKET, &status) != 0 || !S_ISSOCK(status.st_mode))
        return answer_person(argc, argv);
    fcntl(PROCESS_SOCKET, F_SETFD,
          FD_CLOEXEC); /* programs that the service starts do not have it */
    log_open(STDERR_FILENO, "retort-service", LOG_LEVEL_INFO);
    signals_ignore_harmless();
    main_prepare(&process);
    start(&process);
    run(&process);
    munmap(process.board, board_size(process.workers));
    free(process.settings);
    free(process.wish);
    free(process.fds);
    return 0;
}
