/* Runs the unit tests of proxy/. CK_RUN_SUITE=settings in the environment runs one suite alone,
 * CK_FORK=no runs them all in this process, for a debugger; CK_EXCLUDE_TAGS=disk leaves out those
 * that take most of the time. */
#include "suites.h"

#include "base/assert.h"
#include "part.h"

#include <ftw.h>
#include <string.h>
#include <unistd.h>

static char scratch_directory[] = "/tmp/retort-unit-XXXXXX";
static size_t left_out; /* tests, since they need parts that are not there */

const char *scratch(void) {
    return scratch_directory;
}

char *scratch_file(const char *name, const char *text) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = xcalloc(1, 1 << 20);
    ck_assert_msg(file != NULL, "%s can not be opened", path);
    ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, file), (1 << 20) - 1);
    fclose(file);
    return text;
}

char *source_path(const char *path) {
    char *whole;
    ck_assert(asprintf(&whole, "%s/%s", SOURCE_DIRECTORY, path) > 0);
    return whole;
}

struct settings *settings_from(const char *text) {
    char error[SETTINGS_ERROR] = "";
    char *path = scratch_file("good.conf", text);
    struct settings *settings = settings_load(path, error);
    ck_assert_msg(settings != NULL, "%s", error);
    free(path);
    return settings;
}

void head_from(struct http_head *head, const char *lines) {
    http_head_init(head);
    head->version = 11;
    while (*lines != '\0') {
        size_t name = strcspn(lines, ":"), line = strcspn(lines, "\n");
        struct slice value = slice_trim(slice_make(lines + name + 1, line - name - 1));
        ck_assert(name < line && lines[line] == '\n');
        ck_assert(http_head_add(head, guard_keep(slice_make(lines, name)), guard_keep(value)));
        lines += line + 1;
    }
}

static void add_tests(Suite *suite, const char *noun, const TTest *const *tests, size_t count) {
    TCase *cases = tcase_create(noun);
    tcase_set_timeout(cases, 60);
    if (strncmp(noun, "disk", strlen("disk")) == 0)
        tcase_set_tags(cases, "disk");
    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
}

Suite *suite_of(const char *noun, const TTest *const *tests, size_t count) {
    Suite *suite = suite_create(noun);
    add_tests(suite, noun, tests, count);
    return suite;
}

static bool has_part(struct slice name) {
    unsigned number = PART_CORE + 1;
    while (number < PART_COUNT && !slice_equal(name, slice_from(part_name(number))))
        number++;
    ASSERT(number < PART_COUNT);
    return part_table[number] != NULL;
}

static bool has_all_parts(void) {
    for (unsigned number = PART_CORE + 1; number < PART_COUNT; number++)
        if (part_table[number] == NULL)
            return false;
    return true;
}

static bool has_parts(const char *parts) {
    if (strcmp(parts, "all") == 0)
        return has_all_parts();
    bool all = true;
    for (size_t length; *parts != '\0'; parts += length + (parts[length] == ' ')) {
        length = strcspn(parts, " ");
        all = has_part(slice_make(parts, length)) && all;
    }
    return all;
}

