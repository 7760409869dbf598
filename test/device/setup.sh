#!/bin/bash
# setup.sh demo|test|bench|pi|deb [ARGS…]: the first command after `git clone`. Installs what is missing from Debian and npm, builds the
# bundle when sources changed, and runs the thing. Says what it does; quick when there is nothing to do. Needs no terminal.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${1:-}
[ $# -gt 0 ] && shift
case $what in demo | test | bench | pi | deb) ;; *) echo "usage: $0 demo|test|bench|pi|deb [ARGS]" >&2; exit 2 ;; esac

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

command -v node >/dev/null || fail "Node is not installed: Node 20.19 or newer is needed (https://nodejs.org; Debian 13: apt-get install nodejs npm)"
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
  fail "Node $(node --version) is too old: 20.19 or newer is needed (Debian 12's own nodejs is 18: take one from https://nodejs.org)"
command -v npm >/dev/null || fail "npm is not installed (Debian: apt-get install npm)"
# a package is only packed: nothing of the machine is needed for that
[ "$what" = deb ] || [ "$(id -u)" = 0 ] || fail "run me as root: a private containerd, a bridge and firewall rules are made, and taken away again"

# Debian packages, only the missing ones, without their services: the test beds start their own.
packages=(containerd runc containernetworking-plugins busybox-static iproute2 iptables mosquitto mosquitto-clients)
# the emulated Pi has all of that inside; here is what makes its disk and what runs it
[ "$what" = pi ] && packages=(qemu-system-arm qemu-utils qemu-user-static arch-test mmdebstrap e2fsprogs debian-archive-keyring)
[ "$what" = deb ] && packages=(dpkg)
# systemd for systemd-analyze and its like, nothing of it is started; brokers of other makes; a registry of our own for tests and bench
[ "$what" = test ] && packages+=(systemd openssl nats-server redis-server)
case $what in test | bench) packages+=(docker-registry skopeo) ;; esac
if [ "$what" = test ]; then # the image of sandboxes is compiled for all three machines, and tried on them
  packages+=(zstd gcc binutils gcc-arm-linux-gnueabihf qemu-user)
  [ "$(dpkg --print-architecture)" = amd64 ] && packages+=(gcc-aarch64-linux-gnu) || packages+=(gcc-x86-64-linux-gnu)
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || fail "no apt-get here; please install: ${missing[*]}"
  say "installing from Debian: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
  fi
  active() { [ -d /run/systemd/system ] && systemctl is-active --quiet "$1"; }
  started=()
  for service in containerd mosquitto docker-registry nats-server redis-server; do active $service || started+=("$service"); done
  apt-get -qq update </dev/null
  apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
  for service in "${started[@]}"; do # only those that did not run before
    active "$service" && { say "stopping Debian's $service.service, which the installation started"; systemctl stop "$service"; }
  done
  [ -n "$(trap -p EXIT)" ] && rm -f $policy && trap - EXIT
  say "Debian packages are there"
fi

if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  say "npm ci (a minute the first time)"
  npm ci --include=dev --no-audit --no-fund --loglevel=error </dev/null
  touch node_modules/.package-lock.json
fi
export PATH="$PWD/node_modules/.bin:$PATH"

build() {
  if [ ! -e bundle/podsched.cjs ] || [ -n "$(find src bundle/build.mjs package.json package-lock.json -newer bundle/podsched.cjs -print -quit)" ]; then
    say "building bundle/podsched.cjs"
    node bundle/build.mjs
  fi
}

case $what in
  demo) build; exec node --import tsx test/device/demo.ts "$@" ;;
  bench) build; exec node --import tsx test/bench/bench.ts "$@" ;;
  pi) build; exec node --import tsx test/pi/run.ts "$@" ;;
  deb) build; exec node bundle/deb.mjs "$@" ;;
  test)
    if [ $# -eq 0 ]; then
      say "checking types and style"
      npm run --silent check
    else
      say "a subset: types and style are not checked"
    fi
    build
    exec node --import tsx test/run.ts "$@"
    ;;
esac
