#!/bin/sh
# Makes a fresh checkout ready: Node 24 and the packages, the guest binary, bubblewrap. Says what it does,
# does only what is needed, and names the exact command where it may not do it itself.
# `--tests` also installs what the tests use.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
mkdir -p .caisson/bin

say() { printf 'caisson: %s\n' "$*" >&2; }
fail() { say "$1"; shift; for line in "$@"; do printf '         %s\n' "$line" >&2; done; exit 1; }
# Also where only root's PATH leads.
have() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

apt_install() {
  { apt-get install -y -qq "$@" || { apt-get update -qq && apt-get install -y -qq "$@"; }; } >.caisson/apt.log 2>&1 </dev/null ||
    fail "apt-get could not install $*; its words are in .caisson/apt.log"
}

# install PROGRAM PACKAGES… — through apt where root allows it, else the command to type.
install() {
  program=$1; shift
  have "$program" && return 0
  if [ "$(id -u)" = 0 ] && have apt-get; then
    say "installing $* …"
    apt_install "$@"
    have "$program" || fail "$* is installed, but there is still no $program on the PATH"
  elif have apt-get; then
    fail "$program is missing" "run: sudo apt-get install $*"
  else
    fail "$program is missing" "install it with your system's package manager ($*)"
  fi
}

# need PROGRAM PACKAGES… — the same, but goes on without it where it may not install; `tell_missing` then says everything at once.
missing=
need() {
  if have "$1"; then return 0; fi
  if [ "$(id -u)" = 0 ]; then install "$@"; return; fi
  shift
  missing="$missing $*"
}
# need_package PACKAGE TEST… — the same for what is not known by the name of a program: the test says whether it is there.
need_package() {
  package=$1; shift
  if "$@" >/dev/null 2>&1; then return 0; fi
  if [ "$(id -u)" != 0 ]; then missing="$missing $package"; return; fi
  say "installing $package …"
  apt_install "$package"
  "$@" >/dev/null 2>&1 || fail "$package is installed, but what the tests use of it is not there"
}
tell_missing() {
  [ -z "$missing" ] || fail "the tests use programs that are missing here" "run: sudo apt-get install$missing"
}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) cpu=x86_64; platform=linux-x64 ;;
  Linux-aarch64) cpu=aarch64; platform=linux-arm64 ;;
  *) fail "Caisson runs on Linux (x86-64 and arm64); this is $(uname -s) on $(uname -m)" \
       "on another system, run it in a Linux virtual machine" ;;
esac
export DEBIAN_FRONTEND=noninteractive

# Which C library the guest is linked with. musl: half the size, and a start that asks the processor nothing, which in a virtual
# machine is most of glibc's. Distributions' own Rust has only glibc's.
guest_target() {
  musl=$cpu-unknown-linux-musl
  if [ -d "$(rustc --print sysroot)/lib/rustlib/$musl/lib" ] || { have rustup && rustup --quiet target add "$musl" >/dev/null 2>&1; }; then
    echo "$musl"
  else
    echo "$cpu-unknown-linux-gnu"
  fi
}

# Packages, with Node 24 among them.
lock=$(sha256sum package-lock.json)
install_packages() {
  [ "$(cat .caisson/packages 2>/dev/null)" = "$lock" ] && [ -x node_modules/.bin/node ] && return 0
  install npm npm
  say "installing packages (once) …"
  npm ci --no-audit --no-fund --loglevel=error >.caisson/npm.log 2>&1 || {
    grep '^npm error' .caisson/npm.log | head -8 >&2
    fail "npm ci failed; all its words are in .caisson/npm.log"
  }
  [ -x node_modules/.bin/node ] || fail "npm did not bring Node 24 for $platform" "run: npm install node-$platform@24"
  printf '%s' "$lock" >.caisson/packages
}

# The guest: a prebuilt one of this version if there is one, else from source.
sources=$(find guest/src guest/build.rs guest/Cargo.toml guest/Cargo.lock -type f 2>/dev/null | LC_ALL=C sort | xargs sha256sum | sha256sum)
make_guest() {
  [ "$(cat .caisson/guest 2>/dev/null)" = "$sources" ] && [ -x .caisson/bin/caisson-guest ] && return 0
  prebuilt=node_modules/@caisson/guest-$platform/caisson-guest
  if [ -x "$prebuilt" ] && [ ! -d guest/target ] && ! have cargo; then
    cp "$prebuilt" .caisson/bin/caisson-guest.new
  else
    if ! have cargo && [ "$(id -u)" != 0 ]; then
      fail "there is no Rust to build the guest with" "run: sudo apt-get install cargo-web rustc-web" \
        "or, without root, have Rust for yourself: https://rustup.rs" \
        "or take a guest that \`npm run release\` has made elsewhere: npm install --no-save caisson-guest-$platform-VERSION.tgz"
    fi
    have cargo || install cargo cargo-web rustc-web
    say "building the guest (once) …"
    target=$(guest_target)
    RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --quiet --manifest-path guest/Cargo.toml \
      --target "$target" >.caisson/cargo.log 2>&1 || { cat .caisson/cargo.log >&2; fail "the guest did not build"; }
    cp "${CARGO_TARGET_DIR:-guest/target}/$target/release/caisson-guest" .caisson/bin/caisson-guest.new
  fi
  chmod 755 .caisson/bin/caisson-guest.new
  mv .caisson/bin/caisson-guest.new .caisson/bin/caisson-guest
  ln -sf caisson-guest .caisson/bin/caisson
  printf '%s' "$sources" >.caisson/guest
}

# One at a time. What an interrupted one started has the lock until it is gone as well.
exec 9>.caisson/lock
if have flock && ! flock -n 9; then
  say "waiting for another set-up of this checkout …"
  flock 9
fi

# Packages come over the network while the processor builds. Without Rust, the guest may be among the packages.
if have cargo; then
  install_packages &
  packages=$!
  trap 'kill "$packages" 2>/dev/null || true' EXIT
  trap 'exit 130' INT TERM
  make_guest
  wait "$packages"
  trap - EXIT INT TERM
else
  install_packages
  make_guest
fi

have bwrap || install bwrap bubblewrap
exec 9>&-

if [ "${1:-}" = --tests ]; then
  need cargo cargo-web rustc-web
  need gcc gcc libc6-dev
  need go golang-go
  need javac default-jdk-headless
  need python3 python3
  need strace strace
  need git git
  need curl curl
  need wget wget
  need openssl openssl
  need strings binutils
  need npm npm
  need pip3 python3-pip
  need pytest-3 python3-pytest
  need_package python3-grpcio /usr/bin/python3 -c 'import grpc'
  need mvn maven
  need jq jq
  need perl perl
  need script bsdutils
  need zsh zsh
  need fish fish
  need chromium chromium
  need dockerd docker.io
  need runsc runsc
  if [ "$(uname -m)" = x86_64 ]; then
    need qemu-system-x86_64 qemu-system-x86
    need mkfs.erofs erofs-utils
    need_package linux-image-cloud-amd64 sh -c 'ls /boot/vmlinuz-*cloud*'
  fi
  # The other package of that name, which a kernel brings, needs libraries that the tests' images do not have.
  need_package busybox-static sh -c '[ -x /usr/bin/busybox ] && ! ldd /usr/bin/busybox'
  need podman podman
  need newuidmap uidmap
  need rootlesskit rootlesskit
  need slirp4netns slirp4netns
  need rsync rsync
  tell_missing
fi
touch .caisson/stamp
