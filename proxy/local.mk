# The proxy and its control program.
sbin_PROGRAMS += proxy/retort
bin_PROGRAMS += proxy/retortctl

proxy_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/proxy
proxy_cflags = $(AM_CFLAGS) $(CARES_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) \
	$(MICROHTTPD_CFLAGS) $(GNUTLS_CFLAGS) $(URING_CFLAGS) $(XXHASH_CFLAGS) $(TLS_CFLAGS) \
	$(ZLIB_CFLAGS) $(BROTLI_DECODER_CFLAGS) $(ZSTD_CFLAGS) $(GSSAPI_CFLAGS) $(CURL_CFLAGS)

# Everything but main, so that tests can link it.
noinst_LIBRARIES += proxy/libproxy.a
proxy_libproxy_a_CPPFLAGS = $(proxy_cppflags) -DSERVICES_DIRECTORY='"$(servicemoduledir)"' \
	-DSERVICE_PROGRAM='"$(libexecdir)/retort/retort-service"'
proxy_libproxy_a_CFLAGS = $(proxy_cflags)
proxy_libproxy_a_SOURCES = \
	proxy/access/rules.c proxy/access/rules.h \
	proxy/adapt/adapter.c proxy/adapt/adapter.h \
	proxy/adapt/adapter_account.c proxy/adapt/adapter_account.h proxy/adapt/adapter_account.def \
	proxy/adapt/adapter_accounts.c proxy/adapt/adapter_accounts.h \
	proxy/adapt/adapter_call.c proxy/adapt/adapter_call.h \
	proxy/adapt/bypasses.c proxy/adapt/bypasses.h \
	proxy/adapt/chain_trickle.c \
	proxy/adapt/chain.c proxy/adapt/chain.h proxy/adapt/message.h \
	proxy/adapt/client_fields.c proxy/adapt/client_fields.h \
	proxy/adapt/coding.c proxy/adapt/coding.h \
	proxy/adapt/decoder.c proxy/adapt/decoder.h \
	proxy/adapt/decoding.c proxy/adapt/decoding.h \
	proxy/adapt/first_asking.c proxy/adapt/first_asking.h \
	proxy/adapt/representation.c proxy/adapt/representation.h \
	proxy/adapt/mark.c proxy/adapt/mark.h \
	proxy/adapt/named_addresses.c proxy/adapt/named_addresses.h \
	proxy/adapt/opt_outs.h \
	proxy/adapt/recording.c proxy/adapt/recording.h proxy/adapt/recall.c proxy/adapt/recall.h \
	proxy/adapt/server_numbers.def proxy/adapt/server_numbers.h \
	proxy/adapt/service_report.c proxy/adapt/service_report.h \
	proxy/adapt/service_tag.c proxy/adapt/service_tag.h \
	proxy/adapt/set.c proxy/adapt/set.h \
	proxy/adapt/shared_service.c proxy/adapt/shared_service.h \
	proxy/adapt/trickle.c proxy/adapt/trickle.h \
	proxy/adapt/verdicts.c proxy/adapt/verdicts.h \
	proxy/adapt/virgin_body.c proxy/adapt/virgin_body.h \
	proxy/cache/accept_encoding.c proxy/cache/accept_encoding.h \
	proxy/cache/ban.c proxy/cache/ban.h \
	proxy/cache/body.c proxy/cache/body.h \
	proxy/cache/body_reader.c proxy/cache/body_reader.h \
	proxy/cache/body_source.c proxy/cache/body_source.h \
	proxy/cache/conditional.c proxy/cache/conditional.h \
	proxy/cache/content.c proxy/cache/content.h \
	proxy/cache/control.c proxy/cache/control.h \
	proxy/cache/shared_fetch.c proxy/cache/shared_fetch.h \
	proxy/cache/eviction.c proxy/cache/eviction.h \
	proxy/cache/object_eviction.c proxy/cache/object_eviction.h \
	proxy/cache/freshness.c proxy/cache/freshness.h \
	proxy/cache/key.c proxy/cache/key.h \
	proxy/cache/memory.c proxy/cache/memory.h \
	proxy/cache/name.c proxy/cache/name.h \
	proxy/cache/object.c proxy/cache/object.h \
	proxy/cache/object_filter.c proxy/cache/object_filter.h \
	proxy/cache/part.c proxy/cache/part.h \
	proxy/cache/filter_table.c proxy/cache/filter_table.h \
	proxy/cache/purge.c proxy/cache/purge.h \
	proxy/cache/purger.c proxy/cache/purger.h \
	proxy/cache/range.c proxy/cache/range.h \
	proxy/cache/replacement.c proxy/cache/replacement.h \
	proxy/cache/shard.c proxy/cache/shard.h \
	proxy/cache/store.c proxy/cache/store.h \
	proxy/cache/walk.c proxy/cache/walk.h \
	proxy/cache/vary.c proxy/cache/vary.h \
	proxy/client/announced.c proxy/client/announced.h proxy/client/asker.h \
	proxy/client/background.c \
	proxy/client/body_clock.c proxy/client/body_clock.h \
	proxy/client/clients.c proxy/client/clients.h \
	proxy/client/coalescing.c proxy/client/coalescing.h \
	proxy/client/connection_holds.c proxy/client/connection_holds.h \
	proxy/client/exchange.c proxy/client/exchange.h \
	proxy/client/handshake.c proxy/client/handshake.h \
	proxy/client/intercepted.c proxy/client/intercepted.h \
	proxy/client/listen_set.c proxy/client/listen_set.h \
	proxy/client/first_bytes.c proxy/client/first_bytes.h \
	proxy/client/redirection.c proxy/client/redirection.h \
	proxy/client/reply.h \
	proxy/client/transparent.c proxy/client/transparent.h \
	proxy/client/http1/http1.h \
	proxy/client/http1/chunks.c proxy/client/http1/chunks.h \
	proxy/client/http1/connection.c proxy/client/http1/connection.h \
	proxy/client/http1/exchange.c proxy/client/http1/exchange.h \
	proxy/client/http1/outbox.c proxy/client/http1/outbox.h \
	proxy/client/http1/reply.c proxy/client/http1/reply.h \
	proxy/client/http1/request_body.c proxy/client/http1/request_body.h \
	proxy/client/http1/request_head.c proxy/client/http1/request_head.h \
	proxy/client/http1/reply_sender.c proxy/client/http1/reply_sender.h \
	proxy/client/http2/http2.h \
	proxy/client/http2/connection.c proxy/client/http2/connection.h \
	proxy/client/http2/exchange.c proxy/client/http2/exchange.h \
	proxy/client/http2/head_blocks.c proxy/client/http2/head_blocks.h \
	proxy/client/http2/reply.c proxy/client/http2/reply.h \
	proxy/client/http2/request.c proxy/client/http2/request.h \
	proxy/client/http2/request_body.c proxy/client/http2/request_body.h \
	proxy/client/http2/tunnel.c proxy/client/http2/tunnel.h \
	proxy/http2/block.c proxy/http2/block.h \
	proxy/http2/closed.c proxy/http2/closed.h \
	proxy/http2/data.c proxy/http2/data.h \
	proxy/http2/early_priority.c proxy/http2/early_priority.h \
	proxy/http2/error.c proxy/http2/error.h \
	proxy/http2/fault.c proxy/http2/fault.h \
	proxy/http2/fields.c proxy/http2/fields.h \
	proxy/http2/frame.c proxy/http2/frame.h \
	proxy/http2/hpack.c proxy/http2/hpack.h \
	proxy/http2/hpack_encode.c proxy/http2/hpack_encode.h \
	proxy/http2/hpack_lines.c \
	proxy/http2/hpack_static.c proxy/http2/hpack_static.def proxy/http2/hpack_static.h \
	proxy/http2/huffman.c proxy/http2/huffman.def proxy/http2/huffman.h \
	proxy/http2/input.c proxy/http2/input.h \
	proxy/http2/outbox.c proxy/http2/outbox.h \
	proxy/http2/priority.c proxy/http2/priority.h \
	proxy/http2/schedule.c proxy/http2/schedule.h \
	proxy/http2/session.c proxy/http2/session.h \
	proxy/http2/stream.c proxy/http2/stream.h \
	proxy/identity/attempts.c proxy/identity/attempts.h \
	proxy/identity/check_threads.c proxy/identity/check_threads.h \
	proxy/identity/digest_rows.c proxy/identity/digest_rows.h \
	proxy/identity/flights.c proxy/identity/flights.h \
	proxy/identity/htpasswd.c proxy/identity/htpasswd.h \
	proxy/identity/jwt.c proxy/identity/jwt.h \
	proxy/identity/jwt_keys.c proxy/identity/jwt_keys.h \
	proxy/identity/operator_line.c proxy/identity/operator_line.h \
	proxy/identity/operator_subjects.c proxy/identity/operator_subjects.h \
	proxy/identity/operator_tokens.c proxy/identity/operator_tokens.h \
	proxy/identity/password_hash.c proxy/identity/password_hash.h \
	proxy/identity/remembered.c proxy/identity/remembered.h \
	proxy/identity/secret_digest.c proxy/identity/secret_digest.h \
	proxy/identity/secret_file.c proxy/identity/secret_file.h \
	proxy/identity/authentication.c \
	proxy/identity/authentication.h \
	proxy/identity/authenticator.c \
	proxy/identity/authenticator.h \
	proxy/identity/authenticator_settings.h \
	proxy/identity/authorization.c \
	proxy/identity/authorization.h \
	proxy/identity/challenge.c \
	proxy/identity/challenge.h \
	proxy/identity/credentials_check.c \
	proxy/identity/credentials_check.h \
	proxy/identity/gss_acceptor.h \
	proxy/identity/helper_groups.c \
	proxy/identity/helper_groups.h \
	proxy/identity/helper_question.c \
	proxy/identity/helper_question.h \
	proxy/identity/identity.c \
	proxy/identity/identity.h \
	proxy/identity/identity_method.h \
	proxy/identity/method_basic_file.c \
	proxy/identity/method_basic_helper.c \
	proxy/identity/method_bearer.c \
	proxy/identity/method_certificate.c \
	proxy/identity/method_negotiate.c \
	proxy/settings/load_identity.c proxy/settings/options_identity.def \
	proxy/settings/load_identity_helpers.c proxy/settings/options_identity_helpers.def \
	proxy/intercept/interception.c proxy/intercept/interception.h \
	proxy/intercept/refusals.c proxy/intercept/refusals.h \
	proxy/intercept/rules.c proxy/intercept/rules.h \
	proxy/disk/disk.c proxy/disk/disk.h \
	proxy/disk/disk_body.c proxy/disk/disk_body.h \
	proxy/disk/admission_filter.c proxy/disk/admission_filter.h \
	proxy/disk/index.c proxy/disk/index.h \
	proxy/disk/purge_log.c proxy/disk/purge_log.h \
	proxy/disk/purge_slot.c proxy/disk/purge_slot.h \
	proxy/disk/purge_writer.c proxy/disk/purge_writer.h \
	proxy/disk/lending.c proxy/disk/lending.h \
	proxy/disk/load.c \
	proxy/disk/queue.c proxy/disk/queue.h \
	proxy/disk/read_locks.c proxy/disk/read_locks.h \
	proxy/disk/reading.c proxy/disk/reading.h \
	proxy/disk/reads.c proxy/disk/reads.h \
	proxy/disk/record.c proxy/disk/record.h \
	proxy/disk/recovery.c \
	proxy/disk/segment.c proxy/disk/segment.h \
	proxy/disk/stream.c proxy/disk/stream.h \
	proxy/disk/summing.c proxy/disk/summing.h \
	proxy/disk/volume.c proxy/disk/volume.h \
	proxy/disk/volume_purges.c \
	proxy/disk/writer.c proxy/disk/writer.h \
	proxy/content/account.c proxy/content/account.h \
	proxy/content/fetch.c proxy/content/fetch.h \
	proxy/content/injection.c proxy/content/injection.h \
	proxy/content/operation.c proxy/content/operation.h \
	proxy/content/room.c proxy/content/room.h \
	proxy/content/stored.c proxy/content/stored.h \
	proxy/content/url.c proxy/content/url.h \
	proxy/content/work.c proxy/content/work.h \
	proxy/icap/adapted_body.c \
	proxy/inside/adapter.c proxy/inside/adapter.h \
	proxy/inside/body.c proxy/inside/code.c proxy/inside/code.h \
	proxy/inside/child.c proxy/inside/child.h \
	proxy/inside/desk.c proxy/inside/desk.h \
	proxy/inside/remote.c proxy/inside/remote.h \
	proxy/inside/run.c proxy/inside/run.h \
	proxy/inside/runners.c proxy/inside/runners.h \
	proxy/inside/child_word.c \
	proxy/inside/call.c proxy/inside/call.h \
	proxy/inside/content.c proxy/inside/content.h \
	proxy/inside/feed.c \
	proxy/inside/head.c proxy/inside/head.h \
	proxy/inside/instance.c proxy/inside/instance.h \
	proxy/inside/places.c proxy/inside/places.h \
	proxy/inside/service.h \
	proxy/inside/slow.c \
	proxy/inside/start.c proxy/inside/start.h \
	proxy/inside/told.c proxy/inside/told.h \
	proxy/inside/wait.c \
	proxy/inside/watches.c proxy/inside/watches.h \
	proxy/icap/adapter.c proxy/icap/adapter.h \
	proxy/icap/call.c proxy/icap/call.h proxy/icap/send.c proxy/icap/receive.c \
	proxy/icap/endpoint.c proxy/icap/endpoint.h \
	proxy/record/filter.c proxy/record/filter.h \
	proxy/icap/health.c proxy/icap/health.h \
	proxy/icap/host.c proxy/icap/host.h \
	proxy/icap/look.c proxy/icap/look.h \
	proxy/icap/lost_connections.c proxy/icap/lost_connections.h \
	proxy/record/inspected.c proxy/record/inspected.h \
	proxy/record/inspections.c proxy/record/inspections.h \
	proxy/record/mask.c proxy/record/mask.h \
	proxy/icap/options.c proxy/icap/options.h \
	proxy/icap/permission.c proxy/icap/permission.h \
	proxy/icap/info.c proxy/icap/info.h \
	proxy/icap/info_text.c proxy/icap/info_text.h \
	proxy/icap/probe.c proxy/icap/probe.h \
	proxy/icap/server.c proxy/icap/server.h \
	proxy/icap/quota.c proxy/icap/quota.h \
	proxy/record/recorder.c proxy/record/recorder.h \
	proxy/icap/client_fields.c proxy/icap/client_fields.h \
	proxy/icap/service.c proxy/icap/service.h \
	proxy/icap/wire.c proxy/icap/wire.h \
	proxy/limits/bucket.c proxy/limits/bucket.h \
	proxy/limits/limit_table.c proxy/limits/limit_table.h \
	proxy/limits/limits.c proxy/limits/limits.h \
	proxy/limits/pace.c proxy/limits/pace.h \
	proxy/log/format.c proxy/log/format.h proxy/log/codes.def \
	proxy/log/line.c proxy/log/line.h \
	proxy/log/place.c proxy/log/place.h \
	proxy/log/channel.c proxy/log/channel.h \
	proxy/log/frame.c proxy/log/frame.h \
	proxy/log/target.c proxy/log/target.h \
	proxy/net/address.c proxy/net/address.h \
	proxy/net/address_order.c proxy/net/address_order.h \
	proxy/net/connect_race.c proxy/net/connect_race.h \
	proxy/net/dns_answer.c proxy/net/dns_answer.h \
	proxy/net/dns_message.c proxy/net/dns_message.h \
	proxy/net/dns_targets.c proxy/net/dns_targets.h \
	proxy/net/dns_channel.c proxy/net/dns_channel.h \
	proxy/net/host_check.c proxy/net/host_check.h \
	proxy/net/hosts_file.c proxy/net/hosts_file.h \
	proxy/net/connection.c proxy/net/connection.h \
	proxy/net/context.c proxy/net/context.h \
	proxy/net/counters.c proxy/net/counters.h proxy/net/counters.def \
	proxy/net/durations.c proxy/net/durations.h proxy/net/durations.def \
	proxy/net/dial.c proxy/net/dial.h \
	proxy/net/duplex.c proxy/net/duplex.h \
	proxy/net/feed.c proxy/net/feed.h \
	proxy/net/gather.h \
	proxy/net/memory_share.c proxy/net/memory_share.h \
	proxy/net/local_socket.c proxy/net/local_socket.h \
	proxy/net/listener.c proxy/net/listener.h \
	proxy/net/sender.c proxy/net/sender.h \
	proxy/net/name_review.c proxy/net/name_review.h \
	proxy/net/tcp_bytes.c proxy/net/tcp_bytes.h \
	proxy/net/own_connections.c proxy/net/own_connections.h \
	proxy/net/proxy_header.c proxy/net/proxy_header.h \
	proxy/net/proxy_tunnel.c proxy/net/proxy_tunnel.h \
	proxy/net/pool.c proxy/net/pool.h \
	proxy/net/privileges.c proxy/net/privileges.h \
	proxy/net/reach.c proxy/net/reach.h \
	proxy/net/lookup_share.c proxy/net/lookup_share.h \
	proxy/net/remembered_name.h \
	proxy/net/resolver.c proxy/net/resolver.h \
	proxy/net/resolver_report.c proxy/net/resolver_report.h \
	proxy/net/secret_hash.c proxy/net/secret_hash.h \
	proxy/origin/certificate_fetch.c proxy/origin/certificate_fetch.h \
	proxy/origin/check.c proxy/origin/check.h \
	proxy/origin/choice.c \
	proxy/origin/list.c proxy/origin/list.h \
	proxy/origin/lookup.c proxy/origin/lookup.h \
	proxy/origin/member.c proxy/origin/member.h \
	proxy/origin/place_index.c proxy/origin/place_index.h \
	proxy/origin/source.c proxy/origin/source.h \
	proxy/origin/targets.c proxy/origin/targets.h \
	proxy/origin/group.c proxy/origin/group.h \
	proxy/origin/host.c proxy/origin/host.h \
	proxy/origin/scheme.c proxy/origin/scheme.h \
	proxy/origin/slot.c proxy/origin/slot.h \
	proxy/origin/small_fetch.c proxy/origin/small_fetch.h \
	proxy/origin/staple_fetch.c proxy/origin/staple_fetch.h \
	proxy/origin/call.c proxy/origin/call.h proxy/origin/call_queue.c \
	proxy/origin/connections.c proxy/origin/connections.h \
	proxy/origin/http1/http1.h \
	proxy/origin/http1/call.c proxy/origin/http1/call.h \
	proxy/origin/http1/send.c proxy/origin/http1/receive.c proxy/origin/http1/body.c \
	proxy/origin/http2/http2.h proxy/origin/http2/carrier.c proxy/origin/http2/carrier.h \
	proxy/origin/http2/call.c proxy/origin/http2/call.h \
	proxy/origin/http2/send.c proxy/origin/http2/receive.c \
	proxy/rewrite/field_rules.c proxy/rewrite/field_rules.h proxy/rewrite/url_rules.c proxy/rewrite/url_rules.h \
	proxy/rewrite/forwarded.c proxy/rewrite/forwarded.h \
	proxy/rewrite/text_template.c proxy/rewrite/text_template.h proxy/rewrite/variables.def \
	proxy/tls/aia.c proxy/tls/aia.h \
	proxy/tls/algorithm.c proxy/tls/algorithm.h \
	proxy/tls/bio.c proxy/tls/bio.h \
	proxy/tls/certificate.c proxy/tls/certificate.h \
	proxy/tls/certificate_files.c proxy/tls/certificate_files.h \
	proxy/tls/certificate_names.c proxy/tls/certificate_names.h \
	proxy/tls/certificate_set.c proxy/tls/certificate_set.h \
	proxy/tls/certificate_text.c proxy/tls/certificate_text.h \
	proxy/tls/validity.c proxy/tls/validity.h \
	proxy/tls/client_authority.c proxy/tls/client_authority.h \
	proxy/tls/client.c proxy/tls/client.h \
	proxy/tls/client_hello.c proxy/tls/client_hello.h \
	proxy/tls/context.c proxy/tls/context.h \
	proxy/tls/facts.c proxy/tls/facts.h \
	proxy/tls/intermediates.c proxy/tls/intermediates.h \
	proxy/tls/mhd_tls.c proxy/tls/mhd_tls.h \
	proxy/tls/ocsp.c proxy/tls/ocsp.h \
	proxy/tls/server.c proxy/tls/server.h \
	proxy/tls/pem_file.c proxy/tls/pem_file.h \
	proxy/tls/ticket_keys.c proxy/tls/ticket_keys.h \
	proxy/tls/staple.c proxy/tls/staple.h \
	proxy/tls/stream.c proxy/tls/stream.h \
	proxy/origin/security.c proxy/origin/security.h \
	proxy/tls/trust.c proxy/tls/trust.h proxy/tls/trust_files.c proxy/tls/trust_files.h \
	proxy/tls/verify.c proxy/tls/verify.h \
	proxy/tls/verify_words.c proxy/tls/verify_words.h \
	proxy/transaction/access_format.c proxy/transaction/access_format.h \
	proxy/transaction/access_choice.c proxy/transaction/access_choice.h \
	proxy/transaction/access_line.c proxy/transaction/access_line.h \
	proxy/transaction/access_log.c proxy/transaction/access_log.h \
	proxy/transaction/adapted_variant.c proxy/transaction/adapted_variant.h \
	proxy/transaction/cache_status.c proxy/transaction/cache_status.h \
	proxy/transaction/ca_page.c proxy/transaction/ca_page.h \
	proxy/transaction/caching.c proxy/transaction/caching.h \
	proxy/transaction/collapse.c proxy/transaction/collapse.h \
	proxy/transaction/fail.c proxy/transaction/fail.h \
	proxy/transaction/forwarding.c proxy/transaction/forwarding.h \
	proxy/transaction/disclosure.c proxy/transaction/disclosure.h \
	proxy/transaction/head_rules.c proxy/transaction/head_rules.h \
	proxy/transaction/hops.c proxy/transaction/hops.h \
	proxy/transaction/https.c proxy/transaction/https.h \
	proxy/transaction/inspect.c proxy/transaction/inspect.h \
	proxy/transaction/internal.c proxy/transaction/internal.h \
	proxy/transaction/invalidate.c proxy/transaction/invalidate.h \
	proxy/transaction/join.c proxy/transaction/join.h \
	proxy/transaction/message.c proxy/transaction/message.h \
	proxy/transaction/next_hop.c proxy/transaction/next_hop.h \
	proxy/transaction/origin_proof.c proxy/transaction/origin_proof.h \
	proxy/transaction/outcome.c proxy/transaction/outcome.h \
	proxy/transaction/page.c proxy/transaction/page.h \
	proxy/transaction/postcache.c proxy/transaction/postcache.h \
	proxy/transaction/pump.c proxy/transaction/pump.h \
	proxy/transaction/ranges.c proxy/transaction/ranges.h \
	proxy/transaction/refresh.c proxy/transaction/refresh.h \
	proxy/transaction/relay.c proxy/transaction/relay.h \
	proxy/transaction/request.c proxy/transaction/request.h \
	proxy/transaction/request_counts.c proxy/transaction/request_counts.h \
	proxy/transaction/request_rules.c proxy/transaction/request_rules.h \
	proxy/transaction/response.c proxy/transaction/response.h \
	proxy/transaction/reverse_map.c proxy/transaction/reverse_map.h \
	proxy/transaction/route.c proxy/transaction/route.h \
	proxy/transaction/step.h \
	proxy/transaction/stored_part.c proxy/transaction/stored_part.h \
	proxy/transaction/stored_source.c proxy/transaction/stored_source.h \
	proxy/transaction/trace.c proxy/transaction/trace.h \
	proxy/transaction/transaction.c proxy/transaction/transaction.h \
	proxy/transaction/variant_object.c proxy/transaction/variant_object.h \
	proxy/transaction/variables.c proxy/transaction/variables.h \
	proxy/transaction/waiting_download.c proxy/transaction/waiting_download.h \
	proxy/transaction/waiting_page.c proxy/transaction/waiting_page.h \
	proxy/transaction/proof.c proxy/transaction/proof.h \
	proxy/transaction/watcher.h \
	proxy/events/filter.c proxy/events/filter.h \
	proxy/events/queue.c proxy/events/queue.h \
	proxy/events/ring.c proxy/events/ring.h \
	proxy/events/stream.c proxy/events/stream.h \
	proxy/events/tap.c proxy/events/tap.h \
	proxy/events/watch.c proxy/events/watch.h \
	proxy/transaction/steps/receive.c \
	proxy/transaction/steps/admit.c proxy/transaction/steps/admit.h \
	proxy/transaction/access.c proxy/transaction/access.h \
	proxy/transaction/access_destination.c proxy/transaction/access_destination.h \
	proxy/transaction/access_permit.c proxy/transaction/access_permit.h \
	proxy/transaction/access_refusal.c proxy/transaction/access_refusal.h \
	proxy/transaction/steps/access.c proxy/transaction/steps/access.h \
	proxy/transaction/steps/recheck.c proxy/transaction/steps/recheck.h \
	proxy/transaction/purge_orders.c proxy/transaction/purge_orders.h \
	proxy/transaction/told_removals.c proxy/transaction/told_removals.h \
	proxy/transaction/steps/purge.c proxy/transaction/steps/purge.h \
	proxy/transaction/steps/limit.c proxy/transaction/steps/limit.h \
	proxy/transaction/steps/rewrite.c \
	proxy/transaction/steps/reqmod.c proxy/transaction/steps/reqmod.h \
	proxy/transaction/steps/reqmod_postcache.c proxy/transaction/steps/reqmod_postcache.h \
	proxy/transaction/steps/lookup.c proxy/transaction/steps/lookup.h \
	proxy/transaction/steps/destination.c proxy/transaction/steps/destination.h \
	proxy/transaction/inside.c proxy/transaction/inside.h \
	proxy/transaction/steps/bump.c proxy/transaction/steps/bump.h \
	proxy/transaction/steps/intercept.c proxy/transaction/steps/intercept.h \
	proxy/transaction/steps/fetch.c proxy/transaction/steps/fetch.h \
	proxy/transaction/steps/respmod.c proxy/transaction/steps/respmod.h \
	proxy/transaction/steps/store.c proxy/transaction/steps/store.h \
	proxy/transaction/steps/variant.c \
	proxy/transaction/steps/respmod_postcache.c proxy/transaction/steps/respmod_postcache.h \
	proxy/transaction/steps/tunnel.c proxy/transaction/steps/tunnel.h \
	proxy/transaction/steps/deliver.c proxy/transaction/steps/deliver.h \
	proxy/transaction/steps/log.c \
	proxy/adapters.c proxy/adapters.h \
	proxy/claims.c proxy/claims.h \
	proxy/control.c proxy/control.h \
	proxy/upgrade.c proxy/upgrade.h \
	proxy/takeover/handover.c proxy/takeover/handover.h \
	proxy/takeover/inherited.c proxy/takeover/inherited.h \
	proxy/takeover/notify.c proxy/takeover/notify.h \
	proxy/takeover/socket_store.c proxy/takeover/socket_store.h \
	proxy/takeover/successor.c proxy/takeover/successor.h \
	proxy/takeover/takeover.c proxy/takeover/takeover.h \
	proxy/takeover/wire.c proxy/takeover/wire.h \
	proxy/server.c proxy/server.h \
	proxy/readiness.c proxy/readiness.h \
	proxy/reloader.c proxy/reloader.h \
	proxy/configured_names.c proxy/configured_names.h \
	proxy/worker.c proxy/worker.h proxy/worker_inside.h proxy/worker_orders.c \
	proxy/settings/config_file.c proxy/settings/config_file.h proxy/settings/document.c \
	proxy/settings/document.h proxy/settings/faults.c proxy/settings/faults.h proxy/settings/lexer.c \
	proxy/settings/lexer.h proxy/settings/parse.c proxy/settings/scan.c \
	proxy/settings/json.c \
	proxy/match/literals.c proxy/match/literals.h \
	proxy/settings/load.c proxy/settings/load.h \
	proxy/settings/access.h proxy/settings/load_access.c proxy/settings/options_access.def \
	proxy/settings/load_adapt.c proxy/settings/service_change.c proxy/settings/service_change.h proxy/settings/load_inside.c proxy/settings/load_cache.c proxy/settings/load_class.c \
	proxy/settings/load_listen.c proxy/settings/load_listen_tls.c proxy/settings/load_map.c proxy/settings/load_origins.c \
	proxy/settings/limit.h proxy/settings/load_limit.c proxy/settings/options_limits.def \
	proxy/settings/load_transparent.c \
	proxy/settings/head_rules.h proxy/settings/load_head_rules.c proxy/settings/options_head_rules.def \
	proxy/settings/error_page.c proxy/settings/error_page.h proxy/settings/load_pages.c \
	proxy/settings/forwarding.h proxy/settings/load_forwarding.c \
	proxy/spans/collector.h \
	proxy/spans/exporter.c proxy/spans/exporter.h \
	proxy/spans/otlp.c proxy/spans/otlp.h \
	proxy/spans/otlp_answer.c proxy/spans/otlp_answer.h \
	proxy/spans/span.c proxy/spans/span.h \
	proxy/spans/trace_context.c proxy/spans/trace_context.h \
	proxy/transaction/service_log.c proxy/transaction/service_log.h \
	proxy/transaction/spans.c proxy/transaction/spans.h \
	proxy/settings/options_forwarding.def proxy/settings/options_listen_proxies.def \
	proxy/settings/tracing.h proxy/settings/load_tracing.c proxy/settings/options_tracing.def \
	proxy/settings/load_trust.c \
	proxy/settings/logs.h proxy/settings/load_logs.c proxy/settings/options_logs.def \
	proxy/settings/manual.c \
	proxy/match/map_table.c proxy/match/map_table.h \
	proxy/match/name_table.c proxy/match/name_table.h \
	proxy/match/needles.c proxy/match/needles.h \
	proxy/settings/negative.c proxy/settings/negative.h \
	proxy/settings/option_sections.c proxy/settings/option_suggest.c \
	proxy/settings/interception.h proxy/settings/load_interception.c \
	proxy/settings/options.c proxy/settings/options.h proxy/settings/options_cache.def \
	proxy/settings/options_interception.def proxy/settings/options_origins.def \
	proxy/settings/options_classes.def \
	proxy/settings/options_http2.def proxy/settings/options_client_http2.def \
	proxy/settings/options_pages.def \
	proxy/settings/options_listen_tls.def proxy/settings/options_services.def proxy/settings/options_services_both.def proxy/settings/options_transparent.def \
	proxy/settings/load_admin.c proxy/settings/options_admin.def \
	proxy/settings/load_authority.c proxy/settings/options_authority.def \
	proxy/settings/origins.c proxy/settings/origins.h \
	proxy/settings/option_path.c proxy/settings/option_path.h \
	proxy/settings/overrides.c proxy/settings/overrides.h proxy/settings/overrides_file.c \
	proxy/settings/shown.c proxy/settings/shown.h \
	proxy/settings/settings_plan.c proxy/settings/settings_plan.h \
	proxy/settings/settings_list.c proxy/settings/settings_list.h proxy/settings/schema.c \
	proxy/settings/class_warnings.c proxy/settings/class_warnings.h \
	proxy/settings/policy.c proxy/settings/policy.h \
	proxy/settings/rule_kinds.c proxy/settings/rule_kinds.h \
	proxy/match/regex.c proxy/match/regex.h \
	proxy/match/rules.c proxy/match/rules.h \
	proxy/match/edges.c proxy/match/edges.h \
	proxy/match/class_conditions.c proxy/match/class_conditions.h \
	proxy/match/class_fields.c proxy/match/class_fields.h \
	proxy/match/class_hours.c proxy/match/class_hours.h \
	proxy/match/class_lists.c proxy/match/class_lists.h \
	proxy/match/class_terms.c proxy/match/class_terms.h \
	proxy/match/list_file.c proxy/match/list_file.h \
	proxy/match/name_set.c proxy/match/name_set.h \
	proxy/match/network_set.c proxy/match/network_set.h \
	proxy/match/url_set.c proxy/match/url_set.h \
	proxy/settings/settings.c proxy/settings/settings.h \
	proxy/settings/start_only.c proxy/settings/start_only.h \
	proxy/settings/value.c proxy/settings/value.h \
	proxy/match/class_settling.c \
	proxy/match/url_class.c proxy/match/url_class.h \
	proxy/match/url_class_inside.h \
	proxy/intercept/server_identity.c proxy/intercept/server_identity.h \
	proxy/intercept/leaf.c proxy/intercept/leaf.h \
	proxy/intercept/leaf_cache.c proxy/intercept/leaf_cache.h \
	proxy/intercept/leaf_keys.c proxy/intercept/leaf_keys.h \
	proxy/intercept/shared_table.c proxy/intercept/shared_table.h \
	proxy/tls/authority.c proxy/tls/authority.h \
	proxy/tls/authority_hints.c proxy/tls/authority_hints.h \
	proxy/admin/access_page.c proxy/admin/access_page.h \
	proxy/admin/admin.c proxy/admin/admin.h \
	proxy/admin/bounds.c proxy/admin/bounds.h proxy/admin/bounds.def \
	proxy/admin/intercept_page.c proxy/admin/intercept_page.h \
	proxy/admin/dns_page.c proxy/admin/dns_page.h \
	proxy/admin/helper_options.c proxy/admin/helper_options.h \
	proxy/admin/helperd_call.c proxy/admin/helperd_call.h \
	proxy/admin/helperd_patience.c proxy/admin/helperd_patience.h \
	proxy/admin/helper_answer.c proxy/admin/helper_answer.h \
	proxy/admin/helper_numbers.c proxy/admin/helper_numbers.h \
	proxy/admin/helpers_page.c proxy/admin/helpers_page.h \
	proxy/admin/history.c proxy/admin/history.h proxy/admin/history.def \
	proxy/admin/history_page.c proxy/admin/history_page.h \
	proxy/admin/sampler.c proxy/admin/sampler.h \
	proxy/admin/server_numbers.c proxy/admin/server_numbers.h \
	proxy/admin/web_files.c proxy/admin/web_files.h \
	proxy/admin/whoami_page.c proxy/admin/whoami_page.h \
	proxy/admin/inspect_page.c proxy/admin/inspect_page.h \
	proxy/admin/limits_page.c proxy/admin/limits_page.h \
	proxy/admin/disk_numbers.c proxy/admin/disk_numbers.h \
	proxy/admin/metric_text.c proxy/admin/metric_text.h \
	proxy/admin/metrics_page.c proxy/admin/metrics_page.h \
	proxy/admin/origins_page.c proxy/admin/origins_page.h \
	proxy/admin/certificates_page.c proxy/admin/certificates_page.h \
	proxy/admin/trust_page.c proxy/admin/trust_page.h \
	proxy/admin/cache_call.c proxy/admin/cache_call.h \
	proxy/admin/cache_object_page.c proxy/admin/cache_object_page.h \
	proxy/admin/cache_page.c proxy/admin/cache_page.h \
	proxy/admin/connections.c proxy/admin/connections.h \
	proxy/admin/report.c proxy/admin/report.h \
	proxy/admin/worker_report.c proxy/admin/worker_report.h \
	proxy/admin/record_page.c proxy/admin/record_page.h \
	proxy/admin/outcome.h proxy/admin/settings_page.c proxy/admin/settings_page.h \
	proxy/admin/service_control_page.c proxy/admin/service_control_page.h proxy/admin/services_page.c proxy/admin/services_page.h \
	proxy/admin/source_reply.c proxy/admin/source_reply.h \
	proxy/admin/strict.c proxy/admin/strict.h \
	proxy/admin/audit.c proxy/admin/audit.h \
	proxy/admin/event_reply.c proxy/admin/event_reply.h \
	proxy/admin/events_page.c proxy/admin/events_page.h \
	proxy/admin/guard.c proxy/admin/guard.h \
	proxy/admin/openapi.c proxy/admin/openapi.h \
	proxy/admin/page.c proxy/admin/page.h \
	proxy/admin/api.c proxy/admin/api.h

