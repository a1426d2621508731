#include "suites.h"

#include "fleet/outbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct fleet_key key = {
    .fleet = "edge", .length = 32, .bytes = "0123456789abcdef0123456789abcdef"};

static struct fleet_event event_of(enum fleet_event_kind kind, uint64_t number, struct slice body) {
    struct fleet_event event = {
        .kind = kind, .node = "n7", .epoch = 0x5f0c, .number = number, .body = body};
    return event;
}

/* ---- events ------------------------------------------------------------------------------------ */

START_TEST(events_are_read_as_written) {
    struct fleet_event event = event_of(FLEET_PURGE, 17, SLICE("{\"tag\":\"a b\"}")), read;
    event.before = fleet_digest_of(SLICE("before"));
    char *text = fleet_event_write(&event, &key);
    ck_assert(fleet_event_read(&read, slice_from(text), &key));
    ck_assert_int_eq(read.kind, FLEET_PURGE);
    ck_assert_str_eq(read.node, "n7");
    ck_assert_uint_eq(read.epoch, 0x5f0c);
    ck_assert_uint_eq(read.number, 17);
    ck_assert(fleet_digest_equal(&read.before, &event.before));
    ck_assert(slice_equal(read.body, event.body));
    free(text);
}
END_TEST

/* Whatever byte is another one, left out or behind the end: nobody with the key has written it. */
START_TEST(events_can_not_be_changed) {
    struct fleet_event event = event_of(FLEET_PURGE, 17, SLICE("{\"tag\":\"a\"}")), read;
    char *text = fleet_event_write(&event, &key), changed[1024];
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        memcpy(changed, text, length);
        changed[i] ^= 1;
        ck_assert(!fleet_event_read(&read, slice_make(changed, length), &key));
        memcpy(changed, text, i);
        memcpy(changed + i, text + i + 1, length - i - 1);
        ck_assert(!fleet_event_read(&read, slice_make(changed, length - 1), &key));
        ck_assert(!fleet_event_read(&read, slice_make(text, i), &key));
    }
    snprintf(changed, sizeof changed, "%s ", text);
    ck_assert(!fleet_event_read(&read, slice_from(changed), &key));
    struct fleet_key other = key;
    snprintf(other.fleet, sizeof other.fleet, "core");
    ck_assert(!fleet_event_read(&read, slice_from(text), &other));
    free(text);
}
END_TEST

/* ---- chains ------------------------------------------------------------------------------------ */

static enum fleet_chain_verdict take(struct fleet_chains *chains, const struct fleet_event *event,
                                     struct fleet_digest *last) {
    char *text = fleet_event_write(event, &key);
    struct fleet_digest digest = fleet_digest_of(slice_from(text));
    enum fleet_chain_verdict verdict = fleet_chains_take(chains, event, &digest);
    if (last != NULL)
        *last = digest;
    free(text);
    return verdict;
}

START_TEST(chains_find_what_is_missing) {
    struct fleet_chains chains;
    struct fleet_digest last;
    fleet_chains_init(&chains);
    struct fleet_event event = event_of(FLEET_PURGE, 5, SLICE("{}")), before;
    ck_assert_int_eq(take(&chains, &event, &last), FLEET_CHAIN_NEXT); /* not known before */
    before = event;
    event.number = 6;
    event.before = last;
    ck_assert_int_eq(take(&chains, &event, &last), FLEET_CHAIN_NEXT);
    ck_assert_int_eq(take(&chains, &event, NULL), FLEET_CHAIN_OLD); /* again */
    ck_assert_int_eq(take(&chains, &before, NULL), FLEET_CHAIN_OLD);
    struct fleet_event alive = event_of(FLEET_ALIVE, 6, SLICE("{}"));
    alive.before = last;
    ck_assert_int_eq(take(&chains, &alive, NULL), FLEET_CHAIN_OLD);
    alive.before = fleet_digest_of(SLICE("another"));
    ck_assert_int_eq(take(&chains, &alive, NULL),
                     FLEET_CHAIN_GAP); /* another event with the number */
    alive.number = 8;
    ck_assert_int_eq(take(&chains, &alive, NULL), FLEET_CHAIN_GAP); /* 7 and 8 are missing */
    event.number = 9;
    event.before = alive.before;
    ck_assert_int_eq(take(&chains, &event, &last), FLEET_CHAIN_NEXT);
    event.number = 11;
    ck_assert_int_eq(take(&chains, &event, &last), FLEET_CHAIN_GAP);
    event.body = SLICE("{\"tag\":\"x\"}");
    ck_assert_int_eq(take(&chains, &event, &last),
                     FLEET_CHAIN_GAP); /* a number that has two events */
    ck_assert_uint_eq(chains.count, 1);
    fleet_chains_release(&chains);
}
END_TEST

