if PART_PATIENCE
proxy_libproxy_a_SOURCES += \
	proxy/parts/patience/part.c proxy/parts/patience/patience.h proxy/parts/patience/chain_trickle.c \
	proxy/parts/patience/trickle.c proxy/parts/patience/trickle.h \
	proxy/parts/patience/waiting_download.c proxy/parts/patience/waiting_download.h \
	proxy/parts/patience/waiting_page.c proxy/parts/patience/waiting_page.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_waiting_download.c
endif
