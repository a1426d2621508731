if PART_FLEET
proxy_libproxy_a_SOURCES += \
	proxy/parts/fleet/part.c proxy/parts/fleet/state.h \
	proxy/parts/fleet/chains.c proxy/parts/fleet/chains.h \
	proxy/parts/fleet/engine.h proxy/parts/fleet/redis.c \
	proxy/parts/fleet/event.c proxy/parts/fleet/event.h \
	proxy/parts/fleet/node.c proxy/parts/fleet/node.h proxy/parts/fleet/node_internal.h \
	proxy/parts/fleet/outbox.c proxy/parts/fleet/outbox.h \
	proxy/parts/fleet/place.c proxy/parts/fleet/place.h \
	proxy/parts/fleet/purge_event.c proxy/parts/fleet/purge_event.h \
	proxy/parts/fleet/reader.c \
	proxy/parts/fleet/settings.c proxy/parts/fleet/settings.h \
	proxy/parts/fleet/teller.c \
	proxy/parts/fleet/wire.c proxy/parts/fleet/wire.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_fleet.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/fleet/pages.c
endif
endif
