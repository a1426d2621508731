# Configuration of the proxy, of the adaptation server and of the helpers' supervisor.
EXTRA_DIST += \
	conf/c-icap-build.conf.in \
	conf/c-icap-retort.conf.in \
	conf/c-icap.service.d-retort.conf.in \
	conf/helperd-build.conf.in \
	conf/helperd.conf.in \
	conf/lists.conf \
	conf/refresh-lists.sh.in \
	conf/retort-helperd.service.in \
	conf/retort-lists.service.in \
	conf/retort.conf \
	conf/retort.logrotate \
	conf/retort-icap-services.logrotate \
	conf/retort.service.in

# Directories are known to make, not to configure.
made_confs = conf/c-icap-retort.conf conf/helperd.conf
made_units = conf/retort.service conf/retort-helperd.service conf/retort-lists.service conf/c-icap.service.d-retort.conf
made_scripts = conf/refresh-lists.sh
$(made_confs) $(made_units) $(made_scripts): %: %.in Makefile
	@$(MKDIR_P) conf
	$(AM_V_GEN)sed -e 's|@cicapmoduledir[@]|$(cicapmoduledir)|g' -e 's|@helperdir[@]|$(helperdir)|g' \
		-e 's|@retortconfdir[@]|$(retortconfdir)|g' -e 's|@sbindir[@]|$(sbindir)|g' \
		-e 's|@pkgdatadir[@]|$(pkgdatadir)|g' -e 's|@listsdir[@]|$(listsdir)|g' \
		-e 's|@bindir[@]|$(bindir)|g' $< > $@
noinst_DATA = $(made_confs)
CLEANFILES += $(made_confs) $(made_units) $(made_scripts)
# Root's, since root writes there: the proxy's own directory is lib/retort.
listsdir = $(localstatedir)/lib/retort-lists

# For systemd and logrotate, where administrators take them from: docs/OPERATIONS.md.
nodist_pkgdata_DATA = $(made_units)
dist_pkgdata_DATA = conf/retort.logrotate conf/retort-icap-services.logrotate conf/retort-lists.timer
dist_pkgdata_SCRIPTS = conf/reload-c-icap.sh
nodist_pkgdata_SCRIPTS = $(made_scripts)

# An installation never overwrites a file that an administrator may have changed: the examples go to
# NAME.conf.default, and to NAME.conf only where there is none.
install-data-local: $(made_confs)
	$(MKDIR_P) "$(DESTDIR)$(retortconfdir)/conf.d" "$(DESTDIR)$(listsdir)"
	for conf in "$(srcdir)/conf/retort.conf" "$(srcdir)/conf/lists.conf" $(made_confs); do \
	    installed="$(DESTDIR)$(retortconfdir)/`basename $$conf`"; \
	    $(INSTALL_DATA) "$$conf" "$$installed.default" && \
	    { test -e "$$installed" || $(INSTALL_DATA) "$$conf" "$$installed"; } || exit 1; \
	done

uninstall-local:
	for conf in retort.conf lists.conf $(made_confs); do \
	    rm -f "$(DESTDIR)$(retortconfdir)/`basename $$conf`.default"; \
	done

# Printed from the programs' tables of commands and options by "make docs", and kept in the tree as the manuals are.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = conf/completion/retortctl conf/completion/retort-service-test
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = conf/completion/_retortctl conf/completion/_retort-service-test
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = conf/completion/retortctl.fish conf/completion/retort-service-test.fish
