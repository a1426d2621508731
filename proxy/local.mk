# The proxy.
sbin_PROGRAMS += proxy/retort

proxy_includes = -I$(top_srcdir)/proxy -I$(top_srcdir)/proxy/core -I$(top_srcdir)/proxy/parts
proxy_cppflags = $(AM_CPPFLAGS) $(proxy_includes)
proxy_cflags = $(AM_CFLAGS) $(CARES_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) \
	$(MICROHTTPD_CFLAGS) $(URING_CFLAGS) $(HIREDIS_CFLAGS) $(XXHASH_CFLAGS) $(TLS_CFLAGS) \
	$(ZLIB_CFLAGS) $(BROTLI_DECODER_CFLAGS) $(ZSTD_CFLAGS) $(GSSAPI_CFLAGS) $(CURL_CFLAGS)

# Everything but main, so that tests can link it.
noinst_LIBRARIES += proxy/libproxy.a
proxy_libproxy_a_CPPFLAGS = $(proxy_cppflags) -DSERVICES_DIRECTORY='"$(servicemoduledir)"' \
	-DSERVICE_PROGRAM='"$(libexecdir)/retort/retort-service"'
proxy_libproxy_a_CFLAGS = $(proxy_cflags)
proxy_libproxy_a_SOURCES = \
	proxy/core/cache/ban.c proxy/core/cache/ban.h \
	proxy/core/cache/body.c proxy/core/cache/body.h proxy/core/cache/content_numbers.h \
	proxy/core/cache/body_reader.c proxy/core/cache/body_reader.h \
	proxy/core/cache/conditional.c proxy/core/cache/conditional.h \
	proxy/core/cache/cache_control.c proxy/core/cache/cache_control.h \
	proxy/core/cache/shared_fetch.c proxy/core/cache/shared_fetch.h \
	proxy/core/cache/freshness.c proxy/core/cache/freshness.h \
	proxy/core/cache/key.c proxy/core/cache/key.h \
	proxy/core/cache/memory.c proxy/core/cache/memory.h \
	proxy/core/cache/name.c proxy/core/cache/name.h \
	proxy/core/cache/object.c proxy/core/cache/object.h \
	proxy/core/cache/filter_table.c proxy/core/cache/filter_table.h \
	proxy/core/cache/purge.c proxy/core/cache/purge.h \
	proxy/core/cache/range.c proxy/core/cache/range.h \
	proxy/core/cache/removal.c proxy/core/cache/removal.h \
	proxy/core/cache/second_level.h \
	proxy/core/cache/stored.c proxy/core/cache/stored.h \
	proxy/core/cache/replacement.c proxy/core/cache/replacement.h \
	proxy/core/cache/shard.c proxy/core/cache/shard.h \
	proxy/core/cache/store.c proxy/core/cache/store.h \
	proxy/core/cache/walk.c proxy/core/cache/walk.h \
	proxy/core/cache/vary.c proxy/core/cache/vary.h \
	proxy/core/client/requester.h \
	proxy/core/cache/vouching.h \
	proxy/core/client/body_clock.c proxy/core/client/body_clock.h \
	proxy/core/client/clients.c proxy/core/client/clients.h \
	proxy/core/client/exchange.c proxy/core/client/exchange.h \
	proxy/core/client/identity.c proxy/core/client/identity.h \
	proxy/core/client/handshake.c proxy/core/client/handshake.h \
	proxy/core/client/pace.h \
	proxy/core/client/intercepted.c proxy/core/client/intercepted.h \
	proxy/core/client/first_bytes.c proxy/core/client/first_bytes.h \
	proxy/core/client/redirection.h \
	proxy/core/client/http1/http1.h \
	proxy/core/client/http1/connection.c proxy/core/client/http1/connection.h \
	proxy/core/client/http1/exchange.c proxy/core/client/http1/exchange.h \
	proxy/core/client/http1/outbox.c proxy/core/client/http1/outbox.h \
	proxy/core/client/http1/request_body.c proxy/core/client/http1/request_body.h \
	proxy/core/client/http1/request_head.c proxy/core/client/http1/request_head.h \
	proxy/core/client/http1/reply_sender.c proxy/core/client/http1/reply_sender.h \
	proxy/core/log/format.c proxy/core/log/format.h proxy/core/log/fields.def \
	proxy/core/log/line.c proxy/core/log/line.h \
	proxy/core/log/place.c proxy/core/log/place.h \
	proxy/core/log/channel.c proxy/core/log/channel.h \
	proxy/core/log/target.c proxy/core/log/target.h \
	proxy/core/net/address.c proxy/core/net/address.h \
	proxy/core/net/address_order.c proxy/core/net/address_order.h \
	proxy/core/net/connect_race.c proxy/core/net/connect_race.h \
	proxy/core/net/dns_message.c proxy/core/net/dns_message.h \
	proxy/core/net/dns_channel.c proxy/core/net/dns_channel.h \
	proxy/core/net/hosts_file.c proxy/core/net/hosts_file.h \
	proxy/core/net/connection.c proxy/core/net/connection.h \
	proxy/core/net/context.c proxy/core/net/context.h \
	proxy/core/net/counters.c proxy/core/net/counters.h proxy/core/net/counters.def \
	  proxy/core/net/durations.def \
	proxy/core/net/dial.c proxy/core/net/dial.h \
	proxy/core/net/duplex.c proxy/core/net/duplex.h \
	proxy/core/net/memory_share.c proxy/core/net/memory_share.h \
	proxy/core/net/inherited.c proxy/core/net/inherited.h \
	proxy/core/net/notify.c proxy/core/net/notify.h \
	proxy/core/net/listener.c proxy/core/net/listener.h \
	proxy/core/net/sender.c proxy/core/net/sender.h \
	proxy/core/net/name_review.c proxy/core/net/name_review.h \
	proxy/core/net/own_connections.h \
	proxy/core/net/pool.c proxy/core/net/pool.h \
	proxy/core/net/privileges.c proxy/core/net/privileges.h \
	proxy/core/net/egress.c proxy/core/net/egress.h \
	proxy/core/net/lookup_share.c proxy/core/net/lookup_share.h \
	proxy/core/net/remembered_name.h \
	proxy/core/net/resolver.c proxy/core/net/resolver.h \
	proxy/core/origin/choice.c \
	proxy/core/origin/lookup.c proxy/core/origin/lookup.h \
	proxy/core/origin/member.c proxy/core/origin/member.h \
	proxy/core/origin/source.c proxy/core/origin/source.h \
	proxy/core/origin/group.c proxy/core/origin/group.h \
	proxy/core/origin/host.c proxy/core/origin/host.h \
	proxy/core/origin/slot.c proxy/core/origin/slot.h \
	proxy/core/origin/call.c proxy/core/origin/call.h \
	proxy/core/origin/origin_pool.c proxy/core/origin/origin_pool.h \
	proxy/core/origin/http1/http1.h \
	proxy/core/origin/http1/http1.c \
	proxy/core/net/forwarded.c proxy/core/net/forwarded.h \
	proxy/core/text/text_template.c proxy/core/text/text_template.h proxy/core/text/variables.def \
	proxy/core/secrets/secret_digest.c proxy/core/secrets/secret_digest.h \
	proxy/core/secrets/secret_file.c proxy/core/secrets/secret_file.h \
	proxy/core/tls/bio.c proxy/core/tls/bio.h \
	proxy/core/tls/certificate.c proxy/core/tls/certificate.h \
	proxy/core/tls/certificate_set.c proxy/core/tls/certificate_set.h \
	proxy/core/tls/certificate_text.c proxy/core/tls/certificate_text.h \
	proxy/core/tls/client_authority.c proxy/core/tls/client_authority.h \
	proxy/core/tls/client.c proxy/core/tls/client.h \
	proxy/core/tls/client_hello.c proxy/core/tls/client_hello.h proxy/core/tls/server_name.c proxy/core/tls/server_name.h \
	proxy/core/tls/context.c proxy/core/tls/context.h \
	proxy/core/tls/facts.c proxy/core/tls/facts.h \
	proxy/core/tls/server.c proxy/core/tls/server.h \
	proxy/core/tls/pem_file.c proxy/core/tls/pem_file.h \
	proxy/core/tls/ticket_keys.c proxy/core/tls/ticket_keys.h \
	proxy/core/tls/stream.c proxy/core/tls/stream.h \
	proxy/core/origin/security.c proxy/core/origin/security.h \
	proxy/core/tls/trust.c proxy/core/tls/trust.h proxy/core/tls/trust_files.c proxy/core/tls/trust_files.h \
	proxy/core/tls/verify.c proxy/core/tls/verify.h \
	proxy/core/transaction/access_log_format.c proxy/core/transaction/access_log_format.h \
	proxy/core/transaction/access_log_choice.c proxy/core/transaction/access_log_choice.h \
	proxy/core/transaction/access_log_line.c proxy/core/transaction/access_log_line.h \
	proxy/core/transaction/journal.c proxy/core/transaction/journal.h \
	proxy/core/transaction/access_log.c proxy/core/transaction/access_log.h \
	proxy/core/transaction/adapting.c proxy/core/transaction/adapting.h proxy/core/transaction/asked.h proxy/core/transaction/snapshot.c proxy/core/transaction/snapshot.h \
	proxy/core/transaction/cache_status.c proxy/core/transaction/cache_status.h \
	proxy/core/transaction/caching.c proxy/core/transaction/caching.h \
	proxy/core/transaction/collapse.c proxy/core/transaction/collapse.h \
	proxy/core/transaction/fail.c proxy/core/transaction/fail.h \
	proxy/core/transaction/forwarding.c proxy/core/transaction/forwarding.h \
	proxy/core/transaction/disclosed_identity.c proxy/core/transaction/disclosed_identity.h \
	proxy/core/transaction/hops.c proxy/core/transaction/hops.h \
	proxy/core/transaction/https.c proxy/core/transaction/https.h \
	proxy/core/transaction/internal.c proxy/core/transaction/internal.h \
	proxy/core/transaction/invalidate.c proxy/core/transaction/invalidate.h \
	proxy/core/transaction/join.c proxy/core/transaction/join.h \
	proxy/core/transaction/next_hop.c proxy/core/transaction/next_hop.h \
	proxy/core/transaction/outcome.c proxy/core/transaction/outcome.h \
	proxy/core/transaction/page.c proxy/core/transaction/page.h \
	proxy/core/transaction/pump.c proxy/core/transaction/pump.h \
	proxy/core/transaction/ranges.c proxy/core/transaction/ranges.h \
	proxy/core/transaction/refresh.c proxy/core/transaction/refresh.h \
	proxy/core/transaction/relay.c proxy/core/transaction/relay.h \
	proxy/core/transaction/request.c proxy/core/transaction/request.h \
	proxy/core/transaction/request_rules.c proxy/core/transaction/request_rules.h \
	proxy/core/transaction/response.c proxy/core/transaction/response.h \
	proxy/core/transaction/reverse_map.c proxy/core/transaction/reverse_map.h \
	proxy/core/transaction/route.c proxy/core/transaction/route.h \
	proxy/core/transaction/step.c proxy/core/transaction/step.h \
	proxy/core/transaction/stored_part.c proxy/core/transaction/stored_part.h \
	proxy/core/transaction/stored_source.c proxy/core/transaction/stored_source.h \
	proxy/core/transaction/trace.c proxy/core/transaction/trace.h \
	proxy/core/transaction/transaction.c proxy/core/transaction/transaction.h \
	proxy/core/transaction/variables.c proxy/core/transaction/variables.h \
	proxy/core/transaction/proof.h \
	proxy/core/transaction/watcher.h \
	proxy/core/transaction/steps/receive.c \
	proxy/core/transaction/steps/admit.c proxy/core/transaction/steps/admit.h \
	proxy/core/transaction/access.c proxy/core/transaction/access.h \
	proxy/core/transaction/steps/lookup.c proxy/core/transaction/steps/lookup.h \
	proxy/core/transaction/destination.c proxy/core/transaction/destination.h \
	proxy/core/transaction/early_tunnel.h proxy/core/transaction/limiting.h proxy/core/transaction/head_changes.h \
	proxy/core/transaction/bumped.c proxy/core/transaction/bumped.h \
	proxy/core/transaction/steps/fetch.c proxy/core/transaction/steps/fetch.h \
	proxy/core/transaction/steps/store.c proxy/core/transaction/steps/store.h \
	proxy/core/transaction/steps/tunnel.c proxy/core/transaction/steps/tunnel.h \
	proxy/core/transaction/steps/deliver.c proxy/core/transaction/steps/deliver.h \
	proxy/core/transaction/steps/log.c \
	proxy/core/claims.c proxy/core/claims.h \
	proxy/core/part.c proxy/core/part.h proxy/parts.def \
	proxy/core/server.c proxy/core/server.h \
	proxy/core/readiness.c proxy/core/readiness.h \
	proxy/core/reload.c proxy/core/reload.h \
	proxy/core/configured_names.c proxy/core/configured_names.h \
	proxy/core/xxh3.c \
	proxy/core/turn.c proxy/core/turn.h \
	proxy/core/settings/outcome.h \
	proxy/core/worker.c proxy/core/worker.h proxy/core/worker_internal.h proxy/core/worker_orders.c \
	proxy/core/match/literals.c proxy/core/match/literals.h \
	proxy/core/settings/load.c proxy/core/settings/load.h \
	proxy/core/settings/load_cache.c proxy/core/settings/load_class.c \
	proxy/core/settings/load_listen.c proxy/core/settings/load_listen_tls.c proxy/core/settings/load_map.c proxy/core/settings/load_origins.c \
	proxy/core/settings/forwarding.h proxy/core/settings/load_forwarding.c \
	proxy/core/transaction/spans.h \
	proxy/core/settings/options_forwarding.def proxy/core/settings/options_listen_proxies.def \
	proxy/core/settings/load_trust.c \
	proxy/core/settings/logs.h proxy/core/settings/load_logs.c proxy/core/settings/options_logs.def \
	proxy/core/settings/manual.c \
	proxy/core/match/map_table.c proxy/core/match/map_table.h \
	proxy/core/match/name_table.c proxy/core/match/name_table.h \
	proxy/core/match/aho_corasick.c proxy/core/match/aho_corasick.h \
	proxy/core/settings/negative.c proxy/core/settings/negative.h \
	proxy/core/settings/option_sections.c \
	proxy/core/settings/option_rows.h proxy/core/settings/part_settings.h proxy/core/settings/options.c proxy/core/settings/options.h proxy/core/settings/options_cache.def \
	proxy/core/settings/options_origins.def \
	proxy/core/settings/options_classes.def \
	proxy/core/settings/options_listen_tls.def \
	proxy/core/settings/origins.c proxy/core/settings/origins.h \
	proxy/core/settings/class_warnings.c proxy/core/settings/class_warnings.h \
	proxy/core/settings/policy.c proxy/core/settings/policy.h \
	proxy/core/settings/rule_kinds.c proxy/core/settings/rule_kinds.h \
	proxy/core/match/record_filter.c proxy/core/match/record_filter.h \
	proxy/core/match/regex.c proxy/core/match/regex.h \
	proxy/core/match/rules.c proxy/core/match/rules.h \
	proxy/core/match/edges.c proxy/core/match/edges.h \
	proxy/core/match/class_conditions.c proxy/core/match/class_conditions.h \
	proxy/core/match/class_lists.h \
	proxy/core/match/class_terms.c proxy/core/match/class_terms.h \
	proxy/core/match/network_set.c proxy/core/match/network_set.h \
	proxy/core/settings/settings.c proxy/core/settings/settings.h \
	proxy/core/settings/start_only.c proxy/core/settings/start_only.h \
	proxy/core/match/class_settling.c \
	proxy/core/match/url_class.c proxy/core/match/url_class.h \
	proxy/core/match/url_class_internal.h \
	proxy/core/tls/authority.c proxy/core/tls/authority.h

