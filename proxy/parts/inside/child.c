#include "inside/child.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/threads.h"
#include "runner/link.h"
#include "runner/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAUSE_MIN = 1000, /* milliseconds before a process is started again */
    PAUSE_MAX = 60000,
    LOOK_EVERY = 500, /* milliseconds between two looks at the signs of life */
};

/* What inside_children_start waits for. */
struct child_start {
    pthread_mutex_t lock;
    pthread_cond_t said;
    unsigned waiting;
    unsigned references;
    bool failed, complete;
    char error[SERVICE_START_ERROR];
    struct inside_event_calls told;
};

struct inside_child {
    unsigned magic;
#define INSIDE_CHILD_MAGIC 0x1451dec1u
    struct inside_runner *runner;
    struct child_start *start; /* NULL: its first word is there */
    struct inside_children host;
    struct words wish;
    uint64_t start_timeout, hang_timeout; /* milliseconds */
    char name[128];                       /* of the section */
    struct inside_event_calls told;       /* the first; name empty: there is none yet */
    /* The present run */
    struct inside_run *run; /* NULL: none */
    pid_t pid;
    int socket;
    int pid_fd;       /* readable when it has ended: others may have its socket; -1: none */
    uint64_t started; /* milliseconds of CLOCK_MONOTONIC */
    uint64_t pause;   /* before the next one is started */
    uint64_t asked, asked_at, asked_number;
    char reason[SERVICE_START_ERROR]; /* why it was ended; empty: it ended by itself */
    bool own_words;                   /* its process said that */
    bool ready;                       /* its process has said what its module is */
};

static bool is_stopping(const struct inside_child *child) {
    return atomic_load(&child->runner->runners->stopping);
}

