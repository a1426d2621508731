/* The lines of an object's vary before what selects it, as they come back from a disk. */
#include "suites.h"

#include "cache/object.h"
#include "cache/removal.h"
#include "cache/vary.h"

static const struct object_source source = {{[10] = 0xff, 0xff, 192, 0, 2, 33}};

static struct object *new_object(enum object_kind kind) {
    const struct object_provenance provenance = {
        .kind = kind, .chain = 0xfedcba98, .tag = 77, .source = source};
    const struct freshness freshness = {.storable = true, .lifetime = 60};
    struct http_head request, response;
    struct body *body = body_of_bytes(SLICE("body"));
    http_head_init(&request);
    http_head_init(&response);
    response.status = 200;
    http_head_add(&request, SLICE("Accept"), SLICE("x"));
    http_head_add(&response, SLICE("Vary"), SLICE("Accept"));
    struct slice url = SLICE("http://a.org/");
    struct object *object = object_new_made((struct cache_key){1, 2}, url, &request, &response,
                                            &freshness, body, &provenance, NULL);
    body_release(&body);
    return object;
}

/* NULL: it can't be an object. */
static struct object *import_with(const struct object *object, struct slice vary) {
    struct object_image image;
    object_export(object, &image);
    return object_import(object->key, &image, object_url(object), object_head(object), vary,
                         object->body);
}

static size_t source_at(const struct object *object) {
    return object_is_made(object) ? OBJECT_PROVENANCE : 0;
}

static const enum object_kind kinds[] = {OBJECT_UNSEEN, OBJECT_SEEN, OBJECT_UNABLE};

START_TEST(what_is_known_of_an_object_comes_back) {
    struct object *object = new_object(kinds[_i]);
    struct object *again = import_with(object, guard_keep(object_vary(object)));
    struct object_provenance provenance = object_provenance(again);
    ck_assert_int_eq(provenance.kind, kinds[_i]);
    ck_assert_uint_eq(provenance.tag, kinds[_i] == OBJECT_UNSEEN ? 0 : 77);
    ck_assert(object_source_equal(&provenance.source, &source));
    ck_assert(slice_equal(object_selector(again), object_selector(object)));
    ck_assert_uint_gt(object_selector(again).length, 0);
    object_release(&again);
    object_release(&object);
}
END_TEST

/* Another address may come of a damaged line, since any address can stand there. It is never that
 * of no address at all, with which a response would not be judged. */
static void check_damaged(const struct object *object, struct slice vary, size_t place) {
    struct http_head request;
    struct object *again = import_with(object, vary);
    if (again == NULL)
        return;
    struct object_provenance provenance = object_provenance(again);
    struct slice selector = object_selector(again);
    http_head_init(&request);
    http_head_add(&request, SLICE("Accept"), SLICE("x"));
    ck_assert(selector.base + selector.length ==
              object_vary(again).base + object_vary(again).length);
    if (place == 0)
        ck_assert(!vary_matches(selector, &request));
    else
        ck_assert(object_source_is_known(&provenance.source) &&
                  slice_equal(selector, object_selector(object)));
    object_release(&again);
}

START_TEST(damaged_addresses_are_refused) {
    struct object *object = new_object(kinds[_i]);
    struct slice good = object_vary(object);
    char bytes[256];
    slice_put(bytes, good);
    struct slice vary = slice_make(bytes, good.length);
    size_t from = source_at(object);
    for (size_t place = 0; place < OBJECT_SOURCE; place++)
        for (unsigned change = 1; change < 256; change++) {
            char *byte = bytes + from + place;
            *byte ^= (char)change;
            check_damaged(object, vary, place);
            *byte ^= (char)change;
        }
    static const struct {
        size_t place;
        char byte;
    } never[] = {{1, 'x'}, {2, '\n'}, {2, '0'}, {25, ':'}, {26, '@'}, {26, '\r'}};
    for (size_t i = 0; i < COUNT_OF(never); i++) {
        char *byte = bytes + from + never[i].place, before = *byte;
        *byte = never[i].byte;
        ck_assert_ptr_null(import_with(object, vary));
        *byte = before;
    }
    object_release(&object);
}
END_TEST

START_TEST(cut_addresses_are_refused) {
    struct object *object = new_object(kinds[_i]);
    struct slice vary = object_vary(object);
    for (size_t length = source_at(object) + 1; length < vary.length; length++) {
        struct object *again = import_with(object, guard_keep(slice_make(vary.base, length)));
        ck_assert_int_eq(again != NULL, length == source_at(object) + OBJECT_SOURCE);
        if (again != NULL)
            object_release(&again);
    }
    object_release(&object);
}
END_TEST

/* A second line would be that of the object once the first is taken away. */
START_TEST(an_object_has_one_address) {
    struct object *object = new_object(kinds[_i]);
    struct slice vary = object_vary(object);
    size_t before = source_at(object) + OBJECT_SOURCE;
    const struct slice lines[] = {slice_make(vary.base + source_at(object), OBJECT_SOURCE),
                                  SLICE("@:\n"), SLICE(":x\n")};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char twice[256], *at = slice_put(twice, slice_make(vary.base, before));
        at = slice_put(at, lines[i]);
        at = slice_put(at, slice_make(vary.base + before, vary.length - before));
        ck_assert_ptr_null(import_with(object, slice_make(twice, (size_t)(at - twice))));
    }
    object_release(&object);
}
END_TEST

Suite *object_suite(void) {
    Suite *suite = suite_create("object");
    TCase *all = tcase_create("object");
    const TTest *tests[] = {what_is_known_of_an_object_comes_back, damaged_addresses_are_refused,
                            cut_addresses_are_refused, an_object_has_one_address};
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        tcase_add_loop_test(all, tests[i], 0, COUNT_OF(kinds));
    suite_add_tcase(suite, all);
    return suite;
}
