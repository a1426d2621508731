# The folders of the parts, behind all that they add to.
include proxy/parts/limits/local.mk
include proxy/parts/admin/local.mk
include proxy/parts/events/local.mk
include proxy/parts/spans/local.mk
include proxy/parts/http2/local.mk
include proxy/parts/icap/local.mk
include proxy/parts/content/local.mk
include proxy/parts/inside/local.mk
include proxy/parts/disk/local.mk
include proxy/parts/intercept/local.mk
include proxy/parts/transparent/local.mk
include proxy/parts/takeover/local.mk
include proxy/parts/access/local.mk
include proxy/parts/identity/local.mk
include proxy/parts/record/local.mk
include proxy/parts/codings/local.mk
include proxy/parts/rewrite/local.mk
