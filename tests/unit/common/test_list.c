#include "suites.h"

#include "base/assert.h"
#include "base/list.h"

struct item {
    int number;
    struct list_link link;
};

static void fill(struct list_link *list, struct item *items, int count) {
    list_init(list);
    for (int i = 0; i < count; i++) {
        items[i].number = i;
        list_append(list, &items[i].link);
    }
}

/* Both ways round. */
static void check_list(struct list_link *list, const int *numbers, int count) {
    struct list_link *at = list;
    for (int i = 0; i < count; i++) {
        at = at->next;
        ck_assert_ptr_ne(at, list);
        ck_assert_int_eq(CONTAINER_OF(at, struct item, link)->number, numbers[i]);
        ck_assert_ptr_eq(at->prev->next, at);
    }
    ck_assert_ptr_eq(at->next, list);
    ck_assert_ptr_eq(list->prev, at);
}

START_TEST(append_and_prepend) {
    struct list_link list;
    struct item items[3], front = {-1, {NULL, NULL}};
    fill(&list, items, 3);
    list_prepend(&list, &front.link);
    check_list(&list, (int[]){-1, 0, 1, 2}, 4);
    ck_assert_ptr_eq(list_first(&list), &front.link);
}
END_TEST

START_TEST(an_empty_list) {
    struct list_link list;
    list_init(&list);
    ck_assert(list_empty(&list));
    ck_assert_ptr_null(list_first(&list));
    LIST_FOR_EACH (link, &list)
        ck_abort_msg("%p is in an empty list", (void *)link);
}
END_TEST

START_TEST(remove_may_be_called_twice) {
    struct list_link list;
    struct item items[3];
    fill(&list, items, 3);
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    check_list(&list, (int[]){0, 2}, 2);
    list_append(&list, &items[1].link);
    check_list(&list, (int[]){0, 2, 1}, 3);
}
END_TEST

START_TEST(insert_before) {
    struct list_link list;
    struct item items[2], middle = {7, {NULL, NULL}};
    fill(&list, items, 2);
    list_insert_before(&items[1].link, &middle.link);
    check_list(&list, (int[]){0, 7, 1}, 3);
}
END_TEST

START_TEST(splice_moves_all) {
    struct list_link first, second;
    struct item items[2], others[2];
    fill(&first, items, 2);
    fill(&second, others, 2);
    list_splice(&first, &second);
    check_list(&first, (int[]){0, 1, 0, 1}, 4);
    ck_assert(list_empty(&second));
    list_splice(&first, &second);
    check_list(&first, (int[]){0, 1, 0, 1}, 4);
    list_splice(&second, &first);
    check_list(&second, (int[]){0, 1, 0, 1}, 4);
    ck_assert(list_empty(&first));
}
END_TEST

START_TEST(elements_may_go_while_walking) {
    struct list_link list;
    struct item items[5];
    fill(&list, items, 5);
    LIST_FOR_EACH_SAFE (link, following, &list) {
        if (CONTAINER_OF(link, struct item, link)->number % 2 == 0)
            list_remove(link);
    }
    check_list(&list, (int[]){1, 3}, 2);
}
END_TEST

Suite *list_suite(void) {
    const TTest *const tests[] = {
        append_and_prepend, an_empty_list,    remove_may_be_called_twice,
        insert_before,      splice_moves_all, elements_may_go_while_walking,
    };
    return suite_of("list", tests, COUNT_OF(tests));
}
