#include "suites.h"

#include "base/assert.h"
#include "base/shared_table.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { LIMIT = 160, NOW = 1000 };

struct item {
    struct shared_entry entry;
    unsigned number;
    char name[16];
};

static _Atomic size_t removed;
static uint64_t now = NOW; /* when entries are put */

static void item_on_removal(struct shared_entry *entry) {
    removed++;
    free(CONTAINER_OF(entry, struct item, entry));
}

static struct slice name_of(unsigned number, char room[16]) {
    return slice_make(room, (size_t)snprintf(room, 16, "name %u", number));
}

/* Returns how many were evicted. */
static unsigned put(struct shared_table *table, unsigned number, size_t cost, uint64_t expires) {
    struct item *item = xcalloc(1, sizeof *item);
    struct slice name = name_of(number, item->name);
    item->number = number;
    item->entry.expires = expires;
    struct shared_part *part = shared_table_lock(table, name, now);
    struct shared_entry *old = shared_part_find(part);
    if (old != NULL)
        shared_part_remove(part, old);
    unsigned evicted = shared_part_put(part, &item->entry, name, cost);
    shared_part_unlock(part);
    return evicted;
}

static struct shared_part *part_of(struct shared_table *table, unsigned number) {
    char room[16];
    struct shared_part *part = shared_table_lock(table, name_of(number, room), now);
    shared_part_unlock(part);
    return part;
}

static bool is_there(struct shared_table *table, unsigned number, uint64_t at) {
    char room[16];
    struct shared_part *part = shared_table_lock(table, name_of(number, room), at);
    struct shared_entry *entry = shared_part_find(part);
    bool found = entry != NULL && CONTAINER_OF(entry, struct item, entry)->number == number;
    shared_part_unlock(part);
    return found;
}

static struct shared_table_statistics state_of(struct shared_table *table) {
    struct shared_table_statistics state;
    shared_table_statistics(table, &state);
    ck_assert_uint_eq(state.count, shared_table_count(table));
    return state;
}

static struct shared_table *begin(size_t limit) {
    removed = 0;
    now = NOW;
    return shared_table_new(limit, item_on_removal);
}

static void end(struct shared_table **table, size_t put_in_all) {
    shared_table_free(table);
    ck_assert_ptr_null(*table);
    ck_assert_uint_eq(removed, put_in_all);
    shared_table_free(table);
}

START_TEST(finds_what_was_put) {
    struct shared_table *table = begin(SHARED_TABLE_ANY);
    ck_assert(!is_there(table, 1, NOW));
    for (unsigned i = 0; i < 3000; i++)
        EXPECT(put(table, i, 1, 0) == 0, "%u evicts", i);
    for (unsigned i = 0; i < 3000; i++)
        EXPECT(is_there(table, i, UINT64_MAX), "%u is not there", i);
    put(table, 7, 1, 0);
    ck_assert_uint_eq(removed, 1);
    ck_assert_uint_eq(state_of(table).count, 3000);
    end(&table, 3001);
}
END_TEST

START_TEST(keeps_its_limit) {
    struct shared_table *table = begin(LIMIT);
    size_t evicted = 0;
    for (unsigned i = 0; i < 1000; i++) {
        evicted += put(table, i, 1, 0);
        EXPECT(is_there(table, i, NOW), "%u did not stay", i);
    }
    ck_assert_uint_eq(state_of(table).limit, LIMIT);
    ck_assert_uint_eq(state_of(table).count, LIMIT);
    ck_assert_uint_eq(evicted, 1000 - LIMIT);
    shared_table_set_limit(table, LIMIT / 2);
    ck_assert_uint_eq(state_of(table).count, LIMIT / 2);
    shared_table_set_limit(table, 0);
    ck_assert_uint_eq(state_of(table).count, 0);
    end(&table, 1000);
}
END_TEST

/* What does not fit alone stays alone, and its user can ask. */
START_TEST(costs_differ) {
    struct shared_table *table = begin(LIMIT);
    struct shared_part *part = part_of(table, 1);
    ck_assert(shared_part_fits(part, LIMIT / 16));
    ck_assert(!shared_part_fits(part, LIMIT / 16 + 1));
    for (unsigned i = 0; i < 1000; i++) {
        put(table, i, i % 10 + 1, 0);
        EXPECT(state_of(table).cost <= LIMIT, "%u: too many", i);
    }
    put(table, 1001, 2 * LIMIT, 0);
    ck_assert(is_there(table, 1001, NOW));
    put(table, 1001, 1, 0);
    ck_assert_uint_le(state_of(table).cost, LIMIT);
    end(&table, 1002);
}
END_TEST

