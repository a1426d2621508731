if PART_ADAPT
proxy_libproxy_a_SOURCES += \
	proxy/parts/adapt/part.c proxy/parts/adapt/settings.c proxy/parts/adapt/settings.h \
	proxy/parts/adapt/adaptation.c proxy/parts/adapt/adaptation.h \
	proxy/parts/adapt/adapted_variant.c proxy/parts/adapt/adapted_variant.h \
	proxy/parts/adapt/postcache.c proxy/parts/adapt/postcache.h \
	proxy/parts/adapt/reqmod.c proxy/parts/adapt/reqmod.h proxy/parts/adapt/reqmod_postcache.c \
	proxy/parts/adapt/respmod.c proxy/parts/adapt/respmod.h proxy/parts/adapt/respmod_postcache.c \
	proxy/parts/adapt/service_log.c proxy/parts/adapt/service_log.h \
	proxy/parts/adapt/shown_message.c proxy/parts/adapt/shown_message.h \
	proxy/parts/adapt/steps.h proxy/parts/adapt/variant.c \
	proxy/parts/adapt/told.c proxy/parts/adapt/told.h \
	proxy/parts/adapt/variant_object.c proxy/parts/adapt/variant_object.h \
	proxy/parts/adapt/waiting_download.c proxy/parts/adapt/waiting_download.h \
	proxy/parts/adapt/waiting_page.c proxy/parts/adapt/waiting_page.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_waiting_download.c
endif
