/*
 * How far a node has read the stream of its fleet, kept in a file of its state directory.
 *
 *     struct fleet_place place;
 *     switch (fleet_place_load(&place, "/var/lib/retort/fleet", "n7", error)) ...
 *     fleet_place_move(&place, id, &digest);               an entry has been read, and done
 *     fleet_place_prove(&place, &mark);                    up to there nothing is missing
 *     if (!fleet_place_save(fleet_place_write(&place), directory, error)) ...
 *
 * The engine numbers entries by its own clock, and a later engine may give a number again. So an entry is known by its id and its
 * digest. Marks are entries up to which nothing is missing, as a proof has shown (node.h). While the newest mark is in the stream,
 * so is all that came behind it, since a stream loses its oldest entries first. When an engine takes over that lacks the newest
 * marks, the node goes on behind the newest one that the engine has.
 *
 * `token` counts what was saved. The disk cache keeps it too (second_level_keep_generation): when both differ, one of them is an
 * old copy, and what is stored on disk may have missed a purge.
 *
 * Threads: the owner's. Errors: a sentence.
 */
#ifndef RETORT_FLEET_PLACE_H
#define RETORT_FLEET_PLACE_H

#include "fleet/chains.h"

enum { FLEET_ID = 44, FLEET_MARKS = 64, FLEET_ERROR = 512 };

struct fleet_mark {
    char id[FLEET_ID]; /* of the entry, as the engine writes it */
    struct fleet_digest digest;
};

struct fleet_place {
    char node[FLEET_NAME_MAX];
    /* Of the engine: in which the node has read, and the last one in which it has proved what it knows, which the file has. "":
     * none. */
    char generation[FLEET_GENERATION], proven[FLEET_GENERATION];
    uint64_t token;
    struct fleet_mark read; /* the last entry that was read; id "": none was */
    unsigned count, latest; /* of the marks; `latest` is where the newest one stands */
    struct fleet_mark marks[FLEET_MARKS];
    struct fleet_chains chains;
};

enum fleet_place_load { FLEET_PLACE_KNOWN, FLEET_PLACE_NEW, FLEET_PLACE_BAD, FLEET_PLACE_ALIEN };

/* Ids are numbers with a '-' between them. Is `a` at or behind `b`? */
bool fleet_id_reaches(const char *a, const char *b);

void fleet_place_init(struct fleet_place *place, const char *node);
void fleet_place_release(struct fleet_place *place);
/* NEW: there is no file. With a sentence: BAD: it can't be read; ALIEN: it is that of another node. */
enum fleet_place_load fleet_place_load(struct fleet_place *place, const char *directory,
                                       const char *node, char error[FLEET_ERROR]);
/* The text of the file, with the next token, on the heap. */
char *fleet_place_write(struct fleet_place *place);
bool fleet_place_save(const char *text, const char *directory, char error[FLEET_ERROR]);
void fleet_place_move(struct fleet_place *place, const char *id, const struct fleet_digest *digest);
void fleet_place_prove(struct fleet_place *place, const struct fleet_mark *mark);
/* The mark so many steps back; NULL: there are not so many. */
const struct fleet_mark *fleet_place_mark(const struct fleet_place *place, unsigned back);
/* Forgets the marks, and begins behind that entry; id "": at the beginning of the stream. */
void fleet_place_begin(struct fleet_place *place, const struct fleet_mark *mark);
/* Goes back to that mark: the engine has no newer one. */
void fleet_place_go_back(struct fleet_place *place, unsigned back);

#endif
