if PART_ACCESS
proxy_libproxy_a_SOURCES += \
	proxy/parts/access/part.c \
	proxy/parts/access/settings.c proxy/parts/access/settings.h proxy/parts/access/options.def \
	proxy/parts/access/destination.c proxy/parts/access/destination.h \
	proxy/parts/access/permit.c proxy/parts/access/permit.h \
	proxy/parts/access/purge.c proxy/parts/access/purge_orders.c proxy/parts/access/purge_orders.h \
	proxy/parts/access/recheck.c \
	proxy/parts/access/refusal.c proxy/parts/access/refusal.h \
	proxy/parts/access/rules.c proxy/parts/access/rules.h \
	proxy/parts/access/state.c proxy/parts/access/state.h \
	proxy/parts/access/step.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/access/pages.c
endif
endif
