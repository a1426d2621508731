#include "helperd/worker.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/scheduling.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NICE_MOST = 19 };

static void close_socket(struct worker *worker) {
    if (worker->fd < 0)
        return;
    loop_remove(worker->loop, &worker->event);
    close(worker->fd);
    worker->fd = -1;
}

static bool is_result(const struct worker *worker, const struct helper_packet *packet) {
    return worker->state == WORKER_BUSY && packet->message.kind == HELPER_RESULT &&
           packet->message.id == worker->job_id;
}

static enum helper_io worker_receive(struct worker *worker, struct helper_packet *packet) {
    if (!line_port_is_open(&worker->lines))
        return helper_packet_receive(worker->fd, packet);
    enum helper_io io = line_port_receive(&worker->lines, worker->fd, packet);
    packet->message.id = worker->job_id; /* if nobody has asked, the worker is not BUSY */
    return io;
}

static void worker_on_socket(struct event *event, uint32_t events) {
    struct worker *worker = CONTAINER_OF(event, struct worker, event);
    static struct helper_packet packet;
    CHECK_OBJ(worker, WORKER_MAGIC);
    (void)events;
    enum helper_io io = worker_receive(worker, &packet);
    if (io == HELPER_IO_AGAIN)
        return;
    if (io == HELPER_IO_DONE && is_result(worker, &packet))
        worker->callbacks->on_result(worker, &packet);
    else {
        if (io != HELPER_IO_CLOSED)
            log_error("helper %d sent something that is no result of its job; it is killed",
                      (int)worker->pid);
        close_socket(worker);
        worker->callbacks->on_lost(worker);
    }
    helper_packet_close_body(&packet);
}

/* ---- in the child ------------------------------------------------------------------------- */

/* Descriptor 2 of the child leads to the log through the supervisor, which adds the time and the
 * helper. */
#define complain(format, ...) dprintf(STDERR_FILENO, format "\n", __VA_ARGS__)

static void join_cgroup(const char *directory) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cgroup.procs", directory);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        complain("a helper can not join %s: %s", path, strerror(errno));
}

static void set_io_priority(int io) {
    int class = io == IO_IDLE ? IOPRIO_CLASS_IDLE : IOPRIO_CLASS_BE;
    int level = io == IO_IDLE ? 0 : io;
    if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, class << IOPRIO_CLASS_SHIFT | level) != 0)
        complain("can not set the I/O priority of a helper: %s", strerror(errno));
}

/* The kernel may group processes by session (CONFIG_SCHED_AUTOGROUP). Then the nice level counts
 * only within the session, and the session of the helper has a level of its own. A process that is
 * not root may set that only so often. */
static bool set_group_nice(pid_t pid, const struct helper_terms *terms) {
    char path[64], text[16];
    int nice = terms->scheduler == SCHED_IDLE ? NICE_MOST : terms->nice;
    snprintf(path, sizeof path, "/proc/%d/autogroup", (int)pid);
    int length = snprintf(text, sizeof text, "%d", nice);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd < 0 ? errno == ENOENT : write(fd, text, (size_t)length) == length;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return done;
}

static void worker_join_group(const struct helper_terms *terms) {
    enum { TRIES = 20 };
    const struct timespec pause = {.tv_nsec = 25000000};
    if (terms->nice == 0 && terms->scheduler != SCHED_IDLE)
        return;
    for (int i = 0; i < TRIES; i++) {
        if (set_group_nice(getpid(), terms))
            return;
        if (errno != EAGAIN)
            break;
        nanosleep(&pause, NULL);
    }
    complain("can not set the nice level of a helper's session: %s; other sessions may run slower "
             "than they should",
             strerror(errno));
}

static bool is_nice(const struct helper_terms *terms) {
    return terms->nice > 0 || terms->scheduler != SCHED_OTHER;
}

static void accept_terms(const struct helper_terms *terms) {
    struct sched_param none = {0};
    struct rlimit memory = {terms->memory, terms->memory};
    if (terms->cgroup != NULL)
        join_cgroup(terms->cgroup);
    scheduling_take_long_slices(0, is_nice(terms));
    if (terms->scheduler != SCHED_OTHER && sched_setscheduler(0, terms->scheduler, &none) != 0)
        complain("can not set the scheduler of a helper: %s", strerror(errno));
    if (setpriority(PRIO_PROCESS, 0, terms->nice) != 0)
        complain("can not run a helper at nice %d: %s; retort-helperd needs to be root for less "
                 "than its own",
                 terms->nice, strerror(errno));
    worker_join_group(terms);
    if (terms->io != IO_AS_NICE)
        set_io_priority(terms->io);
    if (terms->memory > 0 && setrlimit(RLIMIT_AS, &memory) != 0)
        complain("can not limit the memory of a helper: %s", strerror(errno));
    if (terms->protocol != POOL_JOBS && setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) != 0)
        complain("a crash of a helper may write a password into a core file: %s", strerror(errno));
}