nodist_proxy_libproxy_a_SOURCES = proxy/parts.c

# The objects of the core are the same whichever parts are built (part.h). So tests/link-parts.sh links them, and the unit tests,
# with other PARTS than the configured ones, which proxy/parts-$(WITH).c lists. LEFT_OUT are the unit tests of the other parts.
WITH = none
PARTS =
LEFT_OUT =
with_objects = for object in $(proxy_libproxy_a_OBJECTS); do echo "$$object"; done
unit_objects = for object in $(tests_unit_proxy_unit_proxy_OBJECTS); do echo "$$object"; done
proxy/libproxy-$(WITH).a: proxy/libproxy.a proxy/parts-$(WITH).c
	$(AM_V_CC)$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(INCLUDES) $(proxy_libproxy_a_CPPFLAGS) $(CPPFLAGS) $(proxy_libproxy_a_CFLAGS) \
		$(CFLAGS) -c -o proxy/parts-$(WITH).o proxy/parts-$(WITH).c && rm -f $@ && \
	$(AR) cr $@ proxy/parts-$(WITH).o `$(with_objects) | grep -v -e '^proxy/parts/' -e 'a-parts\.o$$'` \
		`for part in $(PARTS); do $(with_objects) | grep "^proxy/parts/$$part/"; done`
