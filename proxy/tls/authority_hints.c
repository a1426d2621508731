#include "tls/authority_hints.h"

#include <stddef.h>

const struct authority_hint authority_hints[] = {
    {"Debian, Ubuntu",
     "Run as root:\n"
     "    cp retort-ca.crt /usr/local/share/ca-certificates/retort-ca.crt\n"
     "    update-ca-certificates\n"
     "Python's requests, Node.js and Java have stores of their own: REQUESTS_CA_BUNDLE=FILE,\n"
     "NODE_EXTRA_CA_CERTS=FILE, keytool -importcert -cacerts -alias retort -file FILE\n"},
    {"Chromium and Chrome on Linux",
     "Run as the user (certutil is in the package libnss3-tools):\n"
     "    certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n retort -i retort-ca.crt\n"},
    {"Firefox",
     "Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import. Choose\n"
     "\"Trust this CA to identify websites\". On Windows and macOS, Firefox can use the store of\n"
     "the system instead: about:config, security.enterprise_roots.enabled = true.\n"},
    {"Windows",
     "Run in a command prompt as administrator:\n"
     "    certutil -addstore -f Root retort-ca.crt\n"
     "In a domain, a group policy installs it everywhere: Computer Configuration, Windows\n"
     "Settings, Security Settings, Public Key Policies, Trusted Root Certification Authorities.\n"},
    {"macOS",
     "Run in a terminal:\n"
     "    sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain "
     "retort-ca.crt\n"},
    {"iPhone, iPad",
     "Open the file, then Settings, Profile Downloaded, Install. Then switch it on: Settings,\n"
     "General, About, Certificate Trust Settings.\n"},
    {"Android",
     "Settings, Security, Encryption & credentials, Install a certificate, CA certificate.\n"
     "Browsers trust it then; most apps do not, and Retort relays their connections as they are\n"
     "after some refusals (interception.refusals).\n"},
    {NULL, NULL},
};
