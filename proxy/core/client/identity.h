/*
 * An identity: who a request is from, as an authenticator has proved it. A transaction without one
 * is from nobody.
 *
 *     struct identity *identity = identity_new(&(struct identity_facts){
 *         .name = SLICE("alice"), .method = "basic", .authenticator = SLICE("staff"),
 *         .groups = groups, .group_count = 2});
 *     subject.user = &identity->as_class;             what classes compare
 *     inside = identity_reference(identity);          for the requests inside a tunnel
 *     identity_release(&identity);
 *
 * The name is UTF-8 without control characters: nothing else is ever proved. It may have any other
 * character, so whoever writes it into a log, a field or a page escapes it there.
 *
 * Threads: the worker's; the count of references is not atomic. Memory: its own, in one piece.
 */
#ifndef RETORT_CLIENT_IDENTITY_H
#define RETORT_CLIENT_IDENTITY_H

#include "base/assert.h"
#include "match/url_class.h"

/* Bytes of a name or of a group's name; and the groups of one user. More are refused. */
enum { IDENTITY_NAME_MAX = 255, IDENTITY_GROUPS_MAX = 256 };

struct identity_facts {
    struct slice name;
    const struct slice *groups;
    size_t group_count;
    struct slice authenticator; /* the name of its section */
    const char *method;         /* "basic", "negotiate", "bearer", "certificate"; lives for ever */
};

struct identity {
    unsigned magic;
#define IDENTITY_MAGIC 0x1de97177u
    unsigned references;
    struct slice name, authenticator;
    struct slice *groups;
    size_t group_count;
    const char *method;
    struct class_user as_class; /* the same name and groups */
};

/* Copies the facts. The caller has the one reference. */
struct identity *identity_new(const struct identity_facts *facts);
void identity_free(struct identity *identity);

static inline struct identity *identity_reference(struct identity *identity) {
    CHECK_OBJ(identity, IDENTITY_MAGIC);
    identity->references++;
    return identity;
}

static inline void identity_release(struct identity **identityp) {
    struct identity *identity = *identityp;
    *identityp = NULL;
    if (identity != NULL && --identity->references == 0)
        identity_free(identity);
}

/* May this be the name of a user or of a group? One to IDENTITY_NAME_MAX bytes of UTF-8, without
 * control characters and without blanks at its ends. */
bool identity_name_is_good(struct slice name);

#endif