START_TEST(chains_follow_epochs) {
    struct fleet_chains chains;
    struct fleet_end end = {.known = true, .epoch = 0x5f0c, .number = 5};
    char text[FLEET_END_TEXT];
    fleet_chains_init(&chains);
    struct fleet_event event = event_of(FLEET_PURGE, 5, SLICE("{}"));
    take(&chains, &event, &end.digest);
    struct fleet_event start = event_of(FLEET_START, 1, SLICE("{}"));
    start.epoch = 7;
    start.body = fleet_end_write(&end, text);
    ck_assert_int_eq(take(&chains, &start, NULL), FLEET_CHAIN_NEXT);
    ck_assert_int_eq(take(&chains, &start, NULL), FLEET_CHAIN_OLD);
    start.epoch = 8; /* behind the same end, as a copy of the node would have it */
    ck_assert_int_eq(take(&chains, &start, NULL), FLEET_CHAIN_GAP);
    start.epoch = 9;
    start.body = SLICE("{}");
    ck_assert_int_eq(take(&chains, &start, NULL), FLEET_CHAIN_GAP);
    fleet_chains_release(&chains);
}
END_TEST

START_TEST(ends_are_read_with_care) {
    struct fleet_end end;
    static const char *const bad[] = {
        "",
        "[]",
        "{\"epoch\":1}",
        "{\"epoch\":\"5f0c\",\"number\":1,\"digest\":\"00\"}",
        "{\"epoch\":\"000000000000000g\",\"number\":1,\"digest\":"
        "\"00000000000000000000000000000000\"}",
        "{\"epoch\":\"0000000000005f0c\",\"number\":-1,\"digest\":"
        "\"00000000000000000000000000000000\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert(!fleet_end_read(&end, slice_from(bad[i])) || !end.known);
    ck_assert(fleet_end_read(&end, SLICE("{}")) && !end.known);
}
END_TEST

/* ---- the place --------------------------------------------------------------------------------- */

struct directory {
    char path[64];
};

static struct directory make_directory(void) {
    struct directory directory;
    snprintf(directory.path, sizeof directory.path, "/tmp/test-fleet-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory.path));
    return directory;
}

static void remove_directory(const struct directory *directory) {
    static const char *const files[] = {"position", "position.new", "outbox", "outbox.lock",
                                        "outbox.new"};
    char path[128];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory->path, files[i]);
        unlink(path);
    }
    rmdir(directory->path);
}

static struct fleet_mark mark_of(const char *id, struct fleet_digest digest) {
    struct fleet_mark mark = {.digest = digest};
    snprintf(mark.id, sizeof mark.id, "%s", id);
    return mark;
}

static void save(struct fleet_place *place, const struct directory *directory) {
    char error[FLEET_ERROR], *text = fleet_place_write(place);
    ck_assert(fleet_place_save(text, directory->path, error));
    free(text);
}

START_TEST(places_are_read_as_saved) {
    struct directory directory = make_directory();
    struct fleet_place place, read;
    char error[FLEET_ERROR], id[FLEET_ID];
    ck_assert_int_eq(fleet_place_load(&place, directory.path, "n7", error), FLEET_PLACE_NEW);
    for (unsigned i = 0; i < FLEET_MARKS + 3; i++) {
        struct fleet_digest digest = fleet_digest_of(slice_make((const char *)&i, sizeof i));
        snprintf(id, sizeof id, "100-%u", i);
        const struct fleet_mark mark = mark_of(id, digest);
        fleet_place_prove(&place, &mark);
        fleet_place_move(&place, "200-1", &digest);
    }
    struct fleet_event event = event_of(FLEET_PURGE, 5, SLICE("{}"));
    take(&place.chains, &event, NULL);
    snprintf(place.generation, sizeof place.generation, "later");
    snprintf(place.proven, sizeof place.proven, "abc");
    save(&place, &directory);
    ck_assert_int_eq(fleet_place_load(&read, directory.path, "n7", error), FLEET_PLACE_KNOWN);
    ck_assert_uint_eq(read.token, 1);
    ck_assert_str_eq(read.generation, "abc");
    ck_assert_uint_eq(read.count, FLEET_MARKS);
    ck_assert_str_eq(read.read.id, "200-1");
    for (unsigned back = 0; back < FLEET_MARKS; back++) {
        ck_assert_str_eq(fleet_place_mark(&read, back)->id, fleet_place_mark(&place, back)->id);
        ck_assert(fleet_digest_equal(&fleet_place_mark(&read, back)->digest,
                                     &fleet_place_mark(&place, back)->digest));
    }
    ck_assert_ptr_null(fleet_place_mark(&read, FLEET_MARKS));
    fleet_place_go_back(&read, 2);
    ck_assert_str_eq(fleet_place_mark(&read, 0)->id, fleet_place_mark(&place, 2)->id);
    ck_assert_str_eq(read.read.id, fleet_place_mark(&place, 2)->id);
    ck_assert_uint_eq(fleet_chains_find(&read.chains, "n7")->number, 5);
    fleet_place_release(&read);
    ck_assert_int_eq(fleet_place_load(&read, directory.path, "n8", error), FLEET_PLACE_ALIEN);
    fleet_place_release(&read);
    fleet_place_release(&place);
    remove_directory(&directory);
}
END_TEST

