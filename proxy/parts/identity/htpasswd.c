#include "identity/htpasswd.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/secret_hash.h"
#include "base/text.h"
#include "client/identity.h"
#include "identity/password_hash.h"

#include <stdio.h>

/* A user in a group. */
struct membership {
    struct slice user, group;
};

struct htpasswd {
    unsigned magic;
#define HTPASSWD_MAGIC 0x47ba55d0u
    char *users_text, *groups_text; /* what the slices point to */
    struct htpasswd_user *users;    /* by name */
    size_t count, capacity;
    struct membership *memberships; /* by user, then group */
    size_t membership_count, membership_capacity;
    struct slice *groups; /* of the memberships */
};

/* A text that is read line by line. */
struct lines {
    char *at, *end;
    unsigned number;
    char *error;
    size_t error_size;
};

static bool lines_fail(const struct lines *lines, const char *what) {
    return failure(lines->error, lines->error_size, "line %u: %s", lines->number, what);
}

/* Takes the next line that says something. False: there is none. */
static bool lines_next(struct lines *lines, struct slice *line) {
    while (lines->at < lines->end) {
        char *end = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
        *line = slice_make(lines->at, (size_t)(end - lines->at));
        lines->at = end + 1;
        lines->number++;
        if (line->length > 0 && line->base[line->length - 1] == '\r')
            line->length--;
        if (slice_trim(*line).length > 0 && line->base[0] != '#')
            return true;
    }
    return false;
}

static bool lines_begin(struct lines *lines, char *text, size_t length, char *error,
                        size_t error_size) {
    *lines = (struct lines){text, text + length, 0, error, error_size};
    if (length > 0 && text[length - 1] != '\n')
        return failure(
            error, error_size,
            "the last line has no end: the file seems to be written only in part; end the "
            "last line with a line break");
    if (memchr(text, '\0', length) != NULL)
        return failure(error, error_size, "there is a byte 0 in the file: it is no text");
    return true;
}

static struct htpasswd_user *add_user(struct htpasswd *file) {
    if (file->count == file->capacity) {
        file->capacity = file->capacity * 2 + 16;
        file->users = xrealloc(file->users, file->capacity * sizeof *file->users);
    }
    return &file->users[file->count++];
}

/* NAME:HASH, or NAME:HASH:more. */
static bool take_user(struct htpasswd *file, struct lines *lines, struct slice line) {
    char reason[160], message[200];
    const char *colon = memchr(line.base, ':', line.length);
    if (colon == NULL)
        return lines_fail(lines, "there is no colon: write NAME:HASH, as htpasswd does");
    struct slice name = slice_make(line.base, (size_t)(colon - line.base));
    if (!identity_name_is_good(name))
        return lines_fail(lines, "the name is empty, longer than 255 bytes, begins or ends with a "
                                 "blank, or is not UTF-8 without control characters");
    char *hash = (char *)colon + 1, *end = (char *)line.base + line.length;
    char *more = memchr(hash, ':', (size_t)(end - hash));
    *(more != NULL ? more : end) = '\0';
    if (!password_hash_check(hash, reason, sizeof reason)) {
        snprintf(message, sizeof message, "user \"%.*s\": %s",
                 (int)(name.length < 40 ? name.length : 40), name.base, reason);
        return lines_fail(lines, message);
    }
    *add_user(file) = (struct htpasswd_user){.name = name, .hash = hash};
    return true;
}

static int compare_slices(struct slice a, struct slice b) {
    size_t length = a.length < b.length ? a.length : b.length;
    int order = length > 0 ? memcmp(a.base, b.base, length) : 0;
    return order != 0 ? order : a.length < b.length ? -1 : a.length > b.length;
}

static int compare_users(const void *a, const void *b) {
    const struct htpasswd_user *one = a, *other = b;
    return compare_slices(one->name, other->name);
}

static bool read_users(struct htpasswd *file, struct slice text, char *error, size_t error_size) {
    struct lines lines;
    struct slice line;
    file->users_text = slice_dup(text);
    if (!lines_begin(&lines, file->users_text, text.length, error, error_size))
        return false;
    while (lines_next(&lines, &line))
        if (!take_user(file, &lines, line))
            return false;
    if (file->count > 0)
        qsort(file->users, file->count, sizeof *file->users, compare_users);
    for (size_t i = 1; i < file->count; i++)
        if (slice_equal(file->users[i - 1].name, file->users[i].name)) {
            struct slice name = file->users[i].name;
            return failure(error, error_size, "user \"%.*s\" has two lines: remove one",
                           (int)(name.length < 40 ? name.length : 40), name.base);
        }
    return true;
}

static void add_membership(struct htpasswd *file, struct slice user, struct slice group) {
    if (file->membership_count == file->membership_capacity) {
        file->membership_capacity = file->membership_capacity * 2 + 16;
        file->memberships =
            xrealloc(file->memberships, file->membership_capacity * sizeof *file->memberships);
    }
    file->memberships[file->membership_count++] = (struct membership){user, group};
}

