if PART_ADAPT
proxy_libproxy_a_SOURCES += \
	proxy/parts/adapt/adapter.c proxy/parts/adapt/adapter.h \
	proxy/parts/adapt/adapter_account.c proxy/parts/adapt/adapter_account.h proxy/parts/adapt/adapter_account.def \
	proxy/parts/adapt/adapter_accounts.c proxy/parts/adapt/adapter_accounts.h \
	proxy/parts/adapt/adapter_call.c proxy/parts/adapt/adapter_call.h \
	proxy/parts/adapt/asked.c \
	proxy/parts/adapt/bypasses.c proxy/parts/adapt/bypasses.h \
	proxy/parts/adapt/foreign_call.c proxy/parts/adapt/foreign_call.h \
	proxy/parts/adapt/chain.c proxy/parts/adapt/chain.h proxy/parts/adapt/message.h \
	proxy/parts/adapt/client_fields.c proxy/parts/adapt/client_fields.h \
	proxy/parts/adapt/coding.c proxy/parts/adapt/coding.h \
	proxy/parts/adapt/decoder.c proxy/parts/adapt/decoder.h \
	proxy/parts/adapt/decoding.c proxy/parts/adapt/decoding.h \
	proxy/parts/adapt/warm_up.c proxy/parts/adapt/warm_up.h \
	proxy/parts/adapt/adapt_worker.c proxy/parts/adapt/adapt_worker.h \
	proxy/parts/adapt/representation.c proxy/parts/adapt/representation.h \
	proxy/parts/adapt/chain_tags.c proxy/parts/adapt/chain_tags.h \
	proxy/parts/adapt/named_addresses.c proxy/parts/adapt/named_addresses.h \
	proxy/parts/adapt/opt_outs.h \
	proxy/parts/adapt/recording.h proxy/parts/adapt/recall.c proxy/parts/adapt/recall.h \
	proxy/parts/adapt/server_numbers.def proxy/parts/adapt/server_numbers.h \
	proxy/parts/adapt/service_report.c proxy/parts/adapt/service_report.h \
	proxy/parts/adapt/service_tag.c proxy/parts/adapt/service_tag.h \
	proxy/parts/adapt/set.c proxy/parts/adapt/set.h \
	proxy/parts/adapt/shared_service.c proxy/parts/adapt/shared_service.h \
	proxy/parts/adapt/stated_length.c proxy/parts/adapt/stated_length.h \
	proxy/parts/adapt/verdicts.c proxy/parts/adapt/verdicts.h \
	proxy/parts/adapt/virgin_body.c proxy/parts/adapt/virgin_body.h \
	proxy/parts/adapt/part.c proxy/parts/adapt/settings.c proxy/parts/adapt/settings.h \
	proxy/parts/adapt/options_services_both.def proxy/parts/adapt/services_settings.c \
	proxy/parts/adapt/adaptation.c proxy/parts/adapt/adaptation.h \
	proxy/parts/adapt/postcache.c proxy/parts/adapt/postcache.h \
	proxy/parts/adapt/reqmod.c proxy/parts/adapt/reqmod.h proxy/parts/adapt/reqmod_postcache.c \
	proxy/parts/adapt/respmod.c proxy/parts/adapt/respmod.h proxy/parts/adapt/respmod_postcache.c \
	proxy/parts/adapt/service_log.c proxy/parts/adapt/service_log.h \
	proxy/parts/adapt/shown_message.c proxy/parts/adapt/shown_message.h \
	proxy/parts/adapt/steps.h \
	proxy/parts/adapt/told.c proxy/parts/adapt/told.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_chain.c tests/unit/proxy/test_icap_tag.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/adapt/pages.c proxy/parts/adapt/service_metrics_page.c \
	proxy/parts/adapt/services_page.h
endif
endif
