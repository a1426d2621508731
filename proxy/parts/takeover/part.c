#include "part.h"

#include "base/assert.h"
#include "base/log.h"
#include "cache/key.h"
#include "cache/removal.h"
#include "reload.h"
#include "takeover/handover.h"
#include "takeover/invalidation_relay.h"
#include "takeover/removals.h"
#include "takeover/takeover.h"
#include "takeover/wire.h"
#include "transaction/transaction.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The successor: a new process that this one starts to be taken over by it, as after SIGUSR2. It
 * runs the program that has the name of this one now, with the same arguments and --take-over.
 *
 * It gets neither the descriptors of this process nor what the service manager said to this process
 * alone (WATCHDOG_PID). It learns the number of this process, so that it knows when this one ends
 * before it is asked for anything.
 */

struct successor {
    char **arguments; /* of main; ends with NULL */
    pid_t pid;        /* 0: none runs that this process started */
};

static char take_over[] = "--take-over";

static size_t successor_count(char **list) {
    size_t count = 0;
    while (list[count] != NULL)
        count++;
    return count;
}

/* The caller frees the array. */
static char **arguments_for(char **own) {
    size_t count = successor_count(own);
    bool there = false;
    char **arguments = xcalloc(count + 2, sizeof *arguments);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = own[i];
        there = there || strcmp(own[i], take_over) == 0;
    }
    if (!there)
        arguments[count] = take_over;
    return arguments;
}

static bool is_for_this_process(const char *entry) {
    static const char *const own[] = {"WATCHDOG_PID=", TAKEOVER_STARTER "="};
    return strncmp(entry, own[0], strlen(own[0])) == 0 ||
           strncmp(entry, own[1], strlen(own[1])) == 0;
}

/* The first entry is `starter`. */
static char **environment_for(char *starter) {
    char **environment = xcalloc(successor_count(environ) + 2, sizeof *environment);
    size_t count = 0;
    environment[count++] = starter;
    for (char **entry = environ; *entry != NULL; entry++)
        if (!is_for_this_process(*entry))
            environment[count++] = *entry;
    return environment;
}

/* Logs an error when it can't be started. Does nothing while one runs. */
static void successor_start(struct successor *successor) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    if (successor->pid != 0) {
        log_warn("process %d is about to take over already: SIGUSR2 has no effect",
                 (int)successor->pid);
        return;
    }
    char starter[sizeof TAKEOVER_STARTER + 16];
    snprintf(starter, sizeof starter, TAKEOVER_STARTER "=%d", (int)getpid());
    char **arguments = arguments_for(successor->arguments);
    char **environment = environment_for(starter);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    /* It asks for the sockets. Libraries leave descriptors open that it must not hold. */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    int error =
        posix_spawnp(&successor->pid, arguments[0], &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(arguments);
    free(environment);
    if (error == 0) {
        log_info("process %d is started to take over", (int)successor->pid);
        return;
    }
    successor->pid = 0;
    log_error("cannot start %s to take over: %s; this process goes on", successor->arguments[0],
              strerror(error));
}

static void successor_reap(struct successor *successor) {
    int status;
    if (successor->pid == 0 || waitpid(successor->pid, &status, WNOHANG) != successor->pid)
        return;
    if (WIFEXITED(status))
        log_error("process %d ended with status %d instead of taking over: its messages say why",
                  (int)successor->pid, WEXITSTATUS(status));
    else
        log_error("process %d was ended by signal %d before it took over", (int)successor->pid,
                  WTERMSIG(status));
    successor->pid = 0;
}

/* The part takeover: this process takes the place of another one, and another one that of this. */

struct upgrade {
    struct server *server;
    struct takeover *takeover; /* of the process before; NULL: there was none */
    struct handover *handover; /* NULL: nobody can take over */
    struct successor successor;
    struct removals removals;         /* for a later process */
    struct invalidation_relay *relay; /* of removals by the process before; NULL: there was none */
};

/* ---- what the server does that hands over; the handover's thread ------------------------------- */

static bool upgrade_sockets(void *context, handover_pass_fn *pass, void *arg) {
    const struct upgrade *upgrade = context;
    bool good = server_each_socket(upgrade->server, pass, arg);
    PARTS_FOR_EACH (number, socket.number) {
        int fd = part_table[number]->socket.number(upgrade->server);
        good = good && (fd < 0 || pass(arg, &fd, 1));
    }
    return good;
}

static void upgrade_forbid_reload(void *context, bool forbidden) {
    const struct upgrade *upgrade = context;
    server_forbid_reload(upgrade->server, forbidden);
}

static bool upgrade_is_ending(void *context) {
    const struct upgrade *upgrade = context;
    return atomic_load(&upgrade->server->draining);
}

static void upgrade_retire(void *context) {
    const struct upgrade *upgrade = context;
    PARTS_FOR_EACH (number, socket.give_away)
        part_table[number]->socket.give_away(upgrade->server);
    server_retire(upgrade->server);
    server_ask_to_end(upgrade->server);
}

static void upgrade_note_removals(void *context) {
    struct upgrade *upgrade = context;
    removals_note(&upgrade->removals);
}

static bool upgrade_tell_removals(void *context, int fd) {
    struct upgrade *upgrade = context;
    return removals_tell(&upgrade->removals, fd);
}

static void upgrade_forget_removals(void *context) {
    struct upgrade *upgrade = context;
    removals_forget(&upgrade->removals);
}

