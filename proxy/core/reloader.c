#include "reloader.h"

#include "base/assert.h"
#include "base/threads.h"

struct reloader {
    unsigned magic;
#define RELOADER_MAGIC 0x4e10ade4u
    struct server *server;
    struct thread_clock clock;
    bool threaded;
};

static uint64_t reload(void *arg) {
    struct reloader *reloader;
    struct settings_outcome outcome = {.error = ""};
    CAST_OBJ(reloader, arg, RELOADER_MAGIC);
    server_reload_in_turn(reloader->server, &outcome);
    settings_outcome_release(&outcome);
    return THREADS_NEVER;
}

struct reloader *reloader_start(struct server *server) {
    struct reloader *reloader;
    ALLOC_OBJ(reloader, RELOADER_MAGIC);
    reloader->server = server;
    thread_clock_init(&reloader->clock, reload, reloader);
    reloader->threaded = thread_clock_start(&reloader->clock, "rt-reload");
    return reloader;
}

void reloader_ask(struct reloader *reloader) {
    CHECK_OBJ(reloader, RELOADER_MAGIC);
    if (reloader->threaded)
        thread_clock_wake(&reloader->clock, 0);
    else
        reload(reloader);
}

void reloader_stop(struct reloader **reloaderp) {
    struct reloader *reloader = *reloaderp;
    *reloaderp = NULL;
    if (reloader == NULL)
        return;
    CHECK_OBJ(reloader, RELOADER_MAGIC);
    thread_clock_release(&reloader->clock);
    FREE_OBJ(reloader);
}
