#include "suites.h"

#include "admin/settings_list.h"

#include <jansson.h>

static const char everything[] =
    "workers = 1\n"
    "listen \"127.0.0.1:3128\" { mode = forward }\n"
    "listen \"127.0.0.1:8080\" { mode = reverse }\n"
    "map \"http://www.example.com/\" { origin = \"http://127.0.0.1:9000/\" }\n"
    "map \"/\" { origin = \"http://127.0.0.1:9000/\" }\n"
    "cache { memory = \"512MB\"  disk \"/path/\" { size = \"10GB\"  admission = second } }\n"
    "access_log \"/path/access.log\" { format = squid }\n"
    "icap_service gray { uri = \"icap://127.0.0.1:1344/gray\"  point = respmod_precache  "
    "bypass = true  timeout = \"5s\" }\n"
    "url_class images { path_regex = \"\\\\.(jpe?g|gif|png)$\" }\n"
    "adapt images { services = { gray } }\n";

START_TEST(every_value_is_shown) {
    struct settings *s = settings_from(everything);
    char *text = settings_to_json(s);
    json_t *json = json_loads(text, 0, NULL);
    const char *memory, *mode, *prefix, *point, *timeout, *service, *regex;
    int workers, port;
    double fraction;
    ck_assert_int_eq(
        json_unpack(
            json, "{s:i, s:[i], s:{s:s, s:F}, s:[{s:s}], s:[{s:s}], s:[{s:s, s:s}], s:[{s:[s]}]}",
            "workers", &workers, "connect_ports", &port, "cache", "memory", &memory,
            "heuristic_fraction", &fraction, "listen", "mode", &mode, "map", "prefix", &prefix,
            "icap_service", "point", &point, "timeout", &timeout, "adapt", "services", &service),
        0);
    ck_assert_int_eq(workers, 1);
    ck_assert_int_eq(port, 443);
    ck_assert_str_eq(memory, "512MB");
    json_t *disks = json_object_get(json_object_get(json, "cache"), "disk");
    const char *path, *size, *admission;
    ck_assert_int_eq(json_unpack(disks, "[{s:s, s:s, s:s}]", "path", &path, "size", &size,
                                 "admission", &admission),
                     0);
    ck_assert_str_eq(path, "/path");
    ck_assert_str_eq(size, "10GB");
    ck_assert_str_eq(admission, "second");
    ck_assert_ptr_null(json_object_get(json, "disk"));
    ck_assert_double_eq(fraction, 0.1);
    ck_assert_str_eq(mode, "forward");
    ck_assert_str_eq(prefix, "http://www.example.com/");
    ck_assert_str_eq(point, "respmod_precache");
    ck_assert_str_eq(timeout, "5s");
    ck_assert_str_eq(service, "gray");
    json_t *images = json_array_get(json_object_get(json, "url_class"), 1);
    ck_assert_int_eq(json_unpack(images, "{s:[s]}", "path_regex", &regex), 0);
    ck_assert_str_eq(regex, "\\.(jpe?g|gif|png)$");
    ck_assert_ptr_null(json_object_get(images, "host"));
    json_decref(json);
    free(text);
    settings_release(&s);
}
END_TEST

START_TEST(policies_have_what_is_stated) {
    struct settings *s =
        settings_from("listen \":1\" { mode = reverse }\n"
                      "url_class images { path_regex = '\\.png$' }\n"
                      "policy images { ttl = 1d  query_sort = false  query_drop = a }\n"
                      "policy all { ttl = 1m  cache = never  query_drop = { b, c } }\n");
    char *text = settings_to_json(s);
    json_t *root = json_loads(text, 0, NULL);
    json_t *first = json_array_get(json_object_get(root, "policy"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "class")), "images");
    ck_assert_str_eq(json_string_value(json_object_get(first, "ttl")), "1d");
    ck_assert(json_is_false(json_object_get(first, "query_sort")));
    ck_assert_uint_eq(json_object_size(first), 4);
    json_decref(root);
    free(text);
    settings_release(&s);
}
END_TEST

Suite *settings_json_suite(void) {
    const TTest *const tests[] = {every_value_is_shown, policies_have_what_is_stated};
    return suite_of("settings_json", tests, COUNT_OF(tests));
}
