/*
 * The second level of the cache: where stored responses are found after memory has evicted them, and after a restart. The
 * core knows what one does; a part gives it (part.h, open_second_level).
 *
 *     struct second_level_moment since = second_level_now(level);     before the origin is asked
 *     second_level_store(level, object, &since);                      complete, and held in memory
 *
 *     load = second_level_load_start(level, &name, mailbox, task);    NULL: nothing is there
 *     if (!second_level_load_is_done(load)) ...                       the task will run
 *     object = second_level_load_take(load, &request, scope);
 *     second_level_load_end(&load);
 *
 *     stream = second_level_stream_open(level, object, length, &since);     a body too large for memory
 *     if (!second_level_stream_is_behind(stream, loop->now)) ...            else ask again in a moment
 *         second_level_stream_put(stream, bytes);                           never waits
 *     second_level_stream_close(&stream, whole);
 *
 *     second_level_stop(level);                                       what is queued is written
 *     second_level_close(&level);                                     after the memory cache has gone
 *
 * When several operations concern one object at the same time, the second level must agree with memory. An object is held
 * (cache_hold) from the moment when it is stored in memory until the second level has it, so it is queued only if nothing
 * newer has come, and the queue has the order of memory. cache/removal.h is the door for removals: it knows the order, and
 * nobody else removes from the second level (tests/check-includes.sh).
 *
 * What is loaded and is worth it enters memory. A large body enters it with its head only, and is a body with backing
 * (BODY_BACKED).
 *
 * Threads: any, and none waits but for those that say so. A level that is NULL has nothing and does nothing: so a proxy
 * without one pays for a comparison.
 */
#ifndef RETORT_CACHE_SECOND_LEVEL_H
#define RETORT_CACHE_SECOND_LEVEL_H

#include "cache/store.h"
#include "net/counters.h"

struct mailbox;
struct second_level;
struct task;

/* The number of the newest purge. Note it before the origin is asked. */
struct second_level_moment {
    uint64_t purges;
};

struct second_level_load {
    const struct second_level_class *class;
};

struct second_level_stream {
    const struct second_level_class *class;
};

/* A walk over the objects that are stored, one at a time. */
struct second_level_walk {
    uint64_t position;
    unsigned volume;
    bool over; /* there is no further object */
};

/* What metrics and status show. */
struct second_level_number {
    const char *name, *help;
    enum counter_kind kind;
};

enum { SECOND_LEVEL_NUMBERS = 16 }; /* at most */

/* The functions below say what each does. */
struct second_level_class {
    struct second_level_moment (*now)(struct second_level *level);
    bool (*store)(struct second_level *level, struct object *object,
                  const struct second_level_moment *since, bool by_operator);
    void (*supersede)(struct second_level *level, const struct object *object);
    void (*leave_out)(struct second_level *level, struct object *object);
    unsigned (*remove)(struct second_level *level, const struct cache_name *name,
                       const struct object *object);
    unsigned (*remove_surely)(struct second_level *level, const struct cache_name *name);
    void (*forget)(struct second_level *level, const struct cache_name *name);
    bool (*purge)(struct second_level *level, const struct object_filter *filter,
                  enum purge_action action);
    bool (*keep_generation)(struct second_level *level, uint64_t service, uint64_t generation);
    uint64_t (*kept_generation)(struct second_level *level, uint64_t service);
    bool (*commit)(struct second_level *level);
    bool (*has)(struct second_level *level, struct cache_key key);
    bool (*has_object)(struct second_level *level, const struct object *object);
    bool (*has_lost)(struct second_level *level);
    uint64_t (*lapses)(struct second_level *level);
    struct second_level_load *(*load_start)(struct second_level *level,
                                            const struct cache_name *name, struct mailbox *mailbox,
                                            struct task *task);
    bool (*load_is_done)(const struct second_level_load *load);
    struct object *(*load_take)(const struct second_level_load *load,
                                const struct http_head *request, enum object_scope scope);
    void (*load_end)(struct second_level_load *load);
    unsigned (*load_now)(struct second_level *level, const struct cache_name *name);
    struct second_level_stream *(*stream_open)(struct second_level *level, struct object *object,
                                               uint64_t body_length,
                                               const struct second_level_moment *since);
    bool (*stream_is_behind)(struct second_level_stream *stream, uint64_t now);
    void (*stream_put)(struct second_level_stream *stream, struct slice bytes);
    void (*stream_close)(struct second_level_stream *stream, bool whole);
    struct object *(*walk)(struct second_level *level, struct second_level_walk *walk);
    const struct second_level_number *numbers; /* ends with name NULL */
    /* The values of all of them, in their order. */
    void (*report)(struct second_level *level, uint64_t values[SECOND_LEVEL_NUMBERS]);
    bool (*lend)(struct second_level *level, char *error);
    bool (*take_back)(struct second_level *level, char *error);
    void (*stop)(struct second_level *level);
    void (*close)(struct second_level *level);
};

