# Fuzzers: ./configure CC=clang --enable-fuzz && make fuzzers, then tests/fuzz/run.sh BUILDDIR.
# How to run them for longer, and how to add one: docs/TESTING.md.
fuzzers_common = tests/fuzz/fuzz_chunked tests/fuzz/fuzz_fields tests/fuzz/fuzz_helper_answer tests/fuzz/fuzz_preference tests/fuzz/fuzz_request \
	tests/fuzz/fuzz_response tests/fuzz/fuzz_url
fuzzers_proxy = tests/fuzz/fuzz_event_lines tests/fuzz/fuzz_helper_pools tests/fuzz/fuzz_info_text tests/fuzz/fuzz_log_record \
	tests/fuzz/fuzz_client_hello tests/fuzz/fuzz_leaf tests/fuzz/fuzz_control tests/fuzz/fuzz_recorded tests/fuzz/fuzz_freshness \
	tests/fuzz/fuzz_forwarded tests/fuzz/fuzz_icap \
	tests/fuzz/fuzz_http2_fields tests/fuzz/fuzz_http2_frame tests/fuzz/fuzz_http2_origin tests/fuzz/fuzz_http2_session \
	tests/fuzz/fuzz_icap_call \
	tests/fuzz/fuzz_dns_answer \
	tests/fuzz/fuzz_range tests/fuzz/fuzz_record tests/fuzz/fuzz_service_frames tests/fuzz/fuzz_settings tests/fuzz/fuzz_text_template \
	tests/fuzz/fuzz_trace_context \
	tests/fuzz/fuzz_vary
fuzzers_services = tests/fuzz/fuzz_filter tests/fuzz/fuzz_image tests/fuzz/fuzz_page
fuzzers = $(fuzzers_common) $(fuzzers_proxy) $(fuzzers_services)
if LLHTTP
fuzzers += tests/fuzz/fuzz_compare
endif
if PART_HTTP2
if NGHTTP2
fuzzers += tests/fuzz/fuzz_hpack
endif
endif
if PART_IDENTITY
fuzzers += tests/fuzz/fuzz_authorization tests/fuzz/fuzz_htpasswd tests/fuzz/fuzz_jwt
endif
if PART_LISTS
fuzzers += tests/fuzz/fuzz_class_list
endif
if PART_PROXY_PROTOCOL
fuzzers += tests/fuzz/fuzz_proxy_header
endif
if PART_REWRITE
fuzzers += tests/fuzz/fuzz_field_rules
endif
if PART_FLEET
fuzzers += tests/fuzz/fuzz_fleet_event
endif
if PART_CODINGS
fuzzers += tests/fuzz/fuzz_decoder
endif
if FUZZ
noinst_PROGRAMS += $(fuzzers)
fuzzers: $(fuzzers)
endif
.PHONY: fuzzers

EXTRA_DIST += tests/fuzz/run.sh tests/fuzz/corpus tests/fuzz/http.dict

fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_proxy_cppflags = $(AM_CPPFLAGS) $(proxy_includes)
fuzz_lines = tests/fuzz/lines.c tests/fuzz/lines.h tests/fuzz/naive.c tests/fuzz/naive.h
fuzz_endpoint = tests/fuzz/endpoint.c tests/fuzz/endpoint.h tests/fuzz/steps.c tests/fuzz/steps.h \
	tests/fuzz/lab_needs.c tests/unit/proxy/client_lab.c tests/unit/proxy/client_lab.h

tests_fuzz_fuzz_chunked_SOURCES = tests/fuzz/fuzz_chunked.c
tests_fuzz_fuzz_chunked_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_chunked_LDADD = common/libcommon.la
tests_fuzz_fuzz_fields_SOURCES = tests/fuzz/fuzz_fields.c $(fuzz_lines)
tests_fuzz_fuzz_fields_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_fields_LDADD = common/libcommon.la
tests_fuzz_fuzz_request_SOURCES = \
	tests/fuzz/fuzz_head.c tests/fuzz/fuzz_head.h tests/fuzz/fuzz_request.c
