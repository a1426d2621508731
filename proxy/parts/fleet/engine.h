/*
 * The engine that nodes of a fleet share: one ordered stream of entries, and a table with the state of each node. What an engine
 * promises is little: it may be away, lose its newest entries when another server takes over, and be emptied. node.h makes
 * promises out of it.
 *
 *     struct engine *engine = engine_open(&place, error);              NULL: see error
 *     if (!engine_append(engine, behind, texts, 2, &appended, error)) ...
 *     if (!engine_read(engine, after, 500, on_entry, arg, error)) ...
 *     engine_close(&engine);                                            also after any error, which ends the connection
 *
 * Another engine is another file with these functions.
 *
 * Threads: an engine belongs to the thread that has opened it, and its calls wait, at most until the place's timeout or until
 * *place.stop. Units: milliseconds. Errors: a sentence.
 */
#ifndef RETORT_FLEET_ENGINE_H
#define RETORT_FLEET_ENGINE_H

#include "fleet/place.h"

#include <stdatomic.h>

struct tls_trust_settings;
struct engine;

struct engine_place {
    const char *fleet;
    char *const *servers; /* "HOST:PORT"; end with NULL */
    const char
        *sentinel; /* the name by which `servers` know who serves; NULL: they serve themselves */
    const char *user, *password, *sentinel_password; /* NULL: none */
    const struct tls_trust_settings *trust;          /* NULL: no TLS */
    unsigned copies;        /* servers besides the first that must have what was appended */
    uint64_t timeout, keep; /* keep: entries that the stream has at least */
    const atomic_bool *stop;
};

struct engine_appended {
    /* Was the entry that is to be in front still there? Then nothing was missing between it and the texts when these were
     * appended, in the same step. */
    bool follows;
    bool copied;       /* place.copies servers have it */
    char id[FLEET_ID]; /* of the last one */
};

struct engine *engine_open(const struct engine_place *place, char error[FLEET_ERROR]);
void engine_close(struct engine **enginep);
/* Who serves: another text when what was appended before may be lost. */
const char *engine_generation(const struct engine *engine);
/* Does the same server serve still, with the same entries? */
bool engine_is_same(struct engine *engine, char error[FLEET_ERROR]);

/* Appends the texts in one step. `behind`: an entry that is to be there; NULL: any. */
bool engine_append(struct engine *engine, const struct fleet_mark *behind,
                   const struct slice *texts, size_t count, struct engine_appended *appended,
                   char error[FLEET_ERROR]);

typedef void engine_see_fn(void *arg, const char *id, struct slice text);
/* Shows the entries behind that one, waiting for the first one for so long. */
bool engine_read(struct engine *engine, const char *after, uint64_t patience, engine_see_fn *see,
                 void *arg, char error[FLEET_ERROR]);
/* Is the entry there, with that digest? */
bool engine_has(struct engine *engine, const struct fleet_mark *mark, bool *there,
                char error[FLEET_ERROR]);
/* Shows the newest entries, at most so many, the newest one first. */
bool engine_look_back(struct engine *engine, unsigned most, engine_see_fn *see, void *arg,
                      char error[FLEET_ERROR]);

/* The table of nodes. A value with a base of NULL removes the node. */
bool engine_set(struct engine *engine, const char *node, struct slice value,
                char error[FLEET_ERROR]);
bool engine_get(struct engine *engine, engine_see_fn *see, void *arg, char error[FLEET_ERROR]);

#endif