static void child_note(struct inside_child *child, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void child_note(struct inside_child *child, const char *format, ...) {
    va_list arguments;
    if (child->reason[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(child->reason, sizeof child->reason, format, arguments);
    va_end(arguments);
}

/* Starting a process */

static int wish_memory(const struct words *wish) {
    int fd = memfd_create("retort-wish", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, wish->bytes, wish->length) == (ssize_t)wish->length)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool send_fds(int socket, const int *fds, unsigned count) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(PROCESS_DESCRIPTORS * sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 'D';
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static bool child_send_fds(struct inside_child *child) {
    const struct inside_run *run = child->run;
    int wish = wish_memory(&child->wish);
    const int first[] = {run->memory_fd, wish, run->event_fd};
    bool sent = wish >= 0 && send_fds(child->socket, first, 3);
    for (unsigned i = 0; sent && i < run->workers; i += PROCESS_DESCRIPTORS) {
        unsigned left = run->workers - i;
        sent = send_fds(child->socket, run->worker_fds + i,
                        left < PROCESS_DESCRIPTORS ? left : PROCESS_DESCRIPTORS);
    }
    if (wish >= 0)
        close(wish);
    return sent;
}

/* The process has the socket, and no other descriptor of the proxy. */
static int child_own_spawn(pid_t *pid, int socket) {
    const char *program = getenv("RETORT_SERVICE_PROGRAM");
    char path[4096];
    snprintf(path, sizeof path, "%s", program != NULL ? program : SERVICE_PROGRAM);
    char *const arguments[] = {path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, socket, PROCESS_SOCKET);
    posix_spawn_file_actions_addclosefrom_np(&actions, PROCESS_SOCKET + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(pid, path, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool child_spawn(struct inside_child *child) {
    int sockets[2];
    struct inside_runner *runner = child->runner;
    child->reason[0] = '\0';
    child->own_words = child->ready = false;
    child->started = clocks_milliseconds(CLOCK_MONOTONIC);
    child->asked = 0;
    child->run = inside_run_new(runner->runners->workers, true, runner->watcher_fd);
    if (child->run == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        child_note(child, "its memory or its sockets can't be made: %s", strerror(errno));
        return false;
    }
    int error = child_own_spawn(&child->pid, sockets[1]);
    close(sockets[1]);
    child->socket = sockets[0];
    if (error != 0) {
        child->pid = 0;
        child_note(child, "its process can't be started: %s: %s%s", SERVICE_PROGRAM,
                   strerror(error),
                   error == ENOENT ? "; the program is a part of Retort: install it there" : "");
        return false;
    }
    child->pid_fd = pidfd_open(child->pid, 0);
    if (child_send_fds(child))
        return true;
    child_note(child, "its process can't be told what to run: %s", strerror(errno));
    return false;
}

/* What it says */

static void child_log(struct inside_child *child, const char *bytes, size_t length) {
    char line[1024];
    if (length < 1 || bytes[0] < '0' || bytes[0] > '3')
        return;
    snprintf(line, sizeof line, "%.*s", (int)(length - 1), bytes + 1);
    child->host.log(child->host.owner, (enum log_level)(bytes[0] - '0'), line);
}

/* 0: nothing now. -1: it has closed the socket, or gone. */
static ssize_t child_receive(struct inside_child *child, char message[PROCESS_MESSAGE]) {
    ssize_t got = recv(child->socket, message, PROCESS_MESSAGE, MSG_DONTWAIT);
    if (got > 0)
        return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* After a restart it has to be the same module. */
static bool is_the_same(const struct inside_event_calls *told,
                        const struct inside_event_calls *before) {
    bool same = told->points == before->points && told->preview_size == before->preview_size &&
                told->wants_client_ip == before->wants_client_ip &&
                told->counter_count == before->counter_count &&
                strcmp(told->name, before->name) == 0;
    for (unsigned i = 0; same && i < told->counter_count; i++)
        same = strcmp(told->counters[i], before->counters[i]) == 0;
    return same;
}

static bool child_take_ready(struct inside_child *child, const char *bytes, size_t length) {
    struct inside_event_calls told;
    if (!inside_event_calls_read(&told, bytes, length)) {
        child_note(child, "its process said something else than what its module is");
        return false;
    }
    if (child->told.name[0] != '\0' && !is_the_same(&told, &child->told)) {
        child_note(child, "its module has become another one; reload the configuration");
        return false;
    }
    child->ready = true;
    child->told = told;
    child->run->fingerprint = told.fingerprint;
    child->host.told(child->host.owner, &told);
    return true;
}

enum child_word { WORD_NONE, WORD_LINE, WORD_READY, WORD_GONE };

/* Ready twice is a lie: workers read meanwhile what the first one has set. */
static enum child_word child_hear(struct inside_child *child) {
    char message[PROCESS_MESSAGE];
    ssize_t got = child_receive(child, message);
    if (got <= 0)
        return got < 0 ? WORD_GONE : WORD_NONE;
    if (message[0] == PROCESS_LOG) {
        child_log(child, message + 1, (size_t)got - 1);
        return WORD_LINE;
    }
    if (message[0] == PROCESS_READY && !child->ready)
        return child_take_ready(child, message + 1, (size_t)got - 1) ? WORD_READY : WORD_GONE;
    child->own_words = message[0] == PROCESS_ERROR;
    if (child->own_words)
        child_note(child, "%.*s", (int)got - 1, message + 1);
    else
        child_note(child, "its process said what no process of it says");
    return WORD_GONE;
}

/* It has ended: what it said before that, which is no more than its socket holds. A process that it has left
 * behind may say more. */
static enum child_word child_hear_last(struct inside_child *child) {
    enum { WORDS = 1024 };
    enum child_word word = WORD_LINE;
    for (unsigned i = 0; word == WORD_LINE && i < WORDS; i++)
        word = child_hear(child);
    return word == WORD_READY ? WORD_READY : WORD_GONE;
}

static void child_quiet_watcher(const struct inside_child *child) {
    uint64_t count;
    ssize_t got = read(child->runner->watcher_fd, &count, sizeof count);
    (void)got;
}

static bool child_is_abandoned(struct inside_child *child) {
    if (child->start == NULL || !inside_starts_abandoned())
        return false;
    child_note(child, "retort is stopping");
    return true;
}

/* Waits so many milliseconds for a word of it, its end, or whoever wakes its watcher. */
static enum child_word child_listen(struct inside_child *child, int milliseconds) {
    struct pollfd polls[] = {{child->socket, POLLIN, 0},
                             {child->runner->watcher_fd, POLLIN, 0},
                             {child->pid_fd, POLLIN, 0}};
    poll(polls, 3, milliseconds);
    if (polls[1].revents != 0)
        child_quiet_watcher(child);
    if (polls[2].revents != 0)
        return child_hear_last(child);
    enum child_word word = polls[0].revents != 0 ? child_hear(child) : WORD_NONE;
    return word == WORD_LINE ? WORD_NONE : word;
}

/* True: it runs. */
static bool child_await_ready(struct inside_child *child) {
    uint64_t until = child->started + child->start_timeout;
    enum child_word word = WORD_NONE;
    while (word == WORD_NONE) {
        uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
        if (now >= until) {
            child_note(child, "its module did not start within start_timeout (%llu ms)",
                       (unsigned long long)child->start_timeout);
            return false;
        }
        word = child_listen(child, (int)(until - now < LOOK_EVERY ? until - now : LOOK_EVERY));
        if (is_stopping(child) || child_is_abandoned(child))
            return false;
    }
    return word == WORD_READY;
}

static bool child_is_in_vain(struct inside_child *child) {
    pthread_mutex_lock(&child->start->lock);
    bool failed = child->start->failed;
    pthread_mutex_unlock(&child->start->lock);
    return failed || is_stopping(child) || child_is_abandoned(child);
}

/* Before the time of its first start begins. */
static bool child_await_turn(struct inside_child *child) {
    const struct timespec pause = {.tv_nsec = 5000000};
    while (!child_is_in_vain(child)) {
        if (inside_start_take_turn())
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* True: it runs. */
static bool child_begin(struct inside_child *child) {
    bool first = child->start != NULL;
    if (first && !child_await_turn(child))
        return false;
    bool runs = child_spawn(child) && child_await_ready(child);
    if (first)
        inside_start_end_turn();
    return runs;
}

/* Watching over it */

/* Does it look at its memory? False: it has not for too long. */
static bool child_shows_life(struct inside_child *child) {
    struct board *board = child->run->board;
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    if (child->asked != 0 && atomic_load(&board->answered) == child->asked)
        child->asked = 0;
    if (child->asked != 0 && now - child->asked_at >= child->hang_timeout) {
        child_note(child, "it has not answered for hang_timeout (%llu ms)",
                   (unsigned long long)child->hang_timeout);
        inside_runner_hung(child->runner);
        return false;
    }
    if (child->asked == 0 && atomic_load(&child->run->under_way) > 0) {
        child->asked = ++child->asked_number;
        child->asked_at = now;
        atomic_store(&board->asked, child->asked);
        link_wake(child->run->event_fd);
    }
    return true;
}

/* False: it is to end, or has ended. */
static bool child_look(struct inside_child *child) {
    enum child_word word = child_listen(child, LOOK_EVERY);
    const char *broken = atomic_load(&child->run->broken);
    if (broken != NULL)
        child_note(child, "%s", broken);
    return word == WORD_NONE && broken == NULL && !is_stopping(child) && child_shows_life(child);
}

static void child_watch(struct inside_child *child) {
    struct inside_run *run = inside_run_reference(child->run);
    inside_runner_set(child->runner, &run, child->pid, NULL);
    if (child->runner->starts > 1)
        log_info("service %s: its process %d runs, after %llu that ended", child->name,
                 (int)child->pid, (unsigned long long)child->runner->starts - 1);
    while (child_look(child))
        continue;
}

/* Ending it */

static bool child_ended(struct inside_child *child, int *status, unsigned milliseconds) {
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t until = clocks_milliseconds(CLOCK_MONOTONIC) + milliseconds;
    for (;;) {
        pid_t ended = waitpid(child->pid, status, WNOHANG);
        if (ended == child->pid || (ended < 0 && errno != EINTR))
            return true;
        if (clocks_milliseconds(CLOCK_MONOTONIC) >= until)
            return false;
        nanosleep(&pause, NULL);
    }
}

static void child_say_why(struct inside_child *child, int status) {
    if (WIFSIGNALED(status))
        child_note(child, "its process %d was ended by signal %d (%s)", (int)child->pid,
                   WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        child_note(child, "its process %d ended with status %d", (int)child->pid,
                   WEXITSTATUS(status));
}

static void child_reap(struct inside_child *child) {
    /* Who stops has time for the functions of its service, and who has gone is gone soon. */
    unsigned patience = child->reason[0] != '\0' ? 0 : PROCESS_GRACE * 1000;
    int status = 0;
    if (child->pid == 0)
        return;
    shutdown(child->socket, SHUT_RDWR);
    if (!child_ended(child, &status, patience)) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, &status, 0);
    }
    child_say_why(child, status);
    child->pid = 0;
}

static void child_keep_counts(struct inside_child *child) {
    uint64_t counts[SERVICE_MODULE_COUNTERS];
    for (unsigned i = 0; i < SERVICE_MODULE_COUNTERS; i++)
        counts[i] = atomic_load(&child->run->board->counts[i]);
    child->host.counted(child->host.owner, counts);
}

static void child_end(struct inside_child *child) {
    struct inside_run *none = NULL;
    child_reap(child);
    if (child->socket >= 0)
        close(child->socket);
    if (child->pid_fd >= 0)
        close(child->pid_fd);
    child->socket = child->pid_fd = -1;
    if (child->run == NULL)
        return;
    inside_run_end(child->run);
    inside_runner_set(child->runner, &none, 0, child->reason);
    child_keep_counts(child);
    inside_run_release(&child->run);
}

/* Its life */

static void start_release(struct child_start *start) {
    pthread_mutex_lock(&start->lock);
    bool last = --start->references == 0;
    pthread_mutex_unlock(&start->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&start->lock);
    pthread_cond_destroy(&start->said);
    free(start);
}

/* Its first word: it runs, or why it does not. */
static void child_say_first(struct inside_child *child, bool runs) {
    struct child_start *start = child->start;
    if (start == NULL)
        return;
    child->start = NULL;
    pthread_mutex_lock(&start->lock);
    start->waiting--;
    if (runs) {
        start->told = child->told;
    } else if (!start->failed) {
        memcpy(start->error, child->reason, sizeof start->error);
        start->complete = child->own_words;
    }
    start->failed |= !runs;
    pthread_cond_broadcast(&start->said);
    pthread_mutex_unlock(&start->lock);
    start_release(start);
}

/* False: it is to end. */
static bool child_pause(struct inside_child *child) {
    uint64_t until = clocks_milliseconds(CLOCK_MONOTONIC) + child->pause;
    inside_runner_pauses(child->runner, until);
    for (;;) {
        uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
        struct pollfd watcher = {child->runner->watcher_fd, POLLIN, 0};
        if (is_stopping(child))
            return false;
        if (now >= until)
            return true;
        if (poll(&watcher, 1, (int)(until - now)) > 0)
            child_quiet_watcher(child);
    }
}

/* True: it ran. */
static bool child_run_once(struct inside_child *child) {
    bool runs = child_begin(child);
    if (runs) {
        child_say_first(child, true);
        child_watch(child);
        if (clocks_milliseconds(CLOCK_MONOTONIC) - child->started >= PAUSE_MAX)
            child->pause = PAUSE_MIN;
    }
    /* Who sees that it is down sees when it is started again. */
    inside_runner_pauses(child->runner, clocks_milliseconds(CLOCK_MONOTONIC) + child->pause);
    child_end(child);
    return runs;
}

static void child_free(struct inside_child *child) {
    words_release(&child->wish);
    FREE_OBJ(child);
}

static void child_main(void *arg) {
    struct inside_child *child;
    CAST_OBJ(child, arg, INSIDE_CHILD_MAGIC);
    struct inside_runner *runner = child->runner;
    child->pause = PAUSE_MIN;
    for (;;) {
        bool ran = child_run_once(child);
        if (!ran && child->start != NULL) {
            child_say_first(child, false);
            break;
        }
        if (is_stopping(child))
            break;
        log_error("service %s: %s; it is started again in %llu s", child->name, child->reason,
                  (unsigned long long)child->pause / 1000);
        if (!child_pause(child))
            break;
        child->pause = backoff_next(child->pause, PAUSE_MAX);
    }
    child_free(child);
    inside_runner_ended(runner);
}

/* All of an instance */

static struct words write_wish(const struct service_settings *settings, unsigned workers) {
    struct words wish = {0};
    words_add(&wish, settings->name);
    words_add(&wish, settings->where);
    words_add(&wish, settings->module);
    words_add(&wish, settings->helpers != NULL ? settings->helpers : "");
    words_add_number(&wish, settings->nice);
    words_add_number(&wish, workers);
    words_add_number(&wish, settings->setting_count);
    for (size_t i = 0; i < settings->setting_count; i++) {
        const struct module_setting *setting = &settings->settings[i];
        words_add_bytes(&wish, setting->name.base, setting->name.length);
        words_add_bytes(&wish, setting->value.base, setting->value.length);
        words_add(&wish, setting->where);
    }
    return wish;
}

static struct inside_child *child_new(struct inside_runner *runner, struct child_start *start,
                                      const struct inside_children *children) {
    const struct service_settings *settings = children->settings;
    struct inside_child *child;
    ALLOC_OBJ(child, INSIDE_CHILD_MAGIC);
    child->runner = runner;
    child->start = start;
    child->host = *children;
    child->host.settings = NULL;
    child->socket = child->pid_fd = -1;
    child->wish = write_wish(settings, runner->runners->workers);
    child->start_timeout = settings->start_timeout;
    child->hang_timeout = settings->hang_timeout;
    snprintf(child->name, sizeof child->name, "%s", settings->name);
    return child;
}

static struct child_start *start_new(unsigned count) {
    struct child_start *start = xcalloc(1, sizeof *start);
    pthread_mutex_init(&start->lock, NULL);
    pthread_cond_init(&start->said, NULL);
    start->waiting = count;
    start->references = count + 1;
    return start;
}

static void begin_child(struct inside_runner *runner, struct child_start *start,
                        const struct inside_children *children) {
    struct inside_child *child = child_new(runner, start, children);
    inside_runner_begun(runner);
    if (thread_start_alone(child_main, child, "rt-watch-%s", child->name))
        return;
    child_note(child, "the thread that watches over its process can't be started");
    child_say_first(child, false);
    child_free(child);
    inside_runner_ended(runner);
}

bool inside_children_start(struct inside_runners *runners, const struct inside_children *children,
                           struct inside_event_calls *told, char error[SERVICE_START_ERROR],
                           bool *complete) {
    struct child_start *start = start_new(runners->count);
    for (unsigned i = 0; i < runners->count; i++)
        begin_child(&runners->runners[i], start, children);
    pthread_mutex_lock(&start->lock);
    while (start->waiting > 0)
        pthread_cond_wait(&start->said, &start->lock);
    bool good = !start->failed;
    *told = start->told;
    memcpy(error, start->error, SERVICE_START_ERROR);
    *complete = start->complete;
    pthread_mutex_unlock(&start->lock);
    start_release(start);
    return good;
}
