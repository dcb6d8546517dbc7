#!/usr/bin/env bash
# Checks what building and the labs need, and installs the Debian or Ubuntu packages that are missing.
#   setup.sh --go     Go 1.26 and gcc
#   setup.sh --labs   what the labs run; the services of those packages are kept from starting
#   setup.sh --sid    what `make lab-frr-sid` needs beside
set -euo pipefail

die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

check_go() {
  command -v go >/dev/null || die "Go 1.26 or newer is missing: see https://go.dev/doc/install"
  local v; v=$(go env GOVERSION); v=${v#go}
  local major=${v%%.*} minor=${v#*.}; minor=${minor%%[!0-9]*}
  [ "$major" -gt 1 ] || [ "$minor" -ge 26 ] || die "Go 1.26 or newer is needed, this is $v"
  command -v gcc >/dev/null || die "gcc is missing (the race detector needs it): apt-get install gcc libc6-dev"
}

# command to look for, package that has it
needs="ip:iproute2 nft:nftables tshark:tshark ping:iputils-ping /usr/lib/frr/bgpd:frr vtysh:frr bird:bird2 exabgp:exabgp"

missing() {
  local n out=
  for n in $needs; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${n%%:*}" >/dev/null || out="$out ${n#*:}"
  done
  printf '%s\n' $out | sort -u | xargs
}

labs() {
  local want; want=$(missing)
  [ -n "$want" ] || return 0
  command -v apt-get >/dev/null || die "missing: $want. This is neither Debian nor Ubuntu: install them by hand."
  local as=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || die "missing: $want. As root: apt-get update && apt-get install $want"
    as=(sudo -n)
  fi
  printf 'setup: installing %s\n' "$want"
  # Packages of routing daemons start a service when installed; policy-rc.d forbids it meanwhile.
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as[@]}" tee $policy >/dev/null
    "${as[@]}" chmod 755 $policy
    made=1
  fi
  trap '[ -z "'"$made"'" ] || '"${as[*]}"' rm -f '$policy EXIT
  local log; log=$(mktemp)
  if ! { "${as[@]}" apt-get update && "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $want; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    die "apt-get could not install: $want"
  fi
  rm -f "$log"
  want=$(missing)
  [ -z "$want" ] || die "still missing after the installation: $want"
}

case "${1:-}" in
  --go) check_go ;;
  --labs) labs ;;
  --sid) needs=debootstrap:debootstrap; labs ;;
  *) die "usage: setup.sh --go | --labs | --sid" ;;
esac