proxy/retort-$(WITH): proxy/libproxy-$(WITH).a $(proxy_retort_OBJECTS)
	$(AM_V_CCLD)$(proxy_retort_LINK) $(proxy_retort_OBJECTS) proxy/libproxy-$(WITH).a $(proxy_below)
tests/unit/proxy/unit-proxy-$(WITH): proxy/libproxy-$(WITH).a $(tests_unit_proxy_unit_proxy_OBJECTS)
	$(AM_V_CCLD)$(tests_unit_proxy_unit_proxy_LINK) \
		`$(unit_objects) | grep -v -e '^-$$' $(LEFT_OUT:%=-e '-%\.o$$')` proxy/libproxy-$(WITH).a $(proxy_below) $(CHECK_LIBS)
CLEANFILES += proxy/libproxy-*.a proxy/parts-*.[co] proxy/retort-minimal proxy/retort-none proxy/retort-with \
	tests/unit/proxy/unit-proxy-minimal tests/unit/proxy/unit-proxy-none

proxy_retort_CPPFLAGS = $(proxy_cppflags) -DCONFIGURATION='"$(retortconfdir)/retort.conf"'
proxy_retort_CFLAGS = $(proxy_cflags)
# Only the libraries that the parts which are there need.
proxy_retort_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
proxy_retort_SOURCES = proxy/core/main.c proxy/core/libraries.c proxy/core/libraries.h
proxy_libs = proxy/libproxy.a $(proxy_below)
proxy_below = common/libconfig.la common/libtable.la common/librecord.la common/librunner.la common/libservice.la common/libcommon.la $(CARES_LIBS) $(JANSSON_LIBS) \
	$(PCRE2_LIBS) $(MICROHTTPD_LIBS) $(URING_LIBS) $(HIREDIS_LIBS) $(XXHASH_LIBS) $(TLS_LIBS) \
	$(ZLIB_LIBS) $(BROTLI_DECODER_LIBS) $(ZSTD_LIBS) $(GSSAPI_LIBS) $(CURL_LIBS) $(CRYPT_LIBS) -lpthread -lm
proxy_retort_LDADD = $(proxy_libs)

noinst_PROGRAMS += proxy/print-options
proxy_print_options_CPPFLAGS = $(proxy_cppflags)
proxy_print_options_CFLAGS = $(proxy_cflags)
proxy_print_options_SOURCES = proxy/tools/print_options.c
proxy_print_options_LDADD = $(proxy_libs)
