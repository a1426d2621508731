#include "helpers/runner.h"

#include "base/failure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs programs one behind another, as a shell does with "|". The first one reads a file and the
 * last one writes a file.
 *
 * Programs are found through PATH. Their descriptor 2 is /dev/null. They inherit descriptors
 * without close-on-exec. pipeline_run blocks until all programs have ended, and returns true when
 * each one has ended with 0.
 */

extern char **environ;

static int null_fd = -1;

/* Opens what pipeline_run needs. A process that can't open files later calls this first. False with
 * errno. */
static bool pipeline_prepare(void) {
    if (null_fd < 0)
        null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return null_fd >= 0;
}

static int pipeline_start(char *const *program, int input, int output, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, null_fd, STDERR_FILENO);
    int error = posix_spawnp(pid, program[0], &actions, NULL, program, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void close_unless(int fd, int keep) {
    if (fd >= 0 && fd != keep)
        close(fd);
}

static bool pipeline_wait_for(pid_t pid, const char *name, char *error, size_t error_size) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (error[0] == 0)
        snprintf(error, error_size, "%s ended with %s %d", name,
                 WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return false;
}

static bool pipeline_run(char *const *const *programs, int input, int output, char *error,
                         size_t error_size) {
    pid_t pids[PIPELINE_MAX];
    int count = 0, from = input;
    bool good = true;
    error[0] = 0;
    if (!pipeline_prepare())
        return failure(error, error_size, "/dev/null: %s", strerror(errno));
    for (; good && programs[count] != NULL && count < PIPELINE_MAX;) {
        int ends[2] = {-1, output};
        if (programs[count + 1] != NULL && pipe2(ends, O_CLOEXEC) != 0) {
            snprintf(error, error_size, "pipe: %s", strerror(errno));
            good = false;
            break;
        }
        int failure = pipeline_start(programs[count], from, ends[1], &pids[count]);
        close_unless(from, input);
        close_unless(ends[1], output);
        from = ends[0];
        if (failure != 0) {
            snprintf(error, error_size, "cannot run %s: %s; is netpbm installed?",
                     programs[count][0], strerror(failure));
            good = false;
        } else
            count++;
    }
    close_unless(from, input);
    for (int i = 0; i < count; i++)
        good &= pipeline_wait_for(pids[i], programs[i][0], error, error_size);
    return good;
}

enum { ORDER_FILES = 2, ANSWER_MAX = 200 };

/* An order is the number of a recipe, with input and output as descriptors. */
struct order_control {
    _Alignas(struct cmsghdr) char bytes[CMSG_SPACE(ORDER_FILES * sizeof(int))];
};

static struct msghdr order_header(struct iovec *part, struct order_control *control) {
    return (struct msghdr){.msg_iov = part,
                           .msg_iovlen = 1,
                           .msg_control = control->bytes,
                           .msg_controllen = sizeof control->bytes};
}

static bool send_order(int fd, unsigned number, const int files[ORDER_FILES]) {
    struct iovec part = {&number, sizeof number};
    struct order_control control = {{0}};
    struct msghdr header = order_header(&part, &control);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(ORDER_FILES * sizeof(int));
    memcpy(CMSG_DATA(rights), files, ORDER_FILES * sizeof(int));
    return sendmsg(fd, &header, MSG_NOSIGNAL) == sizeof number;
}

static bool receive_order(int fd, unsigned *number, int files[ORDER_FILES]) {
    struct iovec part = {number, sizeof *number};
    struct order_control control;
    struct msghdr header = order_header(&part, &control);
    ssize_t length;
    do
        length = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    struct cmsghdr *rights = length == sizeof *number ? CMSG_FIRSTHDR(&header) : NULL;
    if (rights == NULL || rights->cmsg_len != CMSG_LEN(ORDER_FILES * sizeof(int)))
        return false;
    memcpy(files, CMSG_DATA(rights), ORDER_FILES * sizeof(int));
    return true;
}

/* A directory for files that programs need for a moment. Each user has one, and nobody else can
 * write to it. The directory stays; its files are removed as soon as they are open. False when
 * there is none. */
static bool has_scratch(char *path, size_t size) {
    const char *place = getenv("TMPDIR");
    struct stat status;
    snprintf(path, size, "%s/retort-helpers-%d", place == NULL ? "/tmp" : place, (int)geteuid());
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0 && setenv("TMPDIR", path, 1) == 0;
}

static void runner_enter(enum sandbox_kind sandbox) {
    char scratch[PATH_MAX];
    if (sandbox != SANDBOX_PROGRAMS || !has_scratch(scratch, sizeof scratch) ||
        !sandbox_enter_with(scratch))
        sandbox_enter(sandbox);
}

static _Noreturn void runner_serve(const struct recipe_book *book, int fd,
                                   enum sandbox_kind sandbox) {
    unsigned number;
    int files[ORDER_FILES];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    runner_enter(sandbox);
    while (receive_order(fd, &number, files)) {
        char answer[ANSWER_MAX] = "there is no such recipe";
        if (number < book->count)
            pipeline_run((char *const *const *)book->recipes[number].programs, files[0], files[1],
                         answer, sizeof answer);
        close(files[0]);
        close(files[1]);
        if (send(fd, answer, strlen(answer) + 1, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

bool runner_start(struct runner *runner, const struct recipe_book *book,
                  enum sandbox_kind sandbox) {
    int ends[2];
    *runner = (struct runner){book, -1, -1};
    if (!pipeline_prepare() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    runner->pid = fork();
    if (runner->pid == 0) {
        close(ends[0]);
        close(STDIN_FILENO); /* where the helper's jobs come in */
        runner_serve(book, ends[1], sandbox);
    }
    close(ends[1]);
    runner->fd = ends[0];
    return runner->pid > 0;
}

bool runner_run(struct runner *runner, const struct recipe *recipe, int input, int output,
                char *error, size_t error_size) {
    int files[ORDER_FILES] = {input, output};
    char answer[ANSWER_MAX] = "can't run the programs";
    unsigned number = (unsigned)(recipe - runner->book->recipes);
    ssize_t length = -1;
    if (runner->fd >= 0 && send_order(runner->fd, number, files))
        length = recv(runner->fd, answer, sizeof answer - 1, 0);
    if (length == 0)
        snprintf(answer, sizeof answer, "the process that runs programs has died");
    snprintf(error, error_size, "%s", answer);
    return length == 1;
}

void runner_stop(struct runner *runner) {
    if (runner->fd >= 0)
        close(runner->fd);
    if (runner->pid > 0)
        waitpid(runner->pid, NULL, 0);
    *runner = (struct runner){runner->book, -1, -1};
}
