if PART_ICAP
if PART_ADMIN
helper_PROGRAMS += proxy/retort-icap-replay
endif
proxy_libproxy_a_SOURCES += \
	proxy/parts/icap/part.c \
	proxy/parts/icap/adapted_body.c \
	proxy/parts/icap/adapter.c proxy/parts/icap/adapter.h \
	proxy/parts/icap/call.c proxy/parts/icap/call.h proxy/parts/icap/send.c proxy/parts/icap/receive.c \
	proxy/parts/icap/endpoint.c proxy/parts/icap/endpoint.h \
	proxy/parts/icap/health.c proxy/parts/icap/health.h \
	proxy/parts/icap/host.c proxy/parts/icap/host.h \
	proxy/parts/icap/host_check.c proxy/parts/icap/host_check.h \
	proxy/parts/icap/look.c proxy/parts/icap/look.h \
	proxy/parts/icap/lost_connections.c proxy/parts/icap/lost_connections.h \
	proxy/parts/icap/options.c proxy/parts/icap/options.h \
	proxy/parts/icap/permission.c proxy/parts/icap/permission.h \
	proxy/parts/icap/info.c proxy/parts/icap/info.h \
	proxy/parts/icap/probe.c proxy/parts/icap/probe.h \
	proxy/parts/icap/settings.c proxy/parts/icap/settings.h \
	proxy/parts/icap/server.c proxy/parts/icap/server.h \
	proxy/parts/icap/quota.c proxy/parts/icap/quota.h \
	proxy/parts/icap/service.c proxy/parts/icap/service.h \
	proxy/parts/icap/wire.c proxy/parts/icap/wire.h
tests_unit_proxy_unit_proxy_SOURCES += \
	tests/unit/proxy/test_info_text.c \
	tests/unit/proxy/test_host_check.c tests/unit/proxy/test_icap_host.c \
	tests/unit/proxy/test_wire.c \
	tests/unit/proxy/test_verdicts.c
endif