/* The first member of what the part keeps. */
struct second_level {
    const struct second_level_class *class;
};

static inline struct second_level_moment second_level_now(struct second_level *level) {
    return level != NULL ? level->class->now(level) : (struct second_level_moment){0};
}

/* Does nothing when the object, which has been held since it was stored, is not in memory any more. */
static inline void second_level_store(struct second_level *level, struct object *object,
                                      const struct second_level_moment *since) {
    if (level != NULL)
        level->class->store(level, object, since, false);
}

/* Stores an object for the operator, whether it is asked for often or not. False: it will not be written. */
static inline bool second_level_inject(struct second_level *level, struct object *object,
                                       const struct second_level_moment *since) {
    return level != NULL && level->class->store(level, object, since, true);
}

/* Removes the objects that this one would replace, after they were removed from memory. */
static inline void second_level_supersede(struct second_level *level, const struct object *object) {
    if (level != NULL)
        level->class->supersede(level, object);
}

/* For cache/removal.h alone, after memory has removed the same: */

/* Does so for an object in memory that will not be stored; nothing when it is not there any more. */
static inline void second_level_leave_out(struct second_level *level, struct object *object) {
    if (level != NULL)
        level->class->leave_out(level, object);
}

/* Removes one object, or all variants when object is NULL, and once more from memory what a load has brought there
 * meanwhile. Returns how many there were. */
static inline unsigned second_level_remove(struct second_level *level,
                                           const struct cache_name *name,
                                           const struct object *object) {
    return level != NULL ? level->class->remove(level, name, object) : 0;
}

/* Removes all variants in any case, because an operator is told that they are gone. */
static inline unsigned second_level_remove_surely(struct second_level *level,
                                                  const struct cache_name *name) {
    return level != NULL ? level->class->remove_surely(level, name) : 0;
}

/* Does the same for an object that will be written again; memory keeps it. */
static inline void second_level_forget(struct second_level *level, const struct cache_name *name) {
    if (level != NULL)
        level->class->forget(level, name);
}

/* False: the purge is in force but could not be written, so a restart would undo it. */
static inline bool second_level_purge(struct second_level *level,
                                      const struct object_filter *filter,
                                      enum purge_action action) {
    return level == NULL || level->class->purge(level, filter, action);
}

/* Stores how often a service has been bumped, so that its older results stay outdated after a restart
 * (adapt/service_tag.h). `service` is its number there. False as above. */
static inline bool second_level_keep_generation(struct second_level *level, uint64_t service,
                                                uint64_t generation) {
    return level == NULL || level->class->keep_generation(level, service, generation);
}

/* 0: never */
static inline uint64_t second_level_kept_generation(struct second_level *level, uint64_t service) {
    return level != NULL ? level->class->kept_generation(level, service) : 0;
}

/* Waits until all earlier operations are written, and are on the devices where they must be. False: a device has failed. */
static inline bool second_level_commit(struct second_level *level) {
    return level == NULL || level->class->commit(level);
}

/* Is there an object with this key? The name is not compared. */
static inline bool second_level_has(struct second_level *level, struct cache_key key) {
    return level != NULL && level->class->has(level, key);
}