/* A file that ends early, or has lines of something else, is none. */
START_TEST(damaged_places_are_told) {
    struct directory directory = make_directory();
    struct fleet_place place;
    char error[FLEET_ERROR], path[128], text[1024];
    const struct fleet_digest digest = fleet_digest_of(SLICE("x"));
    fleet_place_init(&place, "n7");
    const struct fleet_mark mark = mark_of("100-1", digest);
    fleet_place_begin(&place, &mark);
    save(&place, &directory);
    fleet_place_release(&place);
    snprintf(path, sizeof path, "%s/position", directory.path);
    int fd = open(path, O_RDWR);
    ssize_t length = read(fd, text, sizeof text);
    for (ssize_t i = length - 1; i >= 0; i--) {
        ck_assert_int_eq(ftruncate(fd, i), 0);
        ck_assert_int_eq(fleet_place_load(&place, directory.path, "n7", error), FLEET_PLACE_BAD);
        fleet_place_release(&place);
    }
    close(fd);
    remove_directory(&directory);
}
END_TEST

/* ---- the outbox -------------------------------------------------------------------------------- */

static enum fleet_outbox_found open_outbox(struct fleet_outbox **outbox,
                                           const struct directory *directory) {
    char error[FLEET_ERROR];
    const struct fleet_outbox_place place = {
        .directory = directory->path, .node = "n7", .key = &key, .most = FLEET_OUTBOX_BYTES};
    return fleet_outbox_open(outbox, &place, error);
}

static void add(struct fleet_outbox *outbox, const char *body, uint64_t expected) {
    char error[FLEET_ERROR];
    uint64_t number;
    ck_assert(fleet_outbox_add(outbox, FLEET_PURGE, slice_from(body), &number, error));
    ck_assert_uint_eq(number, expected);
}

static void check_bodies(struct fleet_outbox *outbox, const char *bodies) {
    struct fleet_outbox_entry entry;
    struct fleet_event event;
    char found[256] = "";
    uint64_t after = 0;
    while (fleet_outbox_next(outbox, after, &entry)) {
        ck_assert_uint_eq(entry.number, after + 1);
        ck_assert(fleet_event_read(&event, entry.text, &key));
        ck_assert_uint_eq(event.number, entry.number);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s ",
                 (int)event.body.length, event.body.base);
        after = entry.number;
        free((char *)entry.text.base);
    }
    ck_assert_str_eq(found, bodies);
}

/* As if it was read back. */
static void confirm(struct fleet_outbox *outbox, uint64_t number) {
    struct fleet_outbox_entry entry;
    struct fleet_event event;
    ck_assert(fleet_outbox_next(outbox, number - 1, &entry));
    ck_assert(fleet_event_read(&event, entry.text, &key));
    struct fleet_digest digest = fleet_digest_of(entry.text), other = fleet_digest_of(SLICE("x"));
    ck_assert_int_eq(fleet_outbox_owner(outbox, &event, &other), FLEET_OUTBOX_FORKED);
    fleet_outbox_confirm(outbox, &event, &digest);
    free((char *)entry.text.base);
}

