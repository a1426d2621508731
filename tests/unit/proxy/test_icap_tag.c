/* What the results of an ICAP service go by. */
#include "suites.h"

#include "adapt/service_tag.h"

static char *uris[] = {"icap://one/s", "icap://two/s", NULL};

static struct service_settings settings_of(char *name) {
    return (struct service_settings){.name = name, .uri_texts = uris, .endpoint_count = 2};
}

/* In answer to what was asked just now. */
static uint64_t see(struct service_tag *tag, unsigned endpoint, struct slice istag,
                    uint64_t generation) {
    struct service_tag_moment asked = service_tag_moment(tag, endpoint);
    asked.generation = generation;
    return service_tag_see(tag, endpoint, istag, &asked, 0).result;
}

START_TEST(unknown_at_first) {
    struct service_settings settings = settings_of("s");
    struct service_tag *tag = service_tag_new(&settings);
    ck_assert_uint_eq(service_tag_value(tag), 0);
    service_tag_bump(tag);
    ck_assert_uint_eq(service_tag_value(tag), 0);
    service_tag_release(&tag);
}
END_TEST

START_TEST(may_ignore_the_istag) {
    struct service_settings settings = settings_of("s"), obeying = settings_of("s");
    settings.ignore_istag = true;
    struct service_tag *tag = service_tag_new(&settings);
    uint64_t at_first = service_tag_value(tag);
    ck_assert_uint_ne(at_first, 0);
    ck_assert_uint_eq(see(tag, 0, SLICE("\"1\""), 0), at_first);
    ck_assert_uint_eq(see(tag, 1, SLICE("\"2\""), 0), at_first);
    ck_assert_uint_eq(service_tag_value(tag), at_first);
    service_tag_bump(tag);
    ck_assert_uint_ne(service_tag_value(tag), at_first);
    ck_assert_uint_eq(service_tag_of_generation(tag, 0), at_first);
    ck_assert(!service_tag_is_of(tag, &obeying));
    service_tag_release(&tag);
}
END_TEST

START_TEST(follows_the_istag) {
    struct service_settings settings = settings_of("s");
    struct service_tag *tag = service_tag_new(&settings);
    uint64_t one = see(tag, 0, SLICE("\"1\""), 0);
    ck_assert_uint_ne(one, 0);
    ck_assert_uint_eq(service_tag_value(tag), one);
    ck_assert_uint_eq(see(tag, 0, SLICE("\"1\""), 0), one);
    ck_assert_uint_eq(see(tag, 1, SLICE("\"1\""), 0), one); /* both say the same */
    uint64_t two = see(tag, 1, SLICE("\"2\""), 0);
    ck_assert_uint_ne(two, one);
    ck_assert_uint_eq(service_tag_value(tag), two);
    ck_assert_uint_eq(see(tag, 0, SLICE("\"1\""), 0), two);
    ck_assert_uint_ne(see(tag, 0, SLICE("\"2\""), 0), two); /* both say the new one */
    service_tag_release(&tag);
}
END_TEST

START_TEST(a_bump_leaves_behind_what_is_under_way) {
    struct service_settings settings = settings_of("s");
    struct service_tag *tag = service_tag_new(&settings);
    uint64_t before = see(tag, 0, SLICE("\"1\""), 0);
    uint64_t asked = service_tag_generation(tag);
    service_tag_bump(tag);
    ck_assert_uint_ne(service_tag_value(tag), before);
    ck_assert_uint_eq(see(tag, 0, SLICE("\"1\""), asked), before);
    ck_assert_uint_ne(service_tag_value(tag), before);
    ck_assert_uint_eq(see(tag, 0, SLICE("\"1\""), service_tag_generation(tag)),
                      service_tag_value(tag));
    service_tag_release(&tag);
}
END_TEST

START_TEST(a_late_answer_changes_nothing) {
    struct service_settings settings = settings_of("s");
    struct service_tag *tag = service_tag_new(&settings);
    uint64_t one = see(tag, 0, SLICE("\"1\""), 0);
    struct service_tag_moment before = service_tag_moment(tag, 0);
    uint64_t two = see(tag, 0, SLICE("\"2\""), 0);
    struct service_tag_sight late = service_tag_see(tag, 0, SLICE("\"1\""), &before, 0);
    ck_assert(late.late && !late.shifted);
    ck_assert_uint_eq(late.result, one); /* its result is of the old one */
    ck_assert_uint_eq(service_tag_value(tag), two);
    struct service_tag_sight same = service_tag_see(tag, 0, SLICE("\"2\""), &before, 0);
    ck_assert(!same.late);
    ck_assert_uint_eq(same.result, two);
    ck_assert_uint_eq(see(tag, 0, SLICE("\"1\""), 0), one); /* asked since: it is back */
    ck_assert_uint_eq(service_tag_value(tag), one);
    /* Of another endpoint nothing was seen meanwhile. */
    before = service_tag_moment(tag, 1);
    see(tag, 0, SLICE("\"3\""), 0);
    ck_assert(!service_tag_see(tag, 1, SLICE("\"1\""), &before, 0).late);
    service_tag_release(&tag);
}
END_TEST

START_TEST(a_shift_is_of_a_steady_service) {
    struct service_settings settings = settings_of("s");
    struct service_tag *tag = service_tag_new(&settings);
    struct service_tag_moment asked;
    char istag[4] = "\"a\"";
    for (; istag[1] < 'z'; istag[1]++) { /* never the same twice */
        asked = service_tag_moment(tag, 0);
        ck_assert(!service_tag_see(tag, 0, slice_make(istag, 3), &asked, 0).shifted);
    }
    see(tag, 0, SLICE("\"1\""), 0);
    see(tag, 0, SLICE("\"1\""), 0);
    asked = service_tag_moment(tag, 0);
    ck_assert(service_tag_see(tag, 0, SLICE("\"2\""), &asked, 0).shifted);
    asked = service_tag_moment(tag, 0);
    ck_assert(service_tag_see(tag, 0, SLICE("\"3\""), &asked, 1000).shifted); /* a second later */
    service_tag_release(&tag);
}
END_TEST

START_TEST(is_of_one_service) {
    struct service_settings settings = settings_of("s"), other = settings_of("t");
    struct service_tag *tag = service_tag_new(&settings), *theirs = service_tag_new(&other);
    ck_assert(service_tag_is_of(tag, &settings));
    ck_assert(!service_tag_is_of(tag, &other));
    ck_assert_uint_ne(see(tag, 0, SLICE("\"1\""), 0), see(theirs, 0, SLICE("\"1\""), 0));
    other = settings_of("s");
    other.endpoint_count = 1;
    ck_assert(!service_tag_is_of(tag, &other));
    service_tag_release(&tag);
    service_tag_release(&theirs);
}
END_TEST

Suite *service_tag_suite(void) {
    const TTest *tests[] = {unknown_at_first,
                            may_ignore_the_istag,
                            follows_the_istag,
                            a_bump_leaves_behind_what_is_under_way,
                            a_late_answer_changes_nothing,
                            a_shift_is_of_a_steady_service,
                            is_of_one_service};
    return suite_of("icap_tag", tests, COUNT_OF(tests));
}