tests_fuzz_fuzz_request_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_request_LDADD = common/libcommon.la
tests_fuzz_fuzz_response_SOURCES = \
	tests/fuzz/fuzz_head.c tests/fuzz/fuzz_head.h tests/fuzz/fuzz_response.c
tests_fuzz_fuzz_response_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_response_LDADD = common/libcommon.la
tests_fuzz_fuzz_preference_SOURCES = tests/fuzz/fuzz_preference.c $(fuzz_lines)
tests_fuzz_fuzz_preference_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_preference_LDADD = common/libcommon.la
tests_fuzz_fuzz_url_SOURCES = tests/fuzz/fuzz_url.c
tests_fuzz_fuzz_url_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_url_LDADD = common/libcommon.la
tests_fuzz_fuzz_helper_answer_SOURCES = tests/fuzz/fuzz_helper_answer.c $(fuzz_lines)
tests_fuzz_fuzz_helper_answer_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_helper_answer_LDADD = common/libservice.la common/libcommon.la

tests_fuzz_fuzz_class_list_SOURCES = tests/fuzz/fuzz_class_list.c
tests_fuzz_fuzz_class_list_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_class_list_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_class_list_LDADD = $(proxy_libs)
tests_fuzz_fuzz_client_hello_SOURCES = tests/fuzz/fuzz_client_hello.c
tests_fuzz_fuzz_client_hello_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_client_hello_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_client_hello_LDADD = $(proxy_libs)
tests_fuzz_fuzz_authorization_SOURCES = tests/fuzz/fuzz_authorization.c
tests_fuzz_fuzz_authorization_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_authorization_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_authorization_LDADD = $(proxy_libs)
tests_fuzz_fuzz_htpasswd_SOURCES = tests/fuzz/fuzz_htpasswd.c
tests_fuzz_fuzz_htpasswd_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_htpasswd_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_htpasswd_LDADD = $(proxy_libs)
tests_fuzz_fuzz_jwt_SOURCES = tests/fuzz/fuzz_jwt.c
tests_fuzz_fuzz_jwt_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_jwt_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_jwt_LDADD = $(proxy_libs)
tests_fuzz_fuzz_dns_answer_SOURCES = tests/fuzz/fuzz_dns_answer.c
tests_fuzz_fuzz_dns_answer_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_dns_answer_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_dns_answer_LDADD = $(proxy_libs)
tests_fuzz_fuzz_proxy_header_SOURCES = tests/fuzz/fuzz_proxy_header.c
tests_fuzz_fuzz_proxy_header_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_proxy_header_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_proxy_header_LDADD = $(proxy_libs)
tests_fuzz_fuzz_leaf_SOURCES = tests/fuzz/fuzz_leaf.c
tests_fuzz_fuzz_leaf_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_leaf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_leaf_LDADD = $(proxy_libs)
tests_fuzz_fuzz_field_rules_SOURCES = tests/fuzz/fuzz_field_rules.c $(fuzz_lines)
tests_fuzz_fuzz_field_rules_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_field_rules_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_field_rules_LDADD = $(proxy_libs)
tests_fuzz_fuzz_text_template_SOURCES = tests/fuzz/fuzz_text_template.c $(fuzz_lines)
tests_fuzz_fuzz_text_template_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_text_template_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_text_template_LDADD = $(proxy_libs)
tests_fuzz_fuzz_forwarded_SOURCES = tests/fuzz/fuzz_forwarded.c $(fuzz_lines)
tests_fuzz_fuzz_forwarded_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_forwarded_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_forwarded_LDADD = $(proxy_libs)
tests_fuzz_fuzz_control_SOURCES = tests/fuzz/fuzz_control.c $(fuzz_lines)
tests_fuzz_fuzz_control_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_control_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_control_LDADD = $(proxy_libs)
tests_fuzz_fuzz_decoder_SOURCES = tests/fuzz/fuzz_decoder.c $(fuzz_lines)
tests_fuzz_fuzz_decoder_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_decoder_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_decoder_LDADD = $(proxy_libs)
tests_fuzz_fuzz_recorded_SOURCES = tests/fuzz/fuzz_recorded.c $(fuzz_lines)
tests_fuzz_fuzz_recorded_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_recorded_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_recorded_LDADD = $(proxy_libs)
tests_fuzz_fuzz_event_lines_SOURCES = tests/fuzz/fuzz_event_lines.c proxy/tools/event_lines.c $(fuzz_lines)
tests_fuzz_fuzz_event_lines_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_event_lines_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_event_lines_LDADD = $(proxy_libs)
tests_fuzz_fuzz_fleet_event_SOURCES = tests/fuzz/fuzz_fleet_event.c
tests_fuzz_fuzz_fleet_event_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_fleet_event_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_fleet_event_LDADD = $(proxy_libs)
tests_fuzz_fuzz_helper_pools_SOURCES = tests/fuzz/fuzz_helper_pools.c
tests_fuzz_fuzz_helper_pools_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_helper_pools_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_helper_pools_LDADD = $(proxy_libs)
tests_fuzz_fuzz_info_text_SOURCES = tests/fuzz/fuzz_info_text.c $(fuzz_lines)
tests_fuzz_fuzz_info_text_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_info_text_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_info_text_LDADD = $(proxy_libs)
tests_fuzz_fuzz_log_record_SOURCES = tests/fuzz/fuzz_log_record.c proxy/tools/log_entry.c $(fuzz_lines)
tests_fuzz_fuzz_log_record_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_log_record_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_log_record_LDADD = $(proxy_libs)
tests_fuzz_fuzz_freshness_SOURCES = tests/fuzz/fuzz_freshness.c $(fuzz_lines)
tests_fuzz_fuzz_freshness_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_freshness_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_freshness_LDADD = $(proxy_libs)
tests_fuzz_fuzz_icap_SOURCES = tests/fuzz/fuzz_icap.c $(fuzz_lines)
tests_fuzz_fuzz_icap_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_icap_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_icap_LDADD = $(proxy_libs)
tests_fuzz_fuzz_icap_call_SOURCES = tests/fuzz/fuzz_icap_call.c $(fuzz_lines)
tests_fuzz_fuzz_icap_call_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_icap_call_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_icap_call_LDADD = $(proxy_libs)
tests_fuzz_fuzz_service_frames_SOURCES = tests/fuzz/fuzz_service_frames.c $(fuzz_lines)
tests_fuzz_fuzz_service_frames_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_service_frames_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_service_frames_LDADD = $(proxy_libs)
tests_fuzz_fuzz_http2_fields_SOURCES = tests/fuzz/fuzz_http2_fields.c $(fuzz_lines)
tests_fuzz_fuzz_http2_fields_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_http2_fields_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http2_fields_LDADD = $(proxy_libs)
tests_fuzz_fuzz_http2_frame_SOURCES = tests/fuzz/fuzz_http2_frame.c
tests_fuzz_fuzz_http2_frame_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_http2_frame_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http2_frame_LDADD = $(proxy_libs)
tests_fuzz_fuzz_http2_origin_SOURCES = tests/fuzz/fuzz_http2_origin.c $(fuzz_endpoint)
tests_fuzz_fuzz_http2_origin_CPPFLAGS = $(fuzz_proxy_cppflags) -I$(top_srcdir)/tests/unit -I$(top_srcdir)/tests/unit/proxy
tests_fuzz_fuzz_http2_origin_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_fuzz_fuzz_http2_origin_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http2_origin_LDADD = $(proxy_libs)
tests_fuzz_fuzz_http2_session_SOURCES = tests/fuzz/fuzz_http2_session.c $(fuzz_endpoint)
tests_fuzz_fuzz_http2_session_CPPFLAGS = $(fuzz_proxy_cppflags) -I$(top_srcdir)/tests/unit -I$(top_srcdir)/tests/unit/proxy
tests_fuzz_fuzz_http2_session_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_fuzz_fuzz_http2_session_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http2_session_LDADD = $(proxy_libs)
tests_fuzz_fuzz_range_SOURCES = tests/fuzz/fuzz_range.c $(fuzz_lines)
tests_fuzz_fuzz_range_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_range_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_range_LDADD = $(proxy_libs)
tests_fuzz_fuzz_record_SOURCES = tests/fuzz/fuzz_record.c $(fuzz_lines)
tests_fuzz_fuzz_record_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_record_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_record_LDADD = $(proxy_libs)
tests_fuzz_fuzz_settings_SOURCES = tests/fuzz/fuzz_settings.c
tests_fuzz_fuzz_settings_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_settings_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_settings_LDADD = $(proxy_libs)
tests_fuzz_fuzz_trace_context_SOURCES = tests/fuzz/fuzz_trace_context.c
tests_fuzz_fuzz_trace_context_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_trace_context_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_trace_context_LDADD = $(proxy_libs)
tests_fuzz_fuzz_vary_SOURCES = tests/fuzz/fuzz_vary.c $(fuzz_lines)
tests_fuzz_fuzz_vary_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_vary_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_vary_LDADD = $(proxy_libs)

