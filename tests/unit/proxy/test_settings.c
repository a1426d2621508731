#include "suites.h"

#include "disk/settings.h"
#include "settings/options.h"

#include <fcntl.h>
#include <unistd.h>

static const char everything[] =
    "workers = 1                                  # 0: one per core\n"
    "listen \"127.0.0.1:3128\" { mode = forward }\n"
    "listen \"127.0.0.1:8080\" { mode = reverse }\n"
    "map \"http://www.example.com/\" { origin = \"http://127.0.0.1:9000/\" }\n"
    "map \"/\" { origin = \"http://127.0.0.1:9000/\" }     # any host\n"
    "cache { memory = \"512MB\"  disk \"/path/\" { size = \"10GB\"  admission = second } }\n"
    "access_log \"/path/access.log\" { format = squid }  # squid | combined | json\n"
    "icap_service gray { uri = \"icap://127.0.0.1:1344/gray\"  point = respmod_precache  "
    "bypass = true  timeout = \"5s\" }\n"
    "url_class images { path_regex = \"\\\\.(jpe?g|gif|png)$\" }   # also: host, domain\n"
    "adapt images { services = { gray } }              # ordered chain per URL class\n";

START_TEST(the_whole_language_is_read) {
    struct settings *s = settings_from(everything);
    ck_assert_uint_eq(s->workers, 1);
    ck_assert_uint_eq(s->listen_count, 2);
    ck_assert_int_eq(s->listens[0].mode, LISTEN_FORWARD);
    ck_assert_int_eq(s->listens[1].mode, LISTEN_REVERSE);
    ck_assert_uint_eq(address_port(&s->listens[1].address), 8080);
    ck_assert_uint_eq(s->map_count, 2);
    ck_assert_str_eq(s->maps[0].host, "www.example.com");
    ck_assert_ptr_null(s->maps[1].host);
    ck_assert_uint_eq(s->maps[0].origin.port, 9000);
    ck_assert_uint_eq(s->cache.memory, 512u << 20);
    ck_assert_uint_eq(disks_of(s)->count, 1);
    ck_assert_str_eq(disks_of(s)->disks[0].path, "/path");
    ck_assert_uint_eq(disks_of(s)->disks[0].size, (size_t)10 << 30);
    ck_assert_int_eq(disks_of(s)->disks[0].admission, DISK_ADMIT_SECOND);
    ck_assert_str_eq(s->access_logs[0].path, "/path/access.log");
    ck_assert_int_eq(s->access_logs[0].format, ACCESS_LOG_SQUID);
    ck_assert_str_eq(s->services[0].name, "gray");
    ck_assert_int_eq(s->services[0].point, ADAPT_RESPMOD_PRECACHE);
    ck_assert(s->services[0].bypass);
    ck_assert_uint_eq(s->services[0].timeout, 5000);
    ck_assert_uint_eq(s->services[0].endpoints[0].port, 1344);
    ck_assert_uint_eq(s->adapt_count, 1);
    ck_assert_str_eq(url_class_name(s->adapts[0].url_class), "images");
    ck_assert_ptr_eq(s->adapts[0].services[0], &s->services[0]);
    settings_release(&s);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(what_is_not_stated_has_its_default) {
    struct settings *s = settings_from("listen \":1\" { mode = reverse }");
    ck_assert_uint_ge(s->workers, 1);
    ck_assert_str_eq(s->name, "retort");
    ck_assert_ptr_null(s->error_log);
    ck_assert_int_eq(s->log_level, LOG_LEVEL_INFO);
    ck_assert_uint_eq(s->drain_timeout, 30000);
    ck_assert_uint_eq(s->cache.memory, 256u << 20);
    ck_assert_uint_eq(s->cache.max_object, 16u << 20);
    ck_assert_double_eq(s->cache.heuristic_fraction, 0.1);
    ck_assert_uint_eq(s->client.max_head, 64u << 10);
    ck_assert_uint_eq(s->client.max_connections, 10000);
    ck_assert_uint_eq(s->origin.dns_ttl_max, 300000);
    ck_assert(s->origin.dns_ipv6);
    ck_assert_uint_eq(s->listens[0].allow_count, 0);
    ck_assert(settings_connect_port_allowed(s, 443));
    ck_assert(!settings_connect_port_allowed(s, 25));
    settings_release(&s);
}
END_TEST

static bool allowed(const struct listen_settings *listen, const char *ip) {
    struct address address;
    ck_assert(address_parse_ip(&address, slice_from(ip), 1));
    for (size_t i = 0; i < listen->allow_count; i++)
        if (network_contains(&listen->allow[i], &address))
            return true;
    return listen->allow_count == 0;
}

START_TEST(a_forward_proxy_is_not_open_by_default) {
    struct settings *s = settings_from("listen \":1\" { mode = forward }\n"
                                       "listen \":2\" { mode = forward allow = all }\n"
                                       "listen \":3\" { mode = reverse allow = \"10.0.0.0/8\" }");
    ck_assert(allowed(&s->listens[0], "127.0.0.1"));
    ck_assert(allowed(&s->listens[0], "::1"));
    ck_assert(allowed(&s->listens[0], "172.31.0.1"));
    ck_assert(!allowed(&s->listens[0], "172.32.0.1"));
    ck_assert(!allowed(&s->listens[0], "8.8.8.8"));
    ck_assert(!allowed(&s->listens[0], "2001:db8::1"));
    ck_assert(allowed(&s->listens[1], "8.8.8.8"));
    ck_assert(allowed(&s->listens[2], "10.0.0.1"));
    ck_assert(!allowed(&s->listens[2], "127.0.0.1"));
    settings_release(&s);
}
END_TEST

START_TEST(values_may_be_written_in_many_ways) {
    struct settings *s =
        settings_from("/* a\n comment */ listen \":1\" { mode = \"forward\" } // another\r\n"
                      "client{max_head=2048 idle_timeout='250ms'\n header_timeout=2m}\n"
                      "origin { dns_ipv6 = no idle_timeout = 0 dns_ttl_max = 1h }\n"
                      "cache { memory = \"2 GB\" max_object = 64K heuristic_fraction = 0 }\n"
                      "connect_ports = { 443, 8443, }  name = 'a.b-c'\n"
                      "url_class a { host = { \"x.org\", y.org } host += z.org\n"
                      "              path_regex = '\\.jpg$' url_regex = 'it\\'s \\\\d' }");
    ck_assert_uint_eq(s->client.max_head, 2048);
    ck_assert_uint_eq(s->client.idle_timeout, 250);
    ck_assert_uint_eq(s->client.header_timeout, 120000);
    ck_assert(!s->origin.dns_ipv6);
    ck_assert_uint_eq(s->origin.idle_timeout, 0);
    ck_assert_uint_eq(s->origin.dns_ttl_max, 3600000);
    ck_assert_uint_eq(s->cache.memory, (size_t)2 << 30);
    ck_assert_uint_eq(s->cache.max_object, 64 << 10);
    ck_assert_uint_eq(s->connect_port_count, 2);
    ck_assert(settings_connect_port_allowed(s, 8443));
    ck_assert_str_eq(s->name, "a.b-c");
    const struct url_class_conditions *c = url_class_conditions(s->url_classes[1]);
    ck_assert_str_eq(c->hosts[2], "z.org");
    ck_assert_ptr_null(c->hosts[3]);
    ck_assert_str_eq(c->path_regexes[0], "\\.jpg$");
    ck_assert_str_eq(c->url_regexes[0], "it's \\d");
    settings_release(&s);
}
END_TEST

START_TEST(sections_may_refer_to_later_ones) {
    struct settings *s =
        settings_from("adapt all { services = { b, a } }\n"
                      "listen \":1\" { mode = forward }\n"
                      "icap_service a { uri = \"icap://h/a\" point = reqmod_precache }\n"
                      "icap_service b { uri = \"icap://h/b\" point = respmod_precache }\n");
    ck_assert_uint_eq(s->adapts[0].service_count, 2);
    ck_assert_str_eq(s->adapts[0].services[0]->name, "b");
    ck_assert_str_eq(s->adapts[0].services[1]->name, "a");
    ck_assert(!s->services[0].bypass);
    settings_release(&s);
}
END_TEST

START_TEST(a_small_cache_lowers_max_object) {
    struct settings *s = settings_from("listen \":1\" { mode = forward } cache { memory = 2MB }");
    ck_assert_uint_eq(s->cache.max_object, 2 << 20);
    settings_release(&s);
}
END_TEST

/* What follows an inner section belongs to the outer one again. */
START_TEST(a_cache_may_have_several_disks) {
    struct settings *s = settings_from("listen \":1\" { mode = forward }\n"
                                       "cache { disk \"/a\" { size = 20MB threads = 64 }\n"
                                       "  max_object = 3MB disk '/b' { }\n"
                                       "  memory = 4MB disk \"/\" { max_object = 0\n"
                                       "  admission = all write_queue = 1MB }\n"
                                       "  max_ranges = 5 }\n"
                                       "client { max_head = 2KB }\n");
    const struct disk_settings *disks = disks_of(s)->disks;
    ck_assert_uint_eq(disks_of(s)->count, 3);
    ck_assert_str_eq(disks[0].path, "/a");
    ck_assert_uint_eq(disks[0].size, 20 << 20);
    ck_assert_uint_eq(disks[0].threads, 64);
    ck_assert_str_eq(disks[1].path, "/b");
    ck_assert_uint_eq(disks[1].size, 1 << 30);
    ck_assert_int_eq(disks[1].admission, DISK_ADMIT_ALL);
    ck_assert_uint_eq(disks[1].max_object, 1 << 30);
    ck_assert_uint_eq(disks[1].threads, 4);
    ck_assert_uint_eq(disks[1].write_queue, 64 << 20);
    ck_assert_str_eq(disks[2].path, "/");
    ck_assert_uint_eq(disks[2].max_object, 0);
    ck_assert_uint_eq(disks[2].write_queue, 1 << 20);
    ck_assert_uint_eq(s->cache.max_object, 3 << 20);
    ck_assert_uint_eq(s->cache.memory, 4 << 20);
    ck_assert_uint_eq(s->cache.max_ranges, 5);
    ck_assert_uint_eq(s->client.max_head, 2 << 10);
    settings_release(&s);
    s = settings_from("listen \":1\" { mode = forward }\n");
    ck_assert_uint_eq(disks_of(s)->count, 0);
    settings_release(&s);
}
END_TEST

START_TEST(connect_may_be_forbidden) {
    struct settings *s = settings_from("listen \":1\" { mode = forward } connect_ports = none");
    ck_assert(!settings_connect_port_allowed(s, 443));
    settings_release(&s);
}
END_TEST

START_TEST(the_environment_may_be_used) {
    setenv("RETORT_TEST_NAME", "from-outside", 1);
    struct settings *s = settings_from(
        "listen \"127.0.0.1:${RETORT_TEST_PORT:-8123}\" { mode = forward }\n"
        "name = \"${RETORT_TEST_NAME}\" url_class a { path_regex = { '${x}$', \"\\${y}\" } }");
    ck_assert_str_eq(s->name, "from-outside");
    ck_assert_uint_eq(address_port(&s->listens[0].address), 8123);
    ck_assert_str_eq(url_class_conditions(s->url_classes[1])->path_regexes[0], "${x}$");
    ck_assert_str_eq(url_class_conditions(s->url_classes[1])->path_regexes[1], "${y}");
    settings_release(&s);
}
END_TEST

START_TEST(references_keep_a_snapshot) {
    struct settings *s = settings_from("workers = 1\nlisten \":1\" { mode = forward }\n");
    struct settings *mine = settings_reference(s);
    settings_release(&s);
    ck_assert_uint_eq(mine->workers, 1);
    settings_release(&mine);
}
END_TEST

START_TEST(a_refused_file_leaves_the_parser_sound) {
    char error[SETTINGS_ERROR];
    char *bad = scratch_file("bad.conf", "listen \":1\" { mode = \"for\n");
    ck_assert_ptr_null(settings_load(bad, error));
    free(bad);
    struct settings *s = settings_from("listen \":1\" { mode = forward }\n");
    settings_release(&s);
}
END_TEST

/* What the loader writes to the log while it takes the text. */
static char *warnings_of(const char *text) {
    char *path = scratch_file("warnings.log", "");
    int fd = open(path, O_WRONLY | O_TRUNC);
    log_open(fd, "test", LOG_LEVEL_WARN);
    struct settings *s = settings_from(text);
    log_open(STDERR_FILENO, "test", LOG_LEVEL_ERROR);
    close(fd);
    settings_release(&s);
    char *written = read_text(path);
    free(path);
    return written;
}

START_TEST(what_can_have_no_effect_is_warned_about) {
    char *map = warnings_of("listen \":1\" { mode = forward }\n"
                            "map \"/\" { origin = \"http://h/\" }\n");
    ck_assert_ptr_nonnull(
        strstr(map, "good.conf:2: map sections are used by reverse listeners only"));
    free(map);
    char *reverse = warnings_of("listen \":1\" { mode = reverse }\n");
    ck_assert_ptr_nonnull(strstr(reverse, "there is a reverse listener but no map"));
    free(reverse);
    char *type = warnings_of("listen \":1\" { mode = forward }\n"
                             "icap_service a { uri = \"icap://h/a\" point = reqmod_precache }\n"
                             "url_class html { content_type = text/html }\n"
                             "adapt html { services = a }\n");
    ck_assert_ptr_nonnull(strstr(type, "good.conf:4: service a is asked about requests"));
    free(type);
    char *none = warnings_of(everything);
    ck_assert_str_eq(none, "");
    free(none);
}
END_TEST

/* Options that are no numbers, and that an operator may change at run time all the same. Whoever adds one has answered
 * these questions with no: does it let somebody in, or out of a rule? Does it open a way past a rule, or make more
 * reachable? Does it name a file, a socket, a command or an address? Does it decide whom or what is believed? Does it
 * tell others of clients, or give one client what was made for another? What the services do, and which servers of a
 * group are asked, is the operator's business. */
static const char *const harmless[] = {
    "log_level",
    "listen.http2",
    "listen.session_tickets",
    "listen.ocsp",
    "listen.ktls",
    "map.preserve_host",
    "map.rewrite_location",
    "origins.servers",
    "origins.balance",
    "origins.hash_by",
    "origins.failure_status",
    "origins.http2",
    "origin.http2",
    "origin.dns_ipv6",
    "cache.status_field",
    "cache.x_cache",
    "cache.accept_encoding",
    "cache.negative_ttl",
    "cache.disk_io",
    "disk.admission",
    "disk.sync",
    "access_log.facility",
    "access_log.severity",
    "icap_log.facility",
    "icap_log.severity",
    "icap_service.point",
    "icap_service.disabled",
    "icap_service.bypass",
    "icap_service.decode",
    "icap_service.ignore_istag",
    "service.point",
    "service.disabled",
    "service.bypass",
    "service.decode",
    "service.runs",
    "adapt.services",
    "adapt.disabled",
    "policy.cache",
    "policy.negative_ttl",
    "policy.ignore_client_no_cache",
    "policy.query_sort",
    "tracing.icap",
    "response_headers.on_errors",
    "interception.mirror_errors",
    "interception.show_denied",
    "interception.ca_page",
    "limit.by",
    "limit.requests",
    "limit.status",
};

static size_t place_among_harmless(const char *name) {
    size_t at = 0;
    while (at < COUNT_OF(harmless) && strcmp(harmless[at], name) != 0)
        at++;
    return at;
}

static bool is_number(const struct option *option) {
    return option->type == OPTION_COUNT || option->type == OPTION_SIZE ||
           option->type == OPTION_TIME || option->type == OPTION_FLOAT;
}

static bool at_run_time(const struct option *option) {
    return option_change_of(option) != OPTION_BY_FILE;
}

START_TEST(what_opens_something_is_by_the_file) {
    bool seen[COUNT_OF(harmless)] = {false};
    for (const struct option *option = settings_table()->options; option->name != NULL; option++) {
        char name[100];
        bool top = option->section[0] == '\0';
        snprintf(name, sizeof name, "%s%s%s", option->section, top ? "" : ".", option->name);
        size_t at = place_among_harmless(name);
        bool listed = at < COUNT_OF(harmless);
        ck_assert_msg(!at_run_time(option) || is_number(option) || listed,
                      "%s can be set at run time: see the comment above", name);
        ck_assert_msg(!listed || at_run_time(option), "%s is by the file", name);
        /* Who may change it could lock all others out. */
        ck_assert_msg(strcmp(option->section, "admin") != 0 || !at_run_time(option),
                      "%s can be set at run time", name);
        if (listed)
            seen[at] = true;
    }
    for (size_t i = 0; i < COUNT_OF(harmless); i++)
        ck_assert_msg(seen[i], "there is no option %s", harmless[i]);
}
END_TEST

/* The sections whose options the configuration alone changes. */
static bool is_by_file(const char *section) {
    return strcmp(section, "admin") == 0 || strcmp(section, "fleet") == 0;
}

/* Options of one name and type in several sections. */
START_TEST(twins_are_changed_alike) {
    for (const struct option *one = settings_table()->options; one->name != NULL; one++)
        for (const struct option *other = settings_table()->options; other < one; other++)
            if (strcmp(one->name, other->name) == 0 && one->type == other->type &&
                !is_by_file(one->section) && !is_by_file(other->section))
                ck_assert_msg(at_run_time(one) == at_run_time(other),
                              "%s of the sections %s and %s", one->name, one->section,
                              other->section);
}
END_TEST

START_TEST(the_installed_example_is_good) {
    char error[SETTINGS_ERROR] = "";
    char *path = source_path("conf/retort.conf");
    struct settings *s = settings_load(path, error);
    ck_assert_msg(s != NULL, "%s", error);
    settings_release(&s);
    free(path);
}
END_TEST

Suite *settings_suite(void) {
    const TTest *const tests[] = {
        what_is_not_stated_has_its_default,
        a_forward_proxy_is_not_open_by_default,
        values_may_be_written_in_many_ways,
        a_small_cache_lowers_max_object,
        connect_may_be_forbidden,
        the_environment_may_be_used,
        references_keep_a_snapshot,
        a_refused_file_leaves_the_parser_sound,
        twins_are_changed_alike,
    };
    const TTest *const with_icap[] = {sections_may_refer_to_later_ones};
    const TTest *const with_disk[] = {a_cache_may_have_several_disks};
    const TTest *const with_both[] = {the_whole_language_is_read,
                                      what_can_have_no_effect_is_warned_about};
    const TTest *const with_all[] = {what_opens_something_is_by_the_file,
                                     the_installed_example_is_good};
    Suite *suite = suite_of("settings", tests, COUNT_OF(tests));
    suite_add_with(suite, "icap", with_icap, COUNT_OF(with_icap));
    suite_add_with(suite, "disk", with_disk, COUNT_OF(with_disk));
    suite_add_with(suite, "disk icap", with_both, COUNT_OF(with_both));
    suite_add_with(suite, "all", with_all, COUNT_OF(with_all));
    return suite;
}
