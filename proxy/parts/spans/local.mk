if PART_SPANS
proxy_libproxy_a_SOURCES += \
	proxy/parts/spans/part.c \
	proxy/parts/spans/collector.h \
	proxy/parts/spans/exporter.c proxy/parts/spans/exporter.h \
	proxy/parts/spans/otlp.c proxy/parts/spans/otlp.h \
	proxy/parts/spans/spans.c proxy/parts/spans/spans.h \
	proxy/parts/spans/settings.c proxy/parts/spans/settings.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_spans.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/spans/pages.c
endif
if CURL
proxy_libproxy_a_SOURCES += proxy/parts/spans/collector.c
else
proxy_libproxy_a_SOURCES += proxy/parts/spans/collector_none.c
endif
endif
EXTRA_DIST += proxy/parts/spans/collector.c proxy/parts/spans/collector_none.c
