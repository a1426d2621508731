/*
 * The reload: settings come into use, those of the start, and later others: by a reload, which reads the configuration
 * again, or by a change of options at run time.
 *
 *     struct settings_outcome outcome = {.error = ""};
 *     if (!server_reload(server, &outcome)) ... outcome.error: nothing has changed ...
 *     settings_outcome_release(&outcome);
 *
 * A reload lasts as long as services take to start, and the main thread has to hear signals and to give signs of life
 * meanwhile. So a thread of its own, the reloader, reloads after SIGHUP:
 *
 *     struct reloader *reloader = reloader_start(&server);
 *     reloader_ask(reloader);                       returns at once
 *     reloader_stop(&reloader);                     waits for the reload that is under way
 *
 * When the reloader is asked during a reload, another one follows, however often it was asked; likewise behind a change that
 * the admin plane makes. Where no thread can be started, the caller reloads itself.
 *
 * Threads: server_reload and server_change may come from any thread, all other calls from the main thread.
 */
#ifndef RETORT_RELOAD_H
#define RETORT_RELOAD_H

#include "server.h"
#include "settings/outcome.h"

struct reloader;

/* Reads the configuration again. False: it is refused, and nothing has changed; at once where another change is
 * under way. The caller releases the outcome. */
bool server_reload(struct server *server, struct settings_outcome *outcome);
/* Likewise, behind a change that is under way: for SIGHUP, which nobody would repeat. */
bool server_reload_in_turn(struct server *server, struct settings_outcome *outcome);
/* Settings that are not read but made: a change at run time. Who has the turn calls the functions. */
struct settings_change {
    const char *what; /* for who waits: "a change of options" */
    /* NULL: it is refused, with a message. */
    struct settings *(*make)(struct settings_change *change, const struct settings *now,
                             struct settings_outcome *outcome);
    /* Writes what shall outlive the process, right before it is in use. False: the change is refused. NULL: nothing
     * shall. */
    bool (*keep)(const struct settings *settings, struct settings_outcome *outcome);
};
/* Else as server_reload. */
bool server_change(struct server *server, struct settings_change *change,
                   struct settings_outcome *outcome);
/* Opens the logs by their names again, after somebody has renamed the files. */
void server_reopen_logs(struct server *server);
/* From now on, or no longer: reloads are refused, because another process takes over. */
void server_forbid_reload(struct server *server, bool forbidden);

/* What the settings of a start need, too. The file of error_log is opened, by its name. */
void server_open_error_log(const struct settings *settings);
/* Checks what can fail, and takes the addresses (claims.h). `old`: of the settings in use; NULL: none are. NULL and a message:
 * the start or the reload is refused. */
struct claims *server_claim(const struct settings *settings, const struct settings *old,
                            struct inherited *inherited, char error[SETTINGS_ERROR]);
/* Starts what parts need to serve by the settings (part.h). False, with a message: they can't be used. */
bool server_prepare_settings(struct server *server, struct settings *settings,
                             char error[SETTINGS_ERROR]);

struct reloader *reloader_start(struct server *server);
void reloader_ask(struct reloader *reloader);
void reloader_stop(struct reloader **reloaderp);

#endif
