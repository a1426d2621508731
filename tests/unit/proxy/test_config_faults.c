/* Several faults of a configuration are told at once, in the files where they are, and nothing is
 * ever made from half of a section. */
#include "suites.h"

#include <sys/stat.h>

static char *load_error(const char *path) {
    static char error[SETTINGS_ERROR];
    error[0] = '\0';
    struct settings *settings = settings_load(path, error);
    ck_assert_msg(settings == NULL, "%s is taken", path);
    return error;
}

/* Are the faults, behind the path of the file, these lines? */
static void check_faults(const char *text, const char *const *expected) {
    char *path = scratch_file("faults.conf", text), wanted[SETTINGS_ERROR];
    const char *error = load_error(path), *line = error;
    for (; *expected != NULL; expected++) {
        snprintf(wanted, sizeof wanted, "%s%s", path, *expected);
        ck_assert_msg(line != NULL && strncmp(line, wanted, strlen(wanted)) == 0,
                      "\"%s\" is missing in \"%s\"", wanted, error);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    ck_assert_msg(line == NULL, "there is more: \"%s\" in \"%s\"", line, error);
    free(path);
}

START_TEST(faults_of_all_sections_are_told) {
    check_faults("wrokers = 1\n"
                 "log_level = loud\n"
                 "cache { memory = lots\n"
                 "        max_object = many }\n"
                 "listen \":1\" { mode = forward }\n"
                 "listen \":2\" { mode = sideways\n"
                 "              allow = \"10.0.0.0/99\" }\n"
                 "adapt none { services = { x } }\n"
                 "client { idle_timeout = 10 }\n"
                 "admin { listen = \":1\" }\n",
                 (const char *const[]){
                     ":1: unknown option \"wrokers\"", ":2: log_level: \"loud\"",
                     ":3: memory: \"lots\"", ":4: max_object: \"many\"", ":6: mode: \"sideways\"",
                     ":7: allow: \"10.0.0.0/99\"", ":8: adapt: there is no url_class \"none\"",
                     ":9: idle_timeout: \"10\"", ":10: listen: \":1\" is not a", NULL});
}
END_TEST

START_TEST(consequences_are_not_told) {
    check_faults("listen \":1\" { mood = forward }\n"
                 "url_class a { path_regex = '(' }\n"
                 "policy a { ttl = 1m }\n"
                 "icap_service s { uri = \"http://h/s\"  point = reqmod_precache }\n"
                 "adapt a { services = { s } }\n"
                 "origins o { servers = \"h\" }\n"
                 "map \"/\" { origin = o }\n"
                 "cache { memory = lots\n"
                 " max_object = 3GB }\n"
                 "authority { certificate = \"\"\n"
                 "            key = \"/k\" }\n"
                 "intercept all { action = bump }\n",
                 (const char *const[]){":1: unknown option \"mood\"", ":2: path_regex: \"(\"",
                                       ":4: uri: \"http://h/s\"", ":6: servers: \"h\"",
                                       ":8: memory: \"lots\"", ":10: certificate: \"\"", NULL});
}
END_TEST

START_TEST(bad_lines_are_told_together) {
    check_faults("listen \"1 { mode = forward }\n"
                 "}\n"
                 "name = \"\\n\"\n"
                 "url_class x { host = *.a }\n",
                 (const char *const[]){":1: a quote (\") is opened here", ":3: a lone backslash",
                                       ":4: a value with '*' must be in quotes", NULL});
}
END_TEST

START_TEST(many_faults_are_counted) {
    char text[4000] = "";
    for (int i = 0; i < 50; i++)
        strcat(text, "listen \":1\" { mode = bad }\n");
    char *path = scratch_file("many.conf", text);
    const char *error = load_error(path);
    ck_assert_msg(strstr(error, "\nand ") != NULL && strstr(error, " more errors") != NULL, "%s",
                  error);
    free(path);
}
END_TEST

/* Files that include one another. */

static char *write_file(const char *name, const char *text) {
    return scratch_file(name, text);
}

START_TEST(files_are_included_in_their_order) {
    char error[SETTINGS_ERROR] = "", directory[300];
    snprintf(directory, sizeof directory, "%s/conf.d", scratch());
    mkdir(directory, 0700);
    free(write_file("conf.d/20-b.conf", "url_class b { host = b }\n"));
    free(write_file("conf.d/10-a.conf",
                    "\xef\xbb\xbfurl_class a { host = a }\ninclude = \"../last\"\n"));
    free(write_file("conf.d/not-this", "rubbish"));
    free(write_file("last", "url_class c { host = c }")); /* without a newline */
    char *path = write_file("main.conf", "include = \"conf.d/*.conf\"\ninclude = \"none.d/*\"\n"
                                         "listen \":1\" { mode = forward }\n"
                                         "include = { \"[x]/*.conf\" }\n");
    struct settings *settings = settings_load(path, error);
    ck_assert_msg(settings != NULL, "%s", error);
    ck_assert_uint_eq(settings->url_class_count, 4);
    ck_assert_str_eq(url_class_name(settings->url_classes[1]), "a");
    ck_assert_str_eq(url_class_name(settings->url_classes[2]), "c");
    ck_assert_str_eq(url_class_name(settings->url_classes[3]), "b");
    ck_assert_str_eq(settings->files[0], path);
    ck_assert_ptr_nonnull(strstr(settings->files[1], "conf.d/10-a.conf"));
    ck_assert_ptr_null(settings->files[4]);
    bool named = false;
    for (size_t i = 0; settings->files[i] != NULL; i++)
        named = named || strstr(settings->files[i], "conf.d/20-b.conf") != NULL;
    ck_assert(named);
    settings_release(&settings);
    free(path);
}
END_TEST

static void check_include(const char *text, const char *expected) {
    char *path = write_file("including.conf", text);
    const char *error = load_error(path);
    ck_assert_msg(strstr(error, expected) != NULL, "\"%s\" is not in \"%s\"", expected, error);
    free(path);
}

START_TEST(faults_name_the_included_file) {
    char directory[300];
    snprintf(directory, sizeof directory, "%s/bad.d", scratch());
    mkdir(directory, 0700);
    free(write_file("bad.d/a.conf", "\nworkers = many\nmap \"/\" { }\n"));
    free(write_file("bad.d/b.conf", "\n\nworkers = 1\n"));
    free(write_file("loop.conf", "\ninclude = \"loop.conf\"\n"));
    check_include("include = \"bad.d/*.conf\"\n", "bad.d/a.conf:2: workers: \"many\"");
    check_include("include = \"bad.d/*.conf\"\n", "bad.d/a.conf:3: map \"/\" has no origin");
    check_include("include = \"bad.d/*.conf\"\n",
                  "bad.d/b.conf:3: workers is set twice; the first one is in ");
    check_include("\ninclude = \"absent.conf\"\n", "including.conf:2: include: \"");
    check_include("include = absent.conf\n", "No such file or directory");
    check_include("include = \"loop.conf\"\n", "loop.conf:2: include: \"");
    check_include("include = \"loop.conf\"\n", "the file includes itself");
    check_include("include = \"including.conf\"\n", "the file includes itself");
    check_include("include = \"bad.d\"\n", "it is no regular file");
    check_include("include = \"/dev/zero\"\n", "it is no regular file");
    check_include("include = \"\"\n", "include: \"\" is empty");
    check_include("cache { include = x }\n", "include is in the wrong place");
}
END_TEST

START_TEST(includes_have_a_depth) {
    char name[20], text[60];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "deep%d", i);
        snprintf(text, sizeof text, "include = deep%d\n", i + 1);
        free(write_file(name, text));
    }
    check_include("include = deep0\n", "files include one another 8 deep");
}
END_TEST

