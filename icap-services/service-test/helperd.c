#include "service-test/helperd.h"

#include "base/assert.h"
#include "base/clocks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void helperd_put_quoted(FILE *out, const char *text, size_t length) {
    fputc('"', out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\')
            fputc('\\', out);
        fputc(text[i], out);
    }
    fputc('"', out);
}

/* "gray=/usr/libexec/retort/gray-helper --memory 512M": words of the command, with blanks. */
static void put_pool(FILE *out, const char *helper) {
    size_t name = strcspn(helper, "=");
    const char *between = "";
    fprintf(out, "pool %.*s {\n    command = {", (int)name, helper);
    for (const char *at = helper + name + 1; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length > 0) {
            fputs(between, out);
            helperd_put_quoted(out, at, length);
            between = ", ";
        }
        at += length;
    }
    fprintf(out, "}\n    processes = 1\n    nice = 0\n    queue = 64\n    deadline = \"60s\"\n}\n");
}

static bool write_configuration(const struct test_helperd *helperd,
                                const struct tester_options *options) {
    FILE *out = fopen(helperd->configuration, "we");
    if (out == NULL)
        return false;
    fprintf(out, "socket = \"%s\"\n", helperd->socket);
    for (unsigned i = 0; i < options->helper_count; i++)
        put_pool(out, options->helpers[i]);
    return fclose(out) == 0;
}

static pid_t start_process(const struct test_helperd *helperd,
                           const struct tester_options *options) {
    pid_t process = fork();
    if (process != 0)
        return process;
    int log = open(helperd->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!options->verbose && log >= 0)
        dup2(log, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execlp(options->helperd, options->helperd, "-f", helperd->configuration, (char *)NULL);
    fprintf(stderr, "retort-service-test: %s can't be started: %s\n", options->helperd,
            strerror(errno));
    _exit(127);
}

/* What it said, when it did not start. */
static void show_log(const struct test_helperd *helperd) {
    FILE *log = fopen(helperd->log, "re");
    char line[1024];
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        fputs(line, stderr);
    if (log != NULL)
        fclose(log);
}

static bool answers(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, strlen(path) + 1);
    bool good = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* False: it ended, or does not listen in time. */
static bool wait_ready(const struct test_helperd *helperd, uint64_t milliseconds) {
    uint64_t until = clocks_milliseconds(CLOCK_MONOTONIC) + milliseconds;
    while (clocks_milliseconds(CLOCK_MONOTONIC) < until) {
        siginfo_t ended = {.si_pid = 0};
        if (answers(helperd->socket))
            return true;
        if (waitid(P_PID, (id_t)helperd->process, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid != 0)
            return false;
        poll(NULL, 0, 10);
    }
    return false;
}

/* The path of a socket has to be short (unix(7)). */
static void name_folder(char *folder, size_t size) {
    const char *where = getenv("TMPDIR");
    size_t most =
        sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof "/retort-XXXXXX/helperd.sock";
    if (where == NULL || strlen(where) > most || strlen(where) + sizeof "/retort-XXXXXX" > size)
        where = "/tmp";
    snprintf(folder, size, "%s/retort-XXXXXX", where);
}

bool test_helperd_start(struct test_helperd *helperd, const struct tester_options *options,
                        char *error, size_t error_size) {
    *helperd = (struct test_helperd){.process = 0};
    name_folder(helperd->folder, sizeof helperd->folder);
    if (mkdtemp(helperd->folder) == NULL) {
        snprintf(error, error_size, "no folder can be made for retort-helperd: %s",
                 strerror(errno));
        helperd->folder[0] = '\0';
        return false;
    }
    snprintf(helperd->configuration, sizeof helperd->configuration, "%s/helperd.conf",
             helperd->folder);
    snprintf(helperd->socket, sizeof helperd->socket, "%s/helperd.sock", helperd->folder);
    snprintf(helperd->log, sizeof helperd->log, "%s/helperd.log", helperd->folder);
    snprintf(helperd->setting, sizeof helperd->setting, "Helperd=%s", helperd->socket);
    if (!write_configuration(helperd, options)) {
        snprintf(error, error_size, "%s can't be written: %s", helperd->configuration,
                 strerror(errno));
        return false;
    }
    helperd->process = start_process(helperd, options);
    if (helperd->process > 0 && wait_ready(helperd, 6 * options->deadline))
        return true;
    show_log(helperd);
    snprintf(error, error_size,
             "retort-helperd (%s) does not start with the pools of --helper; its "
             "messages stand above",
             options->helperd);
    return false;
}

void test_helperd_stop(struct test_helperd *helperd) {
    if (helperd->process > 0) {
        kill(helperd->process, SIGTERM);
        waitpid(helperd->process, NULL, 0);
    }
    if (helperd->folder[0] != '\0') {
        unlink(helperd->configuration);
        unlink(helperd->socket);
        unlink(helperd->log);
        rmdir(helperd->folder);
    }
    *helperd = (struct test_helperd){.process = 0};
}