# The web page is part of the program.
web_names = index.html icon.svg page.css page.js api.js chart.js element.js events.js format.js \
	view_overview.js view_services.js view_helpers.js view_origins.js \
	view_inspect.js view_transaction.js view_certificates.js view_clients.js view_cache.js view_live.js \
	body.js difference.js server_change.js
web_paths = $(web_names:%=$(srcdir)/proxy/admin/web/%)
nodist_proxy_libproxy_a_SOURCES = proxy/admin/web_table.c
EXTRA_DIST += proxy/admin/web
CLEANFILES += proxy/admin/web_table.c
proxy/admin/web_table.c: $(srcdir)/proxy/local.mk $(srcdir)/proxy/admin/web/embed.sh $(web_paths)
	$(AM_V_GEN)$(MKDIR_P) proxy/admin && \
	$(SHELL) $(srcdir)/proxy/admin/web/embed.sh $(srcdir)/proxy/admin/web $(web_names) > $@.new && mv $@.new $@

if CURL
proxy_libproxy_a_SOURCES += proxy/spans/collector.c
else
proxy_libproxy_a_SOURCES += proxy/spans/collector_none.c
endif
EXTRA_DIST += proxy/spans/collector.c proxy/spans/collector_none.c
if GSSAPI
proxy_libproxy_a_SOURCES += proxy/identity/gss_acceptor.c
else
proxy_libproxy_a_SOURCES += proxy/identity/gss_acceptor_none.c
endif
EXTRA_DIST += proxy/identity/gss_acceptor.c proxy/identity/gss_acceptor_none.c