static const char large[] =
    "workers = 2\n"
    "name = \"${RETORT_UNIT_NAME:-a}b\" # comment\n"
    "error_log = '/tmp/x'\n"
    "connect_ports = { 443, 8443, }\n"
    "listen \"127.0.0.1:1\" { mode = forward  allow = { \"10.0.0.0/8\" } }\n"
    "listen \":2\" {\n"
    "    mode = reverse\n"
    "}\n"
    "cache {\n"
    "    memory = 64MB\n"
    "    max_object = 1MB\n"
    "    negative_ttl = { \"404 1m\" }\n"
    "    disk \"/tmp/d\" { size = 1GB }\n"
    "}\n"
    "/* a comment\n"
    "   of two lines */\n"
    "url_class a { host = x.example  path_regex = '\\.jpg$' }\n"
    "url_class b { domain = { x, y } }\n"
    "policy a { ttl = 1m  query_drop = { \"utm_*\" } }\n"
    "policy all { cache = never }\n"
    "origins web { servers = { \"http://h weight=2\", \"http://i\" }  max_failures = 2 }\n"
    "origins up { servers = \"http://p:3128\" }\n"
    "map \"/\" { origin = web }\n"
    "map \"http://x.example/\" {\n"
    "    origin = \"http://h/\"\n"
    "    parent = up\n"
    "}\n"
    "parent a { origins = up }\n"
    "icap_service s { uri = \"icap://h/s\"  point = respmod_precache  preview = 1KB }\n"
    "icap_service t { uri = { \"icap://h/t\", \"icap://i/t\" }  point = reqmod_precache }\n"
    "adapt a { services = { s, t } }\n"
    "access_log \"/tmp/l\" { format = json }\n"
    "client { idle_timeout = 10s }\n"
    "origin { connect_timeout = 1s }\n"
    "intercept b { action = splice }\n"
    "interception { not_tls = refuse }\n"
    "transparent { silent = close }\n"
    "admin { listen = \"/tmp/s\" }\n";