void suite_add_with(Suite *suite, const char *parts, const TTest *const *tests, size_t count) {
    if (has_parts(parts))
        add_tests(suite, "of parts", tests, count);
    else
        left_out += count;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_scratch(void) {
    nftw(scratch_directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* A suite of a part, which may be left out. */
static void add_part(SRunner *runner, Suite *(*make)(void)) {
    if (make != NULL)
        srunner_add_suite(runner, make());
    else if (has_all_parts())
        abort(); /* all parts are built, but no local.mk has the file of this suite */
}

int main(void) {
    if (mkdtemp(scratch_directory) == NULL)
        return EXIT_FAILURE;
    log_set_level(
        LOG_LEVEL_ERROR); /* warnings are asked for and read by the tests that mean them */
    SRunner *runner = srunner_create(address_suite());
    srunner_add_suite(runner, settings_suite());
    srunner_add_suite(runner, settings_errors_suite());
    add_part(runner, settings_json_suite);
    srunner_add_suite(runner, config_faults_suite());
    srunner_add_suite(runner, url_class_suite());
    srunner_add_suite(runner, class_suite());
    srunner_add_suite(runner, policy_suite());
    srunner_add_suite(runner, rules_suite());
    srunner_add_suite(runner, map_suite());
    srunner_add_suite(runner, origins_suite());
    srunner_add_suite(runner, srv_suite());
    srunner_add_suite(runner, manual_suite());
    add_part(runner, admin_suite);
    add_part(runner, ctl_suite);
    srunner_add_suite(runner, store_suite());
    srunner_add_suite(runner, name_suite());
    srunner_add_suite(runner, purge_suite());
    add_part(runner, disk_suite);
    srunner_add_suite(runner, dns_suite());
    srunner_add_suite(runner, certificate_set_suite());
    srunner_add_suite(runner, client_hello_suite());
    srunner_add_suite(runner, connection_suite());
    add_part(runner, host_check_suite);
    add_part(runner, icap_host_suite);
    add_part(runner, content_suite);
    srunner_add_suite(runner, control_suite());
    srunner_add_suite(runner, first_bytes_suite());
    add_part(runner, field_rules_suite);
    srunner_add_suite(runner, forwarded_suite());
    add_part(runner, proxy_header_suite);
    srunner_add_suite(runner, trace_context_suite());
    add_part(runner, head_blocks_suite);
    add_part(runner, hpack_suite);
    add_part(runner, http2_block_suite);
    add_part(runner, http2_budget_suite);
    add_part(runner, http2_chance_suite);
    add_part(runner, http2_closed_suite);
    add_part(runner, http2_fields_suite);
    add_part(runner, http2_frame_suite);
    add_part(runner, http2_replies_suite);
    add_part(runner, http2_session_suite);
    add_part(runner, http2_uploads_suite);
    add_part(runner, spans_suite);
    add_part(runner, fleet_suite);
    srunner_add_suite(runner, freshness_suite());
    add_part(runner, history_suite);
    add_part(runner, bounds_suite);
    add_part(runner, helper_answer_suite);
    add_part(runner, info_text_suite);
    add_part(runner, log_entry_suite);
    add_part(runner, inspections_suite);
    srunner_add_suite(runner, http1_requests_suite());
    srunner_add_suite(runner, http1_replies_suite());
    srunner_add_suite(runner, http1_ends_suite());
    add_part(runner, server_identity_suite);
    add_part(runner, authentication_suite);
    add_part(runner, leaf_suite);
    add_part(runner, limit_table_suite);
    srunner_add_suite(runner, range_suite());
    add_part(runner, intercept_rules_suite);
    add_part(runner, refusals_suite);
    add_part(runner, access_rules_suite);
    srunner_add_suite(runner, egress_suite());
    srunner_add_suite(runner, text_template_suite());
    srunner_add_suite(runner, ticket_keys_suite());
    srunner_add_suite(runner, vary_suite());
    srunner_add_suite(runner, verify_suite());
    add_part(runner, pki_suite);
    add_part(runner, wire_suite);
    add_part(runner, exchange_suite);
    add_part(runner, service_tag_suite);
    add_part(runner, inside_head_suite);
    add_part(runner, inside_concurrency_suite);
    add_part(runner, inside_remote_suite);
    add_part(runner, inside_slow_suite);
    add_part(runner, runner_drive_suite);
    srunner_add_suite(runner, runner_ring_suite());
    add_part(runner, disk_record_suite);
    srunner_add_suite(runner, object_suite());
    add_part(runner, disk_index_suite);
    add_part(runner, disk_volume_suite);
    add_part(runner, disk_stream_suite);
    add_part(runner, disk_damage_suite);
    add_part(runner, purge_log_suite);
    add_part(runner, admission_filter_suite);
    add_part(runner, chain_suite);
    add_part(runner, verdicts_suite);
    srunner_add_suite(runner, tls_bio_suite());
    srunner_add_suite(runner, tls_kernel_suite());
    srunner_add_suite(runner, tls_stream_suite());
    srunner_add_suite(runner, transaction_suite());
    srunner_add_suite(runner, access_log_suite());
    add_part(runner, events_suite);
    add_part(runner, waiting_download_suite);
    add_part(runner, lists_suite);
    srunner_run_all(runner, CK_NORMAL);
    if (left_out > 0)
        printf("%zu tests need parts that are not there\n", left_out);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_scratch();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