START_TEST(what_is_found_stays) {
    struct shared_table *table = begin(LIMIT);
    for (unsigned i = 0; i < 1000; i++) {
        put(table, i, 1, 0);
        EXPECT(is_there(table, 0, NOW), "gone with %u", i);
    }
    end(&table, 1000);
}
END_TEST

START_TEST(expired_entries_go) {
    struct shared_table *table = begin(LIMIT);
    put(table, 1, 1, NOW + 10);
    put(table, 2, 1, 0);
    ck_assert(is_there(table, 1, NOW + 9));
    ck_assert(!is_there(table, 1, NOW + 10));
    ck_assert_uint_eq(removed, 1);
    ck_assert(!is_there(table, 1, NOW));
    ck_assert(is_there(table, 2, UINT64_MAX));
    end(&table, 2);
}
END_TEST

/* Of entries that were found, one that has expired makes room before one that has not, which is
 * older. */
START_TEST(expired_entries_are_evicted_first) {
    struct shared_table *table = begin(2 * 16);
    unsigned numbers[3] = {0}, count = 1; /* of one part */
    for (unsigned i = 1; count < 3; i++)
        if (part_of(table, i) == part_of(table, 0))
            numbers[count++] = i;
    put(table, numbers[0], 1, 0);
    put(table, numbers[1], 1, NOW + 1);
    ck_assert(is_there(table, numbers[0], NOW) && is_there(table, numbers[1], NOW));
    now = NOW + 1;
    ck_assert_uint_eq(put(table, numbers[2], 1, 0), 1);
    ck_assert(is_there(table, numbers[0], NOW));
    ck_assert(!is_there(table, numbers[1], NOW));
    ck_assert(is_there(table, numbers[2], NOW));
    end(&table, 3);
}
END_TEST

static bool is_even(const struct shared_entry *entry, void *arg) {
    ck_assert_ptr_eq(arg, &removed);
    return CONTAINER_OF(entry, const struct item, entry)->number % 2 == 0;
}

START_TEST(removes_what_is_not_wanted) {
    struct shared_table *table = begin(SHARED_TABLE_ANY);
    for (unsigned i = 0; i < 100; i++)
        put(table, i, 1, 0);
    ck_assert_uint_eq(shared_table_remove(table, is_even, &removed), 50);
    ck_assert(is_there(table, 98, NOW) && !is_there(table, 99, NOW));
    ck_assert_uint_eq(shared_table_remove(table, NULL, NULL), 50);
    end(&table, 100);
}
END_TEST

START_TEST(an_entry_leads_to_its_part) {
    struct shared_table *table = begin(SHARED_TABLE_ANY);
    for (unsigned i = 0; i < 100; i++)
        put(table, i, 1, 0);
    for (unsigned i = 0; i < 100; i++) {
        char room[16];
        struct shared_part *part = shared_table_lock(table, name_of(i, room), NOW);
        struct shared_entry *entry = shared_part_find(part);
        shared_part_unlock(part);
        EXPECT(shared_table_lock_of(table, entry) == part, "%u", i);
        shared_part_remove(part, entry);
        shared_part_unlock(part);
    }
    end(&table, 100);
}
END_TEST

static void *use_it(void *arg) {
    struct shared_table *table = arg;
    for (unsigned i = 0; i < 20000; i++) {
        put(table, i % 500, 1, i % 3 == 0 ? NOW + 1 : 0);
        is_there(table, i % 300, NOW + 1);
    }
    return NULL;
}

START_TEST(several_threads_use_it) {
    struct shared_table *table = begin(LIMIT);
    pthread_t threads[4];
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_it, table), 0);
    for (unsigned i = 0; i < 100; i++)
        shared_table_set_limit(table, LIMIT / 2 + i);
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    shared_table_set_limit(table, LIMIT);
    ck_assert_uint_le(state_of(table).count, LIMIT);
    end(&table, COUNT_OF(threads) * 20000);
}
END_TEST

Suite *shared_table_suite(void) {
    const TTest *const tests[] = {
        finds_what_was_put,
        keeps_its_limit,
        costs_differ,
        what_is_found_stays,
        expired_entries_go,
        expired_entries_are_evicted_first,
        removes_what_is_not_wanted,
        an_entry_leads_to_its_part,
        several_threads_use_it,
    };
    return suite_of("shared_table", tests, COUNT_OF(tests));
}
