/*
 * The suites of the proxy's unit tests, and what they share.
 *
 *     char *path = scratch_file("retort.conf", "workers = 1\n");    in a directory of this run
 *     char *text = read_text(path);
 *
 * Threads: one; check forks a process for each test.
 */
#ifndef RETORT_TESTS_UNIT_PROXY_SUITES_H
#define RETORT_TESTS_UNIT_PROXY_SUITES_H

#include "guard.h"
#include "http/head.h"
#include "settings/settings.h"

#include <check.h>
#include <stdlib.h>

Suite *address_suite(void);
Suite *settings_suite(void);
Suite *settings_errors_suite(void);
Suite *settings_json_suite(void) __attribute__((weak));
Suite *config_faults_suite(void);
Suite *url_class_suite(void);
Suite *class_suite(void);
Suite *policy_suite(void);
Suite *rules_suite(void);
Suite *map_suite(void);
Suite *origins_suite(void);
Suite *srv_suite(void);
Suite *manual_suite(void);
Suite *admin_suite(void) __attribute__((weak));
Suite *ctl_suite(void) __attribute__((weak));
Suite *store_suite(void);
Suite *purge_suite(void);
Suite *disk_suite(void) __attribute__((weak));
Suite *dns_suite(void);
Suite *client_hello_suite(void);
Suite *certificate_set_suite(void);
Suite *connection_suite(void);
Suite *host_check_suite(void) __attribute__((weak));
Suite *icap_host_suite(void) __attribute__((weak));
Suite *content_suite(void) __attribute__((weak));
Suite *control_suite(void);
Suite *exchange_suite(void) __attribute__((weak));
Suite *first_bytes_suite(void);
Suite *head_blocks_suite(void) __attribute__((weak));
Suite *field_rules_suite(void) __attribute__((weak));
Suite *forwarded_suite(void);
Suite *proxy_header_suite(void) __attribute__((weak));
Suite *spans_suite(void) __attribute__((weak));
Suite *fleet_suite(void) __attribute__((weak));
Suite *trace_context_suite(void);
Suite *freshness_suite(void);
Suite *history_suite(void) __attribute__((weak));
Suite *bounds_suite(void) __attribute__((weak));
Suite *helper_answer_suite(void) __attribute__((weak));
Suite *info_text_suite(void) __attribute__((weak));
Suite *log_entry_suite(void) __attribute__((weak));
Suite *inspections_suite(void) __attribute__((weak));
Suite *http1_ends_suite(void);
Suite *limit_table_suite(void) __attribute__((weak));
Suite *http1_replies_suite(void);
Suite *http1_requests_suite(void);
Suite *hpack_suite(void) __attribute__((weak));
Suite *http2_block_suite(void) __attribute__((weak));
Suite *http2_budget_suite(void) __attribute__((weak));
Suite *http2_chance_suite(void) __attribute__((weak));
Suite *http2_closed_suite(void) __attribute__((weak));
Suite *http2_fields_suite(void) __attribute__((weak));
Suite *http2_frame_suite(void) __attribute__((weak));
Suite *http2_replies_suite(void) __attribute__((weak));
Suite *http2_session_suite(void) __attribute__((weak));
Suite *http2_uploads_suite(void) __attribute__((weak));
Suite *intercept_rules_suite(void) __attribute__((weak));
Suite *refusals_suite(void) __attribute__((weak));
Suite *server_identity_suite(void) __attribute__((weak));
Suite *authentication_suite(void) __attribute__((weak));
Suite *leaf_suite(void) __attribute__((weak));
Suite *range_suite(void);
Suite *access_rules_suite(void) __attribute__((weak));
Suite *egress_suite(void);
Suite *text_template_suite(void);
Suite *ticket_keys_suite(void);
Suite *vary_suite(void);
Suite *verify_suite(void);
Suite *pki_suite(void) __attribute__((weak));
Suite *wire_suite(void) __attribute__((weak));
Suite *service_tag_suite(void) __attribute__((weak));
Suite *inside_head_suite(void) __attribute__((weak));
Suite *inside_concurrency_suite(void) __attribute__((weak));
Suite *inside_remote_suite(void) __attribute__((weak));
Suite *inside_slow_suite(void) __attribute__((weak));
Suite *runner_drive_suite(void) __attribute__((weak));
Suite *runner_ring_suite(void);
Suite *disk_record_suite(void) __attribute__((weak));
Suite *object_suite(void);
Suite *disk_index_suite(void) __attribute__((weak));
Suite *disk_volume_suite(void) __attribute__((weak));
Suite *disk_stream_suite(void) __attribute__((weak));
Suite *disk_damage_suite(void) __attribute__((weak));
Suite *purge_log_suite(void) __attribute__((weak));
Suite *admission_filter_suite(void) __attribute__((weak));
Suite *name_suite(void);
Suite *tls_bio_suite(void);
Suite *tls_kernel_suite(void);
Suite *tls_stream_suite(void);
Suite *transaction_suite(void);
Suite *access_log_suite(void);
Suite *events_suite(void) __attribute__((weak));
Suite *waiting_download_suite(void) __attribute__((weak));
Suite *lists_suite(void) __attribute__((weak));
Suite *chain_suite(void) __attribute__((weak));
Suite *verdicts_suite(void) __attribute__((weak));

/* A suite of one test case. */
Suite *suite_of(const char *noun, const TTest *const *tests, size_t count);
/* Further tests of it, which need these parts of retort: names with blanks between them, or "all". Where one of the parts is
 * left out, so are they. */
void suite_add_with(Suite *suite, const char *parts, const TTest *const *tests, size_t count);

/* The directory that the tests may write to; removed with its files at the end. */
const char *scratch(void);
/* Writes a file there; the caller frees its path. */
char *scratch_file(const char *name, const char *text);
char *read_text(const char *path);
/* A file of the source tree. */
char *source_path(const char *path);

/* A head of fields from "Name: value" lines, each value with a page behind it that may not be read.
 */
void head_from(struct http_head *head, const char *lines);

/* A certificate with these extensions, in the form of openssl.cnf; NULL: without. */
struct x509_st *certificate_with(const char *names, const char *access);

/* Settings from text; the test fails when they are refused. */
struct settings *settings_from(const char *text);

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#endif