static unsigned upgrade_hears_removals(void *context, int *fds) {
    const struct upgrade *upgrade = context;
    _Static_assert((int)TOLD_PROCESSES <= (int)HANDOVER_HEARS, "there is room");
    return invalidation_relay_copy(upgrade->relay, fds);
}

static struct handover_calls upgrade_calls(struct upgrade *upgrade) {
    return (struct handover_calls){
        .context = upgrade,
        .second_level = upgrade->server->second_level,
        .sockets = upgrade_sockets,
        .forbid_reload = upgrade_forbid_reload,
        .is_ending = upgrade_is_ending,
        .note_removals = upgrade_note_removals,
        .tell_removals = upgrade_tell_removals,
        .forget_removals = upgrade_forget_removals,
        .hears_removals = upgrade_hears_removals,
        .retire = upgrade_retire,
    };
}

/* ---- the main thread --------------------------------------------------------------------------- */

static bool upgrade_begin(struct server *server, char **arguments, bool takes_over,
                          struct inherited *inherited, char *error) {
    struct upgrade *upgrade = xcalloc(1, sizeof *upgrade);
    upgrade->server = server;
    upgrade->successor.arguments = arguments;
    removals_init(&upgrade->removals);
    server->parts[PART_TAKEOVER] = upgrade;
    if (takes_over)
        upgrade->takeover = takeover_begin(server->settings, inherited, error);
    return !takes_over || upgrade->takeover != NULL;
}

static bool upgrade_may_open(struct server *server, char *error) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    return upgrade->takeover == NULL || takeover_get_disks(upgrade->takeover, error);
}

/* Of a client of the process before. The settings of that one may have made another name of the URL. */
static void remove_told(void *context, struct slice url) {
    struct upgrade *upgrade = context;
    struct server *server = upgrade->server;
    struct arena arena;
    struct settings *settings = server_settings(server);
    arena_init(&arena);
    struct slice urls[] = {url, cache_url_by_settings(url, settings, NULL, &arena)};
    for (unsigned i = 0; i < 2; i++) {
        struct cache_name name = cache_name_of(urls[i]);
        removal_of_name(server->cache, server->second_level, &name);
        removals_pass_on(&upgrade->removals, urls[i]);
    }
    arena_release(&arena);
    settings_release(&settings);
}

/* From now on the other process may tell what its clients remove from the cache. */
static bool upgrade_may_serve(struct server *server, char *error) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    int removals = -1;
    if (upgrade->takeover == NULL)
        return true;
    upgrade->relay = invalidation_relay_listen(remove_told, upgrade, &removals);
    bool may = takeover_may_serve(upgrade->takeover, removals, error);
    if (removals >= 0)
        close(removals);
    return may;
}

static bool upgrade_offer(struct server *server, struct inherited *inherited, char *error) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    const struct handover_calls calls = upgrade_calls(upgrade);
    upgrade->handover = handover_open(&calls, server->settings, inherited, error);
    return upgrade->handover != NULL || error[0] == '\0';
}

static void upgrade_look_again(void *context) {
    server_look_again(context);
}

static bool upgrade_finish(struct server *server, char *error) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    return upgrade->takeover == NULL ||
           takeover_finish(upgrade->takeover, upgrade_look_again, server, error);
}

static void upgrade_started(struct server *server, bool good) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    int fd;
    while (upgrade->takeover != NULL && (fd = takeover_take_removals(upgrade->takeover)) >= 0)
        invalidation_relay_add(upgrade->relay, fd);
    if (good)
        handover_start(upgrade->handover);
}

static void upgrade_take_signal(struct server *server, int number) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    if (number == SIGCHLD)
        successor_reap(&upgrade->successor);
    else if (upgrade->handover != NULL)
        successor_start(&upgrade->successor);
    else
        log_warn("SIGUSR2 has no effect without take_over_socket");
}

static bool upgrade_is_done(struct server *server) {
    const struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    return handover_is_done(upgrade->handover);
}

static bool upgrade_has_failed(struct server *server) {
    const struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    return handover_has_failed(upgrade->handover);
}

static void upgrade_stop(struct server *server) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    handover_stop(&upgrade->handover);
}

static void upgrade_leave(struct server *server) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    takeover_free(&upgrade->takeover);
}

static void upgrade_stop_removals(struct server *server) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    if (upgrade == NULL)
        return;
    invalidation_relay_stop(&upgrade->relay);
    removals_stop(&upgrade->removals);
}

static void upgrade_close(struct server *server) {
    struct upgrade *upgrade = server->parts[PART_TAKEOVER];
    server->parts[PART_TAKEOVER] = NULL;
    if (upgrade != NULL)
        removals_release(&upgrade->removals);
    free(upgrade);
}

static void upgrade_join(struct transaction_host *host, void *state) {
    struct upgrade *upgrade = state;
    host->removals = &upgrade->removals.base;
}

const struct part part_takeover = {
    .settings = &takeover_part_settings,
    .process =
        {
            .is_possible = handover_possible,
            .write_out = upgrade_stop_removals,
            .stop = upgrade_stop_removals,
            .close = upgrade_close,
        },
    .worker = {.join = upgrade_join},
    .takeover =
        {
            .begin = upgrade_begin,
            .may_open = upgrade_may_open,
            .may_serve = upgrade_may_serve,
            .offer = upgrade_offer,
            .finish = upgrade_finish,
            .started = upgrade_started,
            .take_signal = upgrade_take_signal,
            .is_done = upgrade_is_done,
            .has_failed = upgrade_has_failed,
            .stop = upgrade_stop,
            .leave = upgrade_leave,
        },
};
