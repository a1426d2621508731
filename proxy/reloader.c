#include "reloader.h"

#include "base/assert.h"

struct reloader {
    unsigned magic;
#define RELOADER_MAGIC 0x4e10ade4u
    struct server *server;
    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool asked, ends;
};

static void reload(struct server *server) {
    struct settings_outcome outcome = {.error = ""};
    server_reload(server, &outcome);
    settings_outcome_release(&outcome);
}

static void *reloader_main(void *arg) {
    struct reloader *reloader;
    CAST_OBJ(reloader, arg, RELOADER_MAGIC);
    pthread_mutex_lock(&reloader->lock);
    while (!reloader->ends) {
        if (!reloader->asked) {
            pthread_cond_wait(&reloader->changed, &reloader->lock);
            continue;
        }
        reloader->asked = false;
        pthread_mutex_unlock(&reloader->lock);
        reload(reloader->server);
        pthread_mutex_lock(&reloader->lock);
    }
    pthread_mutex_unlock(&reloader->lock);
    return NULL;
}

struct reloader *reloader_start(struct server *server) {
    struct reloader *reloader;
    ALLOC_OBJ(reloader, RELOADER_MAGIC);
    reloader->server = server;
    pthread_mutex_init(&reloader->lock, NULL);
    pthread_cond_init(&reloader->changed, NULL);
    reloader->threaded = pthread_create(&reloader->thread, NULL, reloader_main, reloader) == 0;
    return reloader;
}

void reloader_ask(struct reloader *reloader) {
    CHECK_OBJ(reloader, RELOADER_MAGIC);
    if (!reloader->threaded) {
        reload(reloader->server);
        return;
    }
    pthread_mutex_lock(&reloader->lock);
    reloader->asked = true;
    pthread_cond_signal(&reloader->changed);
    pthread_mutex_unlock(&reloader->lock);
}

void reloader_stop(struct reloader **reloaderp) {
    struct reloader *reloader = *reloaderp;
    *reloaderp = NULL;
    if (reloader == NULL)
        return;
    CHECK_OBJ(reloader, RELOADER_MAGIC);
    pthread_mutex_lock(&reloader->lock);
    reloader->ends = true;
    pthread_cond_signal(&reloader->changed);
    pthread_mutex_unlock(&reloader->lock);
    if (reloader->threaded)
        pthread_join(reloader->thread, NULL);
    pthread_cond_destroy(&reloader->changed);
    pthread_mutex_destroy(&reloader->lock);
    FREE_OBJ(reloader);
}
