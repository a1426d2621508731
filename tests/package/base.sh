# What makes chroots shares: a minimal Debian by debootstrap, from the mirror that this machine installs from.
own_suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

mirror() {
    apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v suite="$own_suite" '$1 == suite && $2 == "main" { print $3; exit }' | grep . || echo http://deb.debian.org/debian
}

# A mirror may fail for a moment: twice.
bootstrap() {
    debootstrap --variant=minbase ${3:+--include="$3"} "$1" "$2" "$(mirror)" && return
    rm -rf --one-file-system "$2"
    debootstrap --variant=minbase ${3:+--include="$3"} "$1" "$2" "$(mirror)"
}

# base_system SUITE ROOT FILE [PACKAGES]: into the folder ROOT. The file keeps it for the next time, for a day.
base_system() {
    rm -rf --one-file-system "$2"
    if [ -n "$(find "$3" -mtime -1 2>/dev/null)" ]; then
        mkdir "$2" && tar -C "$2" -xpf "$3" || return
    else
        bootstrap "$1" "$2" "${4:-}" || return
        tar -C "$2" --one-file-system -cf "$3" . || return
    fi
    cp /etc/apt/apt.conf.d/*proxy* "$2/etc/apt/apt.conf.d/" 2>/dev/null || true
    echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/speed"
    echo 'Acquire::Languages "none";' >"$2/etc/apt/apt.conf.d/speed"
}
