#include "suites.h"

#include "base/assert.h"
#include "base/table.h"

enum { MANY = 5000 };

struct item {
    struct table_entry entry;
    unsigned number;
    bool seen;
    char name[16];
};

static struct item items[MANY];

static struct slice name_of(unsigned number, char room[16]) {
    return slice_make(room, (size_t)snprintf(room, 16, "name %u", number));
}

static void add(struct table *table, unsigned number) {
    struct item *item = &items[number];
    item->number = number;
    item->seen = false;
    table_add(table, &item->entry, name_of(number, item->name));
}

static struct item *find(const struct table *table, unsigned number) {
    char room[16];
    struct table_entry *entry = table_find(table, name_of(number, room));
    return entry == NULL ? NULL : CONTAINER_OF(entry, struct item, entry);
}

START_TEST(finds_what_was_added) {
    struct table table;
    table_init(&table);
    EXPECT(find(&table, 0) == NULL, "found in an empty table");
    for (unsigned i = 0; i < MANY; i++)
        add(&table, i);
    ck_assert_uint_eq(table.count, MANY);
    for (unsigned i = 0; i < MANY; i++)
        EXPECT(find(&table, i) == &items[i], "%u is not found", i);
    EXPECT(find(&table, MANY) == NULL, "found what was not added");
    for (unsigned i = 0; i < MANY; i += 2)
        table_remove(&table, &items[i].entry);
    for (unsigned i = 0; i < MANY; i++)
        EXPECT((find(&table, i) == NULL) == (i % 2 == 0), "%u", i);
    for (unsigned i = 1; i < MANY; i += 2)
        table_remove(&table, &items[i].entry);
    table_release(&table);
}
END_TEST

/* Entries go while the table is walked; each comes once. */
START_TEST(walks_through_all) {
    struct table table;
    unsigned count = 0;
    table_init(&table);
    TABLE_FOR_EACH_SAFE(entry, following, &table)
    ck_abort_msg("%p is in an empty table", (void *)entry);
    for (unsigned i = 0; i < MANY; i++)
        add(&table, i);
    TABLE_FOR_EACH_SAFE(entry, following, &table) {
        struct item *item = CONTAINER_OF(entry, struct item, entry);
        EXPECT(!item->seen, "%u comes twice", item->number);
        item->seen = true;
        count++;
        table_remove(&table, entry);
    }
    ck_assert_uint_eq(count, MANY);
    table_release(&table);
}
END_TEST

START_TEST(any_bytes_are_a_key) {
    struct item one = {.number = 1}, other = {.number = 2}, empty = {.number = 3};
    struct table table;
    table_init(&table);
    table_add(&table, &one.entry, slice_copy(one.name, slice_make("a\0b", 3)));
    table_add(&table, &other.entry, slice_copy(other.name, slice_make("a\0c", 3)));
    table_add(&table, &empty.entry, SLICE(""));
    ck_assert_ptr_eq(table_find(&table, slice_make("a\0b", 3)), &one.entry);
    ck_assert_ptr_eq(table_find(&table, slice_make("a\0c", 3)), &other.entry);
    ck_assert_ptr_eq(table_find(&table, slice_make(NULL, 0)), &empty.entry);
    ck_assert_ptr_null(table_find(&table, slice_make("a", 1)));
    TABLE_FOR_EACH_SAFE(entry, following, &table)
    table_remove(&table, entry);
    table_release(&table);
}
END_TEST

/* Keys with one hash, which nobody can choose otherwise. */
START_TEST(a_hash_is_not_enough) {
    struct item one = {.number = 1}, other = {.number = 2};
    struct table table;
    table_init(&table);
    table_add_hashed(&table, &one.entry, SLICE("one"), 7);
    table_add_hashed(&table, &other.entry, SLICE("other"), 7);
    ck_assert_ptr_eq(table_chain(&table, 7), &other.entry);
    ck_assert_ptr_eq(table_find_hashed(&table, SLICE("one"), 7), &one.entry);
    ck_assert_ptr_eq(table_find_hashed(&table, SLICE("other"), 7), &other.entry);
    ck_assert_ptr_null(table_find_hashed(&table, SLICE("third"), 7));
    ck_assert_ptr_null(table_find_next(&one.entry));
    table_remove(&table, &one.entry);
    ck_assert_ptr_null(table_find_hashed(&table, SLICE("one"), 7));
    table_remove(&table, &other.entry);
    table_release(&table);
}
END_TEST

START_TEST(several_of_one_key) {
    struct table table;
    table_init(&table);
    for (unsigned i = 0; i < MANY; i++)
        table_add(&table, &items[i].entry,
                  i % 100 == 0 ? SLICE("same") : name_of(i, items[i].name));
    unsigned count = 0;
    for (struct table_entry *entry = table_find(&table, SLICE("same")); entry != NULL;
         entry = table_find_next(entry))
        count++;
    ck_assert_uint_eq(count, MANY / 100);
    TABLE_FOR_EACH_SAFE(entry, following, &table)
    table_remove(&table, entry);
    table_release(&table);
}
END_TEST

Suite *table_suite(void) {
    const TTest *const tests[] = {
        finds_what_was_added, walks_through_all,  any_bytes_are_a_key,
        a_hash_is_not_enough, several_of_one_key,
    };
    return suite_of("table", tests, COUNT_OF(tests));
}
