/*
 * The reloader: reads the configuration again in a thread of its own. A reload lasts as long as services
 * take to start, and the main thread has to hear signals and to give signs of life meanwhile.
 *
 *     struct reloader *reloader = reloader_start(&server);
 *     reloader_ask(reloader);                       returns at once
 *     reloader_stop(&reloader);                     waits for the reload that is under way
 *
 * When it is asked during a reload, another one follows, however often it was asked; likewise behind a change
 * that the admin plane makes. Where no thread can be
 * started, the caller reloads itself.
 *
 * Threads: the main thread.
 */
#ifndef RETORT_RELOADER_H
#define RETORT_RELOADER_H

#include "server.h"

struct reloader;

struct reloader *reloader_start(struct server *server);
void reloader_ask(struct reloader *reloader);
void reloader_stop(struct reloader **reloaderp);

#endif
