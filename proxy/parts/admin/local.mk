if PART_ADMIN
proxy_libproxy_a_SOURCES += \
	proxy/parts/admin/part.c proxy/parts/admin/part_pages.h \
	proxy/parts/admin/admin.c proxy/parts/admin/admin.h \
	proxy/parts/admin/admin_tls.c proxy/parts/admin/admin_tls.h \
	proxy/parts/admin/apart.c proxy/parts/admin/apart.h \
	proxy/parts/admin/bounds.def \
	proxy/parts/admin/dns_page.c proxy/parts/admin/dns_page.h \
	proxy/parts/admin/helper_options.c proxy/parts/admin/helper_options.h \
	proxy/parts/admin/helperd_call.c proxy/parts/admin/helperd_call.h \
	proxy/parts/admin/helperd_patience.c proxy/parts/admin/helperd_patience.h \
	proxy/parts/admin/helper_answer.c proxy/parts/admin/helper_answer.h \
	proxy/parts/admin/helper_numbers.c proxy/parts/admin/helper_numbers.h \
	proxy/parts/admin/helpers_page.c proxy/parts/admin/helpers_page.h \
	proxy/parts/admin/history.c proxy/parts/admin/history.h proxy/parts/admin/history.def \
	proxy/parts/admin/web_files.c proxy/parts/admin/web_files.h \
	proxy/parts/admin/metric_text.c proxy/parts/admin/metric_text.h \
	proxy/parts/admin/metrics_page.c proxy/parts/admin/metrics_page.h \
	proxy/parts/admin/origins_page.c proxy/parts/admin/origins_page.h \
	proxy/parts/admin/certificates_page.c proxy/parts/admin/certificates_page.h \
	proxy/parts/admin/trust_page.c proxy/parts/admin/trust_page.h \
	proxy/parts/admin/cache_call.c proxy/parts/admin/cache_call.h \
	proxy/parts/admin/cache_object_page.c proxy/parts/admin/cache_object_page.h \
	proxy/parts/admin/cache_page.c proxy/parts/admin/cache_page.h \
	proxy/parts/admin/connections.c proxy/parts/admin/connections.h \
	proxy/parts/admin/request_counts.c proxy/parts/admin/request_counts.h \
	proxy/parts/admin/resolver_report.c proxy/parts/admin/resolver_report.h \
	proxy/parts/admin/worker_report.c proxy/parts/admin/worker_report.h \
	proxy/parts/admin/settings.c proxy/parts/admin/settings.h \
	proxy/parts/admin/option_path.c proxy/parts/admin/option_path.h \
	proxy/parts/admin/overrides.c proxy/parts/admin/overrides.h proxy/parts/admin/overrides_file.c \
	proxy/parts/admin/service_change.c proxy/parts/admin/service_change.h \
	proxy/parts/admin/settings_change.c proxy/parts/admin/settings_change.h \
	proxy/parts/admin/settings_plan.c proxy/parts/admin/settings_plan.h \
	proxy/parts/admin/settings_page.c proxy/parts/admin/settings_page.h \
	proxy/parts/admin/service_control_page.c proxy/parts/admin/service_control_page.h \
	proxy/parts/admin/strict.c proxy/parts/admin/strict.h \
	proxy/parts/admin/terminator.c proxy/parts/admin/terminator.h \
	proxy/parts/admin/audit.c proxy/parts/admin/audit.h \
	proxy/parts/admin/page_reply.c proxy/parts/admin/page_reply.h \
	proxy/parts/admin/guard.c proxy/parts/admin/guard.h \
	proxy/parts/admin/request.c proxy/parts/admin/request.h \
	proxy/parts/admin/page.c proxy/parts/admin/page.h \
	proxy/parts/admin/answer.c proxy/parts/admin/answer.h proxy/parts/admin/answer_text.c proxy/parts/admin/answer_text.h \
	proxy/parts/admin/settings_json.c proxy/parts/admin/settings_schema.c \
	proxy/parts/admin/settings_list.c proxy/parts/admin/settings_list.h \
	proxy/parts/admin/operators.c proxy/parts/admin/operators.h \
	proxy/parts/admin/settings_text.c proxy/parts/admin/settings_text.h \
	proxy/parts/admin/api.c proxy/parts/admin/api.h proxy/parts/admin/call.h proxy/parts/admin/calls.def