/* Has this object, or a newer one in its place, been written? */
static inline bool second_level_has_object(struct second_level *level,
                                           const struct object *object) {
    return level != NULL && level->class->has_object(level, object);
}

/* Is there an object that is hidden now but may be found again after a restart? */
static inline bool second_level_has_lost(struct second_level *level) {
    return level != NULL && level->class->has_lost(level);
}

/* Counts removals and new heads that could not be written, so that a restart undoes them. When the number after a commit is
 * larger than before an operation, this operation or one at the same time has failed. */
static inline uint64_t second_level_lapses(struct second_level *level) {
    return level != NULL ? level->class->lapses(level) : 0;
}

/* Starts to load the objects with this name. Those that are worth it enter memory. NULL: there are none. */
static inline struct second_level_load *second_level_load_start(struct second_level *level,
                                                                const struct cache_name *name,
                                                                struct mailbox *mailbox,
                                                                struct task *task) {
    return level != NULL ? level->class->load_start(level, name, mailbox, task) : NULL;
}

static inline bool second_level_load_is_done(const struct second_level_load *load) {
    return load->class->load_is_done(load);
}

/* The object for this request with a reference, or NULL. It need not be in memory. Call it when the load is done. */
static inline struct object *second_level_load_take(const struct second_level_load *load,
                                                    const struct http_head *request,
                                                    enum object_scope scope) {
    return load->class->load_take(load, request, scope);
}

/* At any time; NULL does nothing. */
static inline void second_level_load_end(struct second_level_load **loadp) {
    struct second_level_load *load = *loadp;
    *loadp = NULL;
    if (load != NULL)
        load->class->load_end(load);
}

/* For threads that may wait: loads all objects with this name into memory, and returns their number. */
static inline unsigned second_level_load_now(struct second_level *level,
                                             const struct cache_name *name) {
    return level != NULL ? level->class->load_now(level, name) : 0;
}

/* For a body too large for memory, of known length, which is written as it passes. What does not arrive whole is left out,
 * and so is what waits too long: the stream is then behind no more. NULL: the body is not wanted. */
static inline struct second_level_stream *
second_level_stream_open(struct second_level *level, struct object *object, uint64_t body_length,
                         const struct second_level_moment *since) {
    return level != NULL ? level->class->stream_open(level, object, body_length, since) : NULL;
}

static inline bool second_level_stream_is_behind(struct second_level_stream *stream, uint64_t now) {
    return stream->class->stream_is_behind(stream, now);
}

static inline void second_level_stream_put(struct second_level_stream *stream, struct slice bytes) {
    stream->class->stream_put(stream, bytes);
}

/* NULL does nothing. */
static inline void second_level_stream_close(struct second_level_stream **streamp, bool whole) {
    struct second_level_stream *stream = *streamp;
    *streamp = NULL;
    if (stream != NULL)
        stream->class->stream_close(stream, whole);
}

/* Reads the next object, without its body. NULL: the walk is over, or this object is none any more. May wait for a device. */
static inline struct object *second_level_walk(struct second_level *level,
                                               struct second_level_walk *walk) {
    return level->class->walk(level, walk);
}

/* Another process gets what is stored, and this one goes on to serve from memory. Nothing is found or written behind that,
 * and removals count as lapses. False with a message: take back what was lent. Waits. */
static inline bool second_level_lend(struct second_level *level, char *error) {
    return level == NULL || level->class->lend(level, error);
}

/* False with a message: the other process still has something of it; again later. What was removed meanwhile is removed
 * there. Waits. */
static inline bool second_level_take_back(struct second_level *level, char *error) {
    return level == NULL || level->class->take_back(level, error);
}

/* Writes what is queued, and ends the threads. */
static inline void second_level_stop(struct second_level *level) {
    if (level != NULL)
        level->class->stop(level);
}

/* When no body of it is in use any more. */
static inline void second_level_close(struct second_level **levelp) {
    struct second_level *level = *levelp;
    *levelp = NULL;
    if (level != NULL)
        level->class->close(level);
}

#endif
