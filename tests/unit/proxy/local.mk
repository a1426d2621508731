# Unit tests of proxy/: settings, URL classes, the admin plane, retortctl.
check_PROGRAMS += tests/unit/proxy/unit-proxy
tests_unit_proxy_unit_proxy_CPPFLAGS = $(AM_CPPFLAGS) $(proxy_includes) -I$(top_srcdir)/tests/unit \
	-DSOURCE_DIRECTORY='"$(abs_top_srcdir)"'
tests_unit_proxy_unit_proxy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_proxy_unit_proxy_SOURCES = \
	tests/unit/guard.c tests/unit/guard.h \
	tests/unit/proxy/certificate_lab.c tests/unit/proxy/certificate_lab.h \
	tests/unit/proxy/authority_lab.c tests/unit/proxy/authority_lab.h \
	tests/unit/proxy/client_lab.c tests/unit/proxy/client_lab.h \
	tests/unit/proxy/store_bench.c tests/unit/proxy/store_bench.h \
	tests/unit/proxy/suites.h \
	tests/unit/proxy/test_access_log.c \
	tests/unit/proxy/test_address.c \
	tests/unit/proxy/test_client_hello.c \
	tests/unit/proxy/test_certificate_set.c \
	tests/unit/proxy/test_connection.c \
	tests/unit/proxy/test_control.c \
	tests/unit/proxy/test_dns.c \
	tests/unit/proxy/test_first_bytes.c \
	tests/unit/proxy/test_forwarded.c \
	tests/unit/proxy/test_freshness.c \
	tests/unit/proxy/test_http1_ends.c \
	tests/unit/proxy/test_http1_replies.c \
	tests/unit/proxy/test_http1_requests.c \
	tests/unit/proxy/test_runner_ring.c \
	tests/unit/proxy/test_manual.c \
	tests/unit/proxy/test_map.c \
	tests/unit/proxy/test_name.c \
	tests/unit/proxy/test_object.c \
	tests/unit/proxy/test_origins.c \
	tests/unit/proxy/test_srv.c \
	tests/unit/proxy/test_policy.c \
	tests/unit/proxy/test_trace_context.c \
	tests/unit/proxy/test_purge.c \
	tests/unit/proxy/test_range.c \
	tests/unit/proxy/test_reach.c \
	tests/unit/proxy/test_rules.c \
	tests/unit/proxy/test_settings.c \
	tests/unit/proxy/test_settings_errors.c \
	tests/unit/proxy/test_config_faults.c \
	tests/unit/proxy/test_store.c \
	tests/unit/proxy/test_text_template.c \
	tests/unit/proxy/test_ticket_keys.c \
	tests/unit/proxy/test_tls_bio.c \
	tests/unit/proxy/test_tls_kernel.c \
	tests/unit/proxy/test_tls_stream.c \
	tests/unit/proxy/test_transaction.c \
	tests/unit/proxy/test_url_class.c \
	tests/unit/proxy/test_class.c \
	tests/unit/proxy/test_vary.c \
	tests/unit/proxy/test_verify.c \
	tests/unit/proxy/tls_lab.c tests/unit/proxy/tls_lab.h \
	tests/unit/proxy/transaction_lab.c tests/unit/proxy/transaction_lab.h \
	tests/unit/proxy/unit.c
tests_unit_proxy_unit_proxy_LDADD = $(proxy_libs) $(CHECK_LIBS)
TESTS += tests/unit/proxy/unit-proxy
