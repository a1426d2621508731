if PART_TAKEOVER
proxy_libproxy_a_SOURCES += \
	proxy/parts/takeover/part.c \
	proxy/parts/takeover/handover.c proxy/parts/takeover/handover.h \
	proxy/parts/takeover/invalidation_relay.c proxy/parts/takeover/invalidation_relay.h \
	proxy/parts/takeover/removals.c proxy/parts/takeover/removals.h \
	proxy/parts/takeover/takeover.c proxy/parts/takeover/takeover.h \
	proxy/parts/takeover/wire.c proxy/parts/takeover/wire.h
endif
