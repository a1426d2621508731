# Configuration of the proxy, of the adaptation server and of the helpers' supervisor.
EXTRA_DIST += \
	conf/c-icap-build.conf.in \
	conf/c-icap-retort.conf.in \
	conf/helperd-build.conf.in \
	conf/helperd.conf.in \
	conf/retort.conf

# Directories are known to make, not to configure.
conf/c-icap-retort.conf: conf/c-icap-retort.conf.in Makefile
	@$(MKDIR_P) conf
	$(AM_V_GEN)sed -e 's|@cicapmoduledir[@]|$(cicapmoduledir)|g' \
		-e 's|@retortconfdir[@]|$(retortconfdir)|g' $(srcdir)/conf/c-icap-retort.conf.in > $@
conf/helperd.conf: conf/helperd.conf.in Makefile
	@$(MKDIR_P) conf
	$(AM_V_GEN)sed -e 's|@helperdir[@]|$(helperdir)|g' \
		-e 's|@retortconfdir[@]|$(retortconfdir)|g' $(srcdir)/conf/helperd.conf.in > $@
made_confs = conf/c-icap-retort.conf conf/helperd.conf
noinst_DATA = $(made_confs)
CLEANFILES += $(made_confs)

# An installation never overwrites a file that an administrator may have changed: the examples go to
# NAME.conf.default, and to NAME.conf only where there is none.
install-data-local: $(made_confs)
	$(MKDIR_P) "$(DESTDIR)$(retortconfdir)"
	for conf in "$(srcdir)/conf/retort.conf" $(made_confs); do \
	    installed="$(DESTDIR)$(retortconfdir)/`basename $$conf`"; \
	    $(INSTALL_DATA) "$$conf" "$$installed.default" && \
	    { test -e "$$installed" || $(INSTALL_DATA) "$$conf" "$$installed"; } || exit 1; \
	done

uninstall-local:
	for conf in retort.conf $(made_confs); do \
	    rm -f "$(DESTDIR)$(retortconfdir)/`basename $$conf`.default"; \
	done