proxy_retort_CPPFLAGS = $(proxy_cppflags) -DCONFIGURATION='"$(retortconfdir)/retort.conf"'
proxy_retort_CFLAGS = $(proxy_cflags)
proxy_retort_SOURCES = proxy/main.c proxy/libraries.c proxy/libraries.h
proxy_libs = proxy/libproxy.a common/librecord.la common/librunner.la common/libservice.la common/libcommon.la $(CARES_LIBS) $(JANSSON_LIBS) \
	$(PCRE2_LIBS) $(MICROHTTPD_LIBS) $(GNUTLS_LIBS) $(URING_LIBS) $(XXHASH_LIBS) $(TLS_LIBS) \
	$(ZLIB_LIBS) $(BROTLI_DECODER_LIBS) $(ZSTD_LIBS) $(GSSAPI_LIBS) $(CURL_LIBS) -lcrypt -lpthread -lm
proxy_retort_LDADD = $(proxy_libs)

proxy_retortctl_CPPFLAGS = $(proxy_cppflags) -DHELPER_DIR='"$(helperdir)"'
proxy_retortctl_CFLAGS = $(proxy_cflags)
proxy_retortctl_SOURCES = \
	proxy/ctl/main.c \
	proxy/ctl/access_command.c proxy/ctl/access_command.h \
	proxy/ctl/adlist_command.c proxy/ctl/adlist_command.h \
	proxy/ctl/answer.c proxy/ctl/answer.h \
	proxy/ctl/argument.c proxy/ctl/argument.h \
	proxy/ctl/intercept_command.c proxy/ctl/intercept_command.h \
	proxy/ctl/dns_command.c proxy/ctl/dns_command.h \
	proxy/ctl/limits_command.c proxy/ctl/limits_command.h \
	proxy/ctl/ca_command.c proxy/ctl/ca_command.h \
	proxy/ctl/ca_files.c proxy/ctl/ca_files.h \
	proxy/ctl/cache_command.c proxy/ctl/cache_command.h \
	proxy/ctl/call_stream.c proxy/ctl/call_stream.h \
	proxy/ctl/call_wire.c proxy/ctl/call_wire.h \
	proxy/ctl/event_lines.c proxy/ctl/event_lines.h \
	proxy/ctl/event_reader.c proxy/ctl/event_reader.h \
	proxy/ctl/log_file.c proxy/ctl/log_file.h \
	proxy/ctl/log_record.c proxy/ctl/log_record.h \
	proxy/ctl/tail_command.c proxy/ctl/tail_command.h \
	proxy/ctl/tally.c proxy/ctl/tally.h \
	proxy/ctl/top_command.c proxy/ctl/top_command.h \
	proxy/ctl/command.c proxy/ctl/command.h proxy/ctl/commands.def \
	proxy/ctl/command_completion.c proxy/ctl/command_help.c proxy/ctl/command_line.c \
	proxy/ctl/preload.c proxy/ctl/preload.h \
	proxy/ctl/page_command.c proxy/ctl/page_command.h \
	proxy/ctl/metrics_json.c proxy/ctl/metrics_json.h \
	proxy/ctl/admin_page.c proxy/ctl/admin_page.h \
	proxy/ctl/services_command.c proxy/ctl/services_command.h proxy/ctl/settings_command.c proxy/ctl/settings_command.h \
	proxy/ctl/terminal.c proxy/ctl/terminal.h \
	proxy/ctl/url_jobs.c proxy/ctl/url_jobs.h \
	proxy/ctl/header_line.c proxy/ctl/header_line.h \
	proxy/ctl/http_call.c proxy/ctl/http_call.h \
	proxy/ctl/helperd_client.c proxy/ctl/helperd_client.h \
	proxy/ctl/icap_command.c proxy/ctl/icap_command.h \
	proxy/ctl/icap_record.c proxy/ctl/icap_replay.c proxy/ctl/icap_show.c \
	proxy/ctl/difference.c proxy/ctl/difference.h \
	proxy/ctl/show.c proxy/ctl/show.h
proxy_retortctl_LDADD = $(proxy_libs)
