# Manuals. CONFIGURATION.md and retort.conf.5 are printed from the option table and kept in the tree,
# so that they can be read and installed without building; tests/unit/proxy checks that they are
# current. METRICS.md is printed from the table of counters; tests/check-docs.sh checks that.
dist_man_MANS += docs/retort.8 docs/retort.conf.5 docs/retortctl.1
dist_doc_DATA = README.md CHANGELOG.md SECURITY.md LICENSE docs/ACCESS.md docs/ARCHITECTURE.md docs/CACHE.md docs/CONFIGURATION.md docs/CONFORMANCE.md docs/ICAP.md \
	docs/METRICS.md docs/OPERATIONS.md docs/PERFORMANCE.md docs/SERVICES.md docs/TESTING.md docs/TLS.md docs/TRANSPARENT.md
EXTRA_DIST += docs/write-metrics.sh docs/performance.json docs/plots examples/security-headers.conf

docs: proxy/retort$(EXEEXT)
	proxy/retort$(EXEEXT) --print-options markdown > $(srcdir)/docs/CONFIGURATION.md.new
	mv $(srcdir)/docs/CONFIGURATION.md.new $(srcdir)/docs/CONFIGURATION.md
	proxy/retort$(EXEEXT) --print-options man > $(srcdir)/docs/retort.conf.5.new
	mv $(srcdir)/docs/retort.conf.5.new $(srcdir)/docs/retort.conf.5
	$(srcdir)/docs/write-metrics.sh > $(srcdir)/docs/METRICS.md.new
	mv $(srcdir)/docs/METRICS.md.new $(srcdir)/docs/METRICS.md
.PHONY: docs
