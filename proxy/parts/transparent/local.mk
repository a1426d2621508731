if PART_TRANSPARENT
proxy_libproxy_a_SOURCES += \
	proxy/parts/transparent/part.c \
	proxy/parts/transparent/connection.c proxy/parts/transparent/connection.h \
	proxy/parts/transparent/destination.c \
	proxy/parts/transparent/own_connections.c proxy/parts/transparent/own_connections.h \
	proxy/parts/transparent/settings.c proxy/parts/transparent/settings.h
endif