START_TEST(outboxes_keep_what_was_added) {
    struct directory directory = make_directory();
    struct fleet_outbox *outbox, *other;
    const struct fleet_end nothing = {.known = false};
    char error[FLEET_ERROR];
    ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_NEW);
    ck_assert_int_eq(open_outbox(&other, &directory), FLEET_OUTBOX_BUSY);
    ck_assert(fleet_outbox_begin(outbox, &nothing, error));
    add(outbox, "{\"a\":1}", 2);
    add(outbox, "{\"b\":1}", 3);
    fleet_outbox_close(&outbox);
    ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_KNOWN);
    check_bodies(outbox, "{} {\"a\":1} {\"b\":1} ");
    add(outbox, "{\"c\":1}", 4);
    confirm(outbox, 2);
    struct fleet_outbox_state state = fleet_outbox_state(outbox);
    struct fleet_end end = {true, state.epoch, 9, state.digest};
    ck_assert(fleet_outbox_begin(outbox, &end, error));
    ck_assert_uint_ne(fleet_outbox_state(outbox).epoch, state.epoch);
    struct fleet_outbox_entry entry;
    ck_assert(fleet_outbox_next(outbox, 1, &entry));
    ck_assert_ptr_nonnull(
        strstr(entry.text.base, "{\"b\":1}")); /* what is confirmed is not told again */
    free((char *)entry.text.base);
    fleet_outbox_close(&outbox);
    ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_KNOWN);
    ck_assert_uint_eq(fleet_outbox_state(outbox).number, 3);
    fleet_outbox_close(&outbox);
    remove_directory(&directory);
}
END_TEST

/* Killed at each byte of a write: what was added before is there, and what is half there is not. */
START_TEST(outboxes_survive_a_kill_at_each_byte) {
    struct directory directory = make_directory();
    struct fleet_outbox *outbox;
    const struct fleet_end nothing = {.known = false};
    char error[FLEET_ERROR], path[128], text[4096];
    ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_NEW);
    ck_assert(fleet_outbox_begin(outbox, &nothing, error));
    add(outbox, "{\"a\":1}", 2);
    size_t whole = fleet_outbox_state(outbox).bytes;
    add(outbox, "{\"b\":1}", 3);
    fleet_outbox_close(&outbox);
    snprintf(path, sizeof path, "%s/outbox", directory.path);
    int fd = open(path, O_RDWR);
    ssize_t length = read(fd, text, sizeof text);
    for (size_t i = whole; i < (size_t)length; i++) {
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_int_eq(pwrite(fd, text, i, 0), (ssize_t)i);
        ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_KNOWN);
        check_bodies(outbox, "{} {\"a\":1} ");
        add(outbox, "{\"c\":1}", 3);
        fleet_outbox_close(&outbox);
        ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_KNOWN);
        check_bodies(outbox, "{} {\"a\":1} {\"c\":1} ");
        fleet_outbox_close(&outbox);
    }
    close(fd);
    remove_directory(&directory);
}
END_TEST

/* The file does not grow for ever, and keeps what an engine may ask for again. */
START_TEST(outboxes_drop_what_is_old) {
    struct directory directory = make_directory();
    struct fleet_outbox *outbox;
    const struct fleet_end nothing = {.known = false};
    char error[FLEET_ERROR];
    uint64_t most = 2 * FLEET_OUTBOX_KEPT + 10;
    ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_NEW);
    ck_assert(fleet_outbox_begin(outbox, &nothing, error));
    for (uint64_t number = 2; number <= most; number++)
        add(outbox, "{}", number);
    size_t before = fleet_outbox_state(outbox).bytes;
    confirm(outbox, most);
    ck_assert_uint_lt(fleet_outbox_state(outbox).bytes, before * 6 / 10);
    fleet_outbox_close(&outbox);
    ck_assert_int_eq(open_outbox(&outbox, &directory), FLEET_OUTBOX_KNOWN);
    ck_assert_uint_eq(fleet_outbox_state(outbox).number, most);
    add(outbox, "{}", most + 1);
    fleet_outbox_close(&outbox);
    remove_directory(&directory);
}
END_TEST

Suite *fleet_suite(void) {
    const TTest *const tests[] = {
        events_are_read_as_written,
        events_can_not_be_changed,
        chains_find_what_is_missing,
        chains_follow_epochs,
        ends_are_read_with_care,
        places_are_read_as_saved,
        damaged_places_are_told,
        outboxes_keep_what_was_added,
        outboxes_survive_a_kill_at_each_byte,
        outboxes_drop_what_is_old,
    };
    return suite_of("fleet", tests, sizeof tests / sizeof tests[0]);
}
