if PART_EVENTS
proxy_libproxy_a_SOURCES += \
	proxy/parts/events/part.c proxy/parts/events/pages.c \
	proxy/parts/events/filter.c proxy/parts/events/filter.h \
	proxy/parts/events/stream.c proxy/parts/events/stream.h \
	proxy/parts/events/watch.c proxy/parts/events/watch.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_events.c
endif