tests_fuzz_fuzz_filter_SOURCES = tests/fuzz/fuzz_filter.c
tests_fuzz_fuzz_filter_CPPFLAGS = $(services_cppflags)
tests_fuzz_fuzz_filter_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_filter_LDADD = icap-services/libalgorithms.la $(adremover_libs)
tests_fuzz_fuzz_image_SOURCES = tests/fuzz/fuzz_image.c
tests_fuzz_fuzz_image_CPPFLAGS = $(services_cppflags)
tests_fuzz_fuzz_image_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_image_LDADD = icap-services/libalgorithms.la $(picture_libs)
tests_fuzz_fuzz_page_SOURCES = tests/fuzz/fuzz_page.c
tests_fuzz_fuzz_page_CPPFLAGS = $(services_cppflags)
tests_fuzz_fuzz_page_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_page_LDADD = icap-services/libalgorithms.la

# Retort's parser and llhttp's on the same heads: as a test, and as a fuzzer.
compare_cppflags = $(AM_CPPFLAGS) $(LLHTTP_CPPFLAGS)
compare_sources = \
	tests/fuzz/compare.c tests/fuzz/compare.h \
	tests/fuzz/peer_llhttp.c tests/fuzz/peer_llhttp_api.c \
	tests/fuzz/reading.c tests/fuzz/reading.h \
	tests/fuzz/repair.c tests/fuzz/repair.h