/* The next word of a line. */
static bool htpasswd_next_word(struct slice *rest, struct slice *word) {
    *rest = slice_trim(*rest);
    if (rest->length == 0)
        return false;
    size_t length = 0;
    while (length < rest->length && rest->base[length] != ' ' && rest->base[length] != '\t')
        length++;
    *word = slice_make(rest->base, length);
    *rest = slice_make(rest->base + length, rest->length - length);
    return true;
}

/* GROUP: USER USER ... */
static bool htpasswd_take_group(struct htpasswd *file, struct lines *lines, struct slice line) {
    const char *colon = memchr(line.base, ':', line.length);
    if (colon == NULL)
        return lines_fail(lines, "there is no colon: write GROUP: USER USER");
    struct slice group = slice_make(line.base, (size_t)(colon - line.base));
    struct slice rest = slice_make(colon + 1, line.length - group.length - 1), user;
    if (!identity_name_is_good(group))
        return lines_fail(lines, "the name of the group is empty, too long, or no UTF-8 text");
    while (htpasswd_next_word(&rest, &user)) {
        if (!identity_name_is_good(user))
            return lines_fail(lines, "the name of a user is too long, or no UTF-8 text");
        add_membership(file, user, group);
    }
    return true;
}

static int compare_memberships(const void *a, const void *b) {
    const struct membership *one = a, *other = b;
    int order = compare_slices(one->user, other->user);
    return order != 0 ? order : compare_slices(one->group, other->group);
}

/* Gives each user his groups, each once. Both lists have the same order. */
static bool hand_out_groups(struct htpasswd *file, char *error, size_t error_size) {
    size_t next = 0, given = 0;
    file->groups = xcalloc(file->membership_count + 1, sizeof *file->groups);
    for (size_t i = 0; i < file->count; i++) {
        struct htpasswd_user *user = &file->users[i];
        while (next < file->membership_count &&
               compare_slices(file->memberships[next].user, user->name) < 0)
            next++;
        user->groups = file->groups + given;
        for (;
             next < file->membership_count && slice_equal(file->memberships[next].user, user->name);
             next++) {
            struct slice group = file->memberships[next].group;
            if (user->group_count > 0 && slice_equal(user->groups[user->group_count - 1], group))
                continue;
            user->groups[user->group_count++] = group;
        }
        given += user->group_count;
        if (user->group_count > IDENTITY_GROUPS_MAX)
            return failure(error, error_size,
                           "user \"%.*s\" is in more than %d groups: remove some",
                           (int)(user->name.length < 40 ? user->name.length : 40), user->name.base,
                           IDENTITY_GROUPS_MAX);
    }
    return true;
}

static bool htpasswd_read_groups(struct htpasswd *file, struct slice text, char *error,
                                 size_t error_size) {
    struct lines lines;
    struct slice line;
    char reason[300];
    file->groups_text = slice_dup(text);
    bool good = lines_begin(&lines, file->groups_text, text.length, reason, sizeof reason);
    while (good && lines_next(&lines, &line))
        good = htpasswd_take_group(file, &lines, line);
    if (!good)
        return failure(error, error_size, "group_file: %s", reason);
    if (file->membership_count > 0)
        qsort(file->memberships, file->membership_count, sizeof *file->memberships,
              compare_memberships);
    return hand_out_groups(file, error, error_size);
}

struct htpasswd *htpasswd_parse(struct slice users, struct slice groups, char *error,
                                size_t error_size) {
    struct htpasswd *file;
    ALLOC_OBJ(file, HTPASSWD_MAGIC);
    if (!read_users(file, text_without_mark(users), error, error_size) ||
        !htpasswd_read_groups(file, text_without_mark(groups), error, error_size))
        htpasswd_free(&file);
    return file;
}

void htpasswd_free(struct htpasswd **filep) {
    struct htpasswd *file = *filep;
    *filep = NULL;
    if (file == NULL)
        return;
    CHECK_OBJ(file, HTPASSWD_MAGIC);
    free(file->users_text);
    free(file->groups_text);
    free(file->users);
    free(file->memberships);
    free(file->groups);
    FREE_OBJ(file);
}

size_t htpasswd_count(const struct htpasswd *file) {
    CHECK_OBJ(file, HTPASSWD_MAGIC);
    return file->count;
}

const struct htpasswd_user *htpasswd_find(const struct htpasswd *file, struct slice name) {
    const struct htpasswd_user wanted = {.name = name};
    CHECK_OBJ(file, HTPASSWD_MAGIC);
    return file->count == 0
               ? NULL
               : bsearch(&wanted, file->users, file->count, sizeof wanted, compare_users);
}

const char *htpasswd_decoy(const struct htpasswd *file, struct slice name) {
    CHECK_OBJ(file, HTPASSWD_MAGIC);
    return file->count == 0 ? NULL : file->users[secret_hash(name) % file->count].hash;
}
