#include "fleet/place.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH = 1024, LINE = 256 };

bool fleet_id_reaches(const char *a, const char *b) {
    unsigned long long a_time = 0, a_number = 0, b_time = 0, b_number = 0;
    if (sscanf(a, "%llu-%llu", &a_time, &a_number) != 2 ||
        sscanf(b, "%llu-%llu", &b_time, &b_number) != 2)
        return false;
    return a_time != b_time ? a_time > b_time : a_number >= b_number;
}

void fleet_place_init(struct fleet_place *place, const char *node) {
    *place = (struct fleet_place){0};
    snprintf(place->node, sizeof place->node, "%s", node);
    fleet_chains_init(&place->chains);
}

void fleet_place_release(struct fleet_place *place) {
    fleet_chains_release(&place->chains);
}

void fleet_place_move(struct fleet_place *place, const char *id,
                      const struct fleet_digest *digest) {
    snprintf(place->read.id, sizeof place->read.id, "%s", id);
    place->read.digest = *digest;
}

void fleet_place_prove(struct fleet_place *place, const struct fleet_mark *mark) {
    place->latest = place->count == 0 ? 0 : (place->latest + 1) % FLEET_MARKS;
    if (place->count < FLEET_MARKS)
        place->count++;
    place->marks[place->latest] = *mark;
}

const struct fleet_mark *fleet_place_mark(const struct fleet_place *place, unsigned back) {
    if (back >= place->count)
        return NULL;
    return &place->marks[(place->latest + FLEET_MARKS - back) % FLEET_MARKS];
}

void fleet_place_begin(struct fleet_place *place, const struct fleet_mark *mark) {
    fleet_chains_forget(&place->chains, place->node);
    place->count = place->latest = 0;
    place->read = *mark;
    if (mark->id[0] != '\0')
        fleet_place_prove(place, mark);
}

void fleet_place_go_back(struct fleet_place *place, unsigned back) {
    ASSERT(back < place->count);
    place->latest = (place->latest + FLEET_MARKS - back) % FLEET_MARKS;
    place->count -= back;
    place->read = place->marks[place->latest];
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void place_path(char path[PATH], const char *directory, const char *suffix) {
    snprintf(path, PATH, "%s/position%s", directory, suffix);
}

static void write_mark(const char *what, const struct fleet_mark *mark, FILE *file) {
    char digest[FLEET_DIGEST_TEXT];
    fleet_digest_write(&mark->digest, digest);
    fprintf(file, "%s %s %s\n", what, mark->id, digest);
}

char *fleet_place_write(struct fleet_place *place) {
    char digest[FLEET_DIGEST_TEXT], *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    fprintf(out, "retort-fleet 1 %s\ntoken %" PRIu64 "\n", place->node, ++place->token);
    if (place->proven[0] != '\0')
        fprintf(out, "generation %s\n", place->proven);
    for (unsigned i = place->count; i > 0; i--)
        write_mark("mark", &place->marks[(place->latest + FLEET_MARKS - i + 1) % FLEET_MARKS], out);
    if (place->read.id[0] != '\0')
        write_mark("read", &place->read, out);
    LIST_FOR_EACH (link, &place->chains.list) {
        const struct fleet_chain *chain = CONTAINER_OF(link, struct fleet_chain, link);
        fleet_digest_write(&chain->digest, digest);
        fprintf(out, "node %s %016" PRIx64 " %" PRIu64 " %s\n", chain->node, chain->epoch,
                chain->number, digest);
    }
    fprintf(out, "end\n");
    fclose(out);
    return text;
}

bool fleet_place_save(const char *text, const char *directory, char error[FLEET_ERROR]) {
    char path[PATH], new_path[PATH];
    place_path(path, directory, "");
    place_path(new_path, directory, ".new");
    FILE *file = fopen(new_path, "we");
    if (file != NULL) {
        bool good = fputs(text, file) >= 0 && fflush(file) == 0 && fdatasync(fileno(file)) == 0;
        good = fclose(file) == 0 && good;
        if (good && rename(new_path, path) == 0)
            return true;
    }
    snprintf(error, FLEET_ERROR,
             "cannot write %.400s: %s; free space there, or let this user write", path,
             strerror(errno));
    return false;
}

static bool read_mark(const char *line, struct fleet_mark *mark) {
    char text[FLEET_DIGEST_TEXT];
    return sscanf(line, "%*s %43s %32s", mark->id, text) == 2 &&
           fleet_digest_read(&mark->digest, slice_from(text));
}

static bool read_chain(struct fleet_place *place, const char *line) {
    char node[FLEET_NAME_MAX], text[FLEET_DIGEST_TEXT];
    uint64_t epoch, number;
    struct fleet_digest digest;
    if (sscanf(line, "node %63s %16" SCNx64 " %19" SCNu64 " %32s", node, &epoch, &number, text) !=
            4 ||
        !fleet_name_is_good(slice_from(node)) || !fleet_digest_read(&digest, slice_from(text)))
        return false;
    struct fleet_chain *chain = fleet_chains_of(&place->chains, node);
    if (chain == NULL)
        return false;
    chain->epoch = epoch;
    chain->number = number;
    chain->digest = digest;
    return true;
}

static bool read_line(struct fleet_place *place, const char *line) {
    if (strncmp(line, "token ", 6) == 0)
        return sscanf(line, "token %19" SCNu64, &place->token) == 1;
    if (strncmp(line, "generation ", 11) == 0 &&
        sscanf(line, "generation %63s", place->proven) == 1) {
        memcpy(place->generation, place->proven, sizeof place->generation);
        return true;
    }
    struct fleet_mark mark;
    if (strncmp(line, "mark ", 5) == 0 && read_mark(line, &mark)) {
        fleet_place_prove(place, &mark);
        return true;
    }
    if (strncmp(line, "read ", 5) == 0)
        return read_mark(line, &place->read);
    return strncmp(line, "node ", 5) == 0 && read_chain(place, line);
}

static bool read_place(struct fleet_place *place, FILE *file, char node[FLEET_NAME_MAX]) {
    char line[LINE];
    if (fgets(line, sizeof line, file) == NULL || sscanf(line, "retort-fleet 1 %63s", node) != 1)
        return false;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strcmp(line, "end\n") == 0)
            return true;
        if (!read_line(place, line))
            return false;
    }
    return false;
}

enum fleet_place_load fleet_place_load(struct fleet_place *place, const char *directory,
                                       const char *node, char error[FLEET_ERROR]) {
    char path[PATH], of[FLEET_NAME_MAX] = "";
    place_path(path, directory, "");
    fleet_place_init(place, node);
    FILE *file = fopen(path, "re");
    if (file == NULL && errno == ENOENT)
        return FLEET_PLACE_NEW;
    if (file == NULL) {
        snprintf(error, FLEET_ERROR, "cannot read %.400s: %s; let this user read it", path,
                 strerror(errno));
        return FLEET_PLACE_BAD;
    }
    bool good = read_place(place, file, of);
    fclose(file);
    if (good && strcmp(of, node) == 0)
        return FLEET_PLACE_KNOWN;
    fleet_place_release(place);
    fleet_place_init(place, node);
    if (good)
        snprintf(error, FLEET_ERROR,
                 "%.300s is that of the node %s: give each node a state directory of its own", path,
                 of);
    else
        snprintf(error, FLEET_ERROR, "%.400s is damaged", path);
    return good ? FLEET_PLACE_ALIEN : FLEET_PLACE_BAD;
}