tests_fuzz_fuzz_compare_SOURCES = tests/fuzz/fuzz_compare.c $(compare_sources)
tests_fuzz_fuzz_compare_CPPFLAGS = $(compare_cppflags)
tests_fuzz_fuzz_compare_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_compare_LDADD = common/libcommon.la
tests_fuzz_compare_heads_SOURCES = tests/fuzz/compare_heads.c $(compare_sources)
tests_fuzz_compare_heads_CPPFLAGS = $(compare_cppflags)
tests_fuzz_compare_heads_LDADD = common/libcommon.la
if LLHTTP
check_PROGRAMS += tests/fuzz/compare-heads
TESTS += tests/fuzz/compare-corpora.sh
endif
EXTRA_DIST += tests/fuzz/compare-corpora.sh

# Retort's HPACK and that of nghttp2 on the same blocks: as a test, and as a fuzzer.
tests_fuzz_fuzz_hpack_SOURCES = tests/fuzz/fuzz_hpack.c tests/fuzz/fuzz_hpack.h
tests_fuzz_fuzz_hpack_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_fuzz_hpack_CFLAGS = $(AM_CFLAGS) $(NGHTTP2_CFLAGS)
tests_fuzz_fuzz_hpack_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_hpack_LDADD = $(proxy_libs) $(NGHTTP2_LIBS)
tests_fuzz_compare_hpack_SOURCES = tests/fuzz/compare_hpack.c tests/fuzz/fuzz_hpack.c tests/fuzz/fuzz_hpack.h
tests_fuzz_compare_hpack_CPPFLAGS = $(fuzz_proxy_cppflags)
tests_fuzz_compare_hpack_CFLAGS = $(AM_CFLAGS) $(NGHTTP2_CFLAGS)
tests_fuzz_compare_hpack_LDADD = $(proxy_libs) $(NGHTTP2_LIBS)
if PART_HTTP2
if NGHTTP2
check_PROGRAMS += tests/fuzz/compare-hpack
TESTS += tests/fuzz/compare-hpack.sh
endif
endif
EXTRA_DIST += tests/fuzz/compare-hpack.sh