/* Nothing of the supervisor may stay in the helper. */
static _Noreturn void become_helper(int socket, int output, char *const *command,
                                    const struct helper_terms *terms) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signals_ignore_harmless(); /* of those that the supervisor waits for as well */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    setsid();
    dup2(output, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    accept_terms(terms);
    dup2(socket, STDIN_FILENO);
    if (terms->protocol != POOL_JOBS)
        dup2(socket, STDOUT_FILENO);
    close_range(3, UINT_MAX, 0);
    execv(command[0], command);
    complain("can not execute %s: %s", command[0], strerror(errno));
    _exit(127);
}

/* ---- in the supervisor -------------------------------------------------------------------- */

bool worker_start(struct worker *worker, char *const *command, const struct helper_terms *terms) {
    int ends[2];
    int type = terms->protocol == POOL_JOBS ? SOCK_SEQPACKET : SOCK_STREAM;
    CHECK_OBJ(worker, WORKER_MAGIC);
    ASSERT(worker->state == WORKER_DOWN);
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    int output = output_open(&worker->output);
    pid_t pid = output < 0 ? -1 : fork();
    if (pid == 0)
        become_helper(ends[1], output, command, terms);
    int error = errno;
    close(ends[1]);
    if (output >= 0)
        close(output);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (pid < 0 || !loop_add(worker->loop, &worker->event, ends[0], EPOLLIN, worker_on_socket)) {
        close(ends[0]);
        output_close(&worker->output);
        errno = error;
        return false;
    }
    output_begin(&worker->output, pid);
    line_port_begin(&worker->lines, terms);
    worker->pid = pid;
    worker->fd = ends[0];
    worker->state = WORKER_IDLE;
    worker->started = worker->loop->now;
    worker->served = 0;
    worker->replace = worker->retired = worker->overdue = false;
    return true;
}

uint64_t worker_cpu(const struct worker *worker) {
    clockid_t clock;
    struct timespec used;
    if (worker->pid <= 0 || clock_getcpuclockid(worker->pid, &clock) != 0 ||
        clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

/* The limit begins at what the process has used so far. It is in whole seconds, since the kernel
 * counts these. */
static void limit_cpu(const struct worker *worker, uint64_t milliseconds) {
    struct rlimit limit;
    if (prlimit(worker->pid, RLIMIT_CPU, NULL, &limit) != 0)
        return;
    limit.rlim_cur = (worker_cpu(worker) + milliseconds + 999) / 1000;
    if (limit.rlim_cur < limit.rlim_max)
        prlimit(worker->pid, RLIMIT_CPU, &limit, NULL);
}

bool worker_give(struct worker *worker, const struct helper_packet *packet, uint64_t cpu) {
    ASSERT(worker->state == WORKER_IDLE);
    if (cpu > 0)
        limit_cpu(worker, cpu);
    bool sent = line_port_is_open(&worker->lines)
                    ? line_port_send(&worker->lines, worker->fd, packet)
                    : helper_packet_send(worker->fd, packet) == HELPER_IO_DONE;
    if (!sent)
        return false;
    worker->state = WORKER_BUSY;
    worker->job_id = packet->message.id;
    return true;
}

bool worker_renice(const struct worker *worker, const struct helper_terms *terms) {
    bool done = setpriority(PRIO_PGRP, (id_t)worker->pid, terms->nice) == 0 &&
                set_group_nice(worker->pid, terms);
    scheduling_take_long_slices(worker->pid, is_nice(terms));
    return done;
}

void worker_retire(struct worker *worker, uint64_t milliseconds) {
    close_socket(worker);
    worker->state = WORKER_LEAVING;
    worker->retired = true;
    loop_timer_after(worker->loop, &worker->timer, milliseconds);
}

void worker_kill(struct worker *worker) {
    close_socket(worker);
    worker->state = WORKER_LEAVING;
    kill(-worker->pid, SIGKILL);
    kill(worker->pid, SIGKILL); /* should its group not exist yet */
}

void worker_exited(struct worker *worker, int wait_status, uint64_t cpu) {
    static struct helper_packet packet;
    CHECK_OBJ(worker, WORKER_MAGIC);
    worker->ended_cpu = cpu;
    kill(-worker->pid, SIGKILL); /* programs it left behind */
    packet.body = -1;
    bool answered = worker->fd >= 0 && worker_receive(worker, &packet) == HELPER_IO_DONE &&
                    is_result(worker, &packet);
    close_socket(worker);
    output_finish(&worker->output);
    worker->state = WORKER_DOWN;
    worker->pid = 0;
    timer_cancel(&worker->loop->timers, &worker->timer);
    worker->callbacks->on_exit(worker, wait_status, answered ? &packet : NULL);
    helper_packet_close_body(&packet);
}

const char *worker_state_text(enum worker_state state) {
    static const char *const texts[] = {"down", "idle", "busy", "leaving"};
    return texts[state];
}