# The web page is part of the program.
web_names = index.html icon.svg page.css page.js api.js chart.js element.js events.js form.js format.js \
	view_overview.js view_services.js view_helpers.js view_origins.js \
	view_inspect.js view_transaction.js view_certificates.js view_clients.js view_cache.js view_live.js \
	body.js difference.js server_change.js
web_paths = $(web_names:%=$(srcdir)/proxy/parts/admin/web/%)
nodist_proxy_libproxy_a_SOURCES += proxy/parts/admin/web_table.c
CLEANFILES += proxy/parts/admin/web_table.c
proxy/parts/admin/web_table.c: $(srcdir)/proxy/parts/admin/local.mk $(srcdir)/proxy/parts/admin/web/embed.sh $(web_paths)
	$(AM_V_GEN)$(MKDIR_P) proxy/parts/admin && \
	$(SHELL) $(srcdir)/proxy/parts/admin/web/embed.sh $(srcdir)/proxy/parts/admin/web $(web_names) > $@.new && mv $@.new $@

# Its client, and what retortctl and the programs that it runs share.
if CURL
bin_PROGRAMS += proxy/retortctl
helper_PROGRAMS += proxy/retort-logs
noinst_LIBRARIES += proxy/libtools.a
proxy_libtools_a_CPPFLAGS = $(proxy_cppflags)
proxy_libtools_a_CFLAGS = $(proxy_cflags)
proxy_libtools_a_SOURCES = \
	proxy/tools/command.c proxy/tools/command.h \
	proxy/tools/command_help.c proxy/tools/command_line.c \
	proxy/tools/icap_command.c proxy/tools/icap_command.h \
	proxy/tools/log_entry.c proxy/tools/log_entry.h \
	proxy/tools/tally.c proxy/tools/tally.h \
	proxy/tools/terminal.c proxy/tools/terminal.h

proxy_retortctl_CPPFLAGS = $(proxy_cppflags) -DHELPER_DIR='"$(helperdir)"'
proxy_retortctl_CFLAGS = $(proxy_cflags)
proxy_retortctl_SOURCES = \
	proxy/tools/main.c proxy/tools/commands.h \
	proxy/tools/ca_command.c \
	proxy/tools/cache_command.c \
	proxy/tools/transfer.c proxy/tools/transfer.h \
	proxy/tools/event_lines.c proxy/tools/event_lines.h \
	proxy/tools/event_reader.c proxy/tools/event_reader.h \
	proxy/tools/tail_command.c \
	proxy/tools/top_command.c \
	proxy/tools/command_completion.c \
	proxy/tools/page_command.c \
	proxy/tools/metrics_json.c \
	proxy/tools/admin_page.c proxy/tools/admin_page.h \
	proxy/tools/url_jobs.c proxy/tools/url_jobs.h \
	proxy/tools/http_call.c proxy/tools/http_call.h \
	proxy/tools/helperd_client.c \
	proxy/tools/icap_record.c proxy/tools/icap_show.c \
	proxy/tools/words_command.c
proxy_retortctl_LDADD = proxy/libtools.a $(proxy_libs)

proxy_retort_icap_replay_CPPFLAGS = $(proxy_cppflags)
proxy_retort_icap_replay_CFLAGS = $(proxy_cflags)
proxy_retort_icap_replay_SOURCES = proxy/tools/icap_replay.c proxy/tools/difference.c proxy/tools/difference.h
proxy_retort_icap_replay_LDADD = proxy/libtools.a $(proxy_libs)

proxy_retort_logs_CPPFLAGS = $(proxy_cppflags)
proxy_retort_logs_CFLAGS = $(proxy_cflags)
proxy_retort_logs_SOURCES = proxy/tools/logs.c
proxy_retort_logs_LDADD = proxy/libtools.a $(proxy_libs)
endif

tests_unit_proxy_unit_proxy_SOURCES += \
	proxy/tools/event_lines.c proxy/tools/log_entry.c \
	proxy/tools/terminal.c \
	tests/unit/proxy/test_bounds.c \
	tests/unit/proxy/test_helper_answer.c \
	tests/unit/proxy/test_history.c \
	tests/unit/proxy/test_log_record.c \
	tests/unit/proxy/test_settings_json.c
# retortctl's client asks the admin plane.
if CURL
tests_unit_proxy_unit_proxy_SOURCES += \
	proxy/tools/http_call.c proxy/tools/transfer.c \
	tests/unit/proxy/test_admin.c tests/unit/proxy/test_ctl.c
endif
endif
EXTRA_DIST += proxy/parts/admin/web