/* Loads the text: settings or an error, and no memory is lost (valgrind, AddressSanitizer). */
static void load_mutated(const char *text) {
    char error[SETTINGS_ERROR] = "";
    char *path = scratch_file("mutated.conf", text);
    struct settings *settings = settings_load(path, error);
    if (settings == NULL)
        ck_assert_msg(strncmp(error, path, strlen(path)) == 0, "\"%s\" for\n%s", error, text);
    settings_release(&settings);
    free(path);
}

/* Each word of the configuration in turn: left out, twice, or another one. */
START_TEST(no_mutation_does_harm) {
    static const char *const instead[] = {"", "x", "\"\"", "{", "}", "=", "/nonexistent", "1GB"};
    char text[sizeof large + 100];
    for (size_t begin = 0; begin < sizeof large - 1;) {
        size_t blank = strspn(large + begin, " \n"), length = strcspn(large + begin + blank, " \n");
        for (size_t i = 0; i < COUNT_OF(instead); i++) {
            snprintf(text, sizeof text, "%.*s %s %s", (int)(begin + blank), large, instead[i],
                     large + begin + blank + length);
            load_mutated(text);
        }
        snprintf(text, sizeof text, "%.*s %.*s%s", (int)(begin + blank + length), large,
                 (int)length, large + begin + blank, large + begin + blank + length);
        load_mutated(text);
        begin += blank + length;
    }
}
END_TEST

START_TEST(the_large_configuration_is_good) {
    char error[SETTINGS_ERROR] = "";
    char *path = scratch_file("large.conf", large);
    struct settings *settings = settings_load(path, error);
    ck_assert_msg(settings != NULL, "%s", error);
    settings_release(&settings);
    free(path);
}
END_TEST

Suite *config_faults_suite(void) {
    const TTest *const tests[] = {
        bad_lines_are_told_together,   many_faults_are_counted, files_are_included_in_their_order,
        faults_name_the_included_file, includes_have_a_depth,   no_mutation_does_harm,
    };
    const TTest *const with_all[] = {faults_of_all_sections_are_told, consequences_are_not_told,
                                     the_large_configuration_is_good};
    Suite *suite = suite_of("config faults", tests, COUNT_OF(tests));
    suite_add_with(suite, "all", with_all, COUNT_OF(with_all));
    return suite;
}
