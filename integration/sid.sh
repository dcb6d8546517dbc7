#!/usr/bin/env bash
# Puts Debian sid's FRR into a folder, for `make lab-frr-sid`; a folder that has one is left as it is.
#   sid.sh FOLDER
# DEBIAN_MIRROR (http://deb.debian.org/debian) is where it comes from. Needs root and debootstrap.
set -euo pipefail

die() { printf 'sid: %s\n' "$*" >&2; exit 1; }

# What chroot runs mount is in a mount namespace of their own and ends with them, however they end.
inside() {
  local new=$1
  debootstrap --variant=minbase sid "$new" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
  printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d" # the package starts no service
  chmod 755 "$new/usr/sbin/policy-rc.d"
  mount -t proc proc "$new/proc"
  export DEBIAN_FRONTEND=noninteractive LC_ALL=C
  chroot "$new" apt-get -y --no-install-recommends install frr
  chroot "$new" apt-get clean
  rm -rf "$new"/var/lib/apt/lists/*
  mkdir -p "$new/var/lib/frr" "$new/var/tmp"
}

version() { chroot "$1" /usr/lib/frr/bgpd --version | sed -n 's/^bgpd version //p'; }

case "${1:-}" in
  --inside) shift; inside "$@"; exit ;;
  /*) root=$1 ;;
  *) die "usage: sid.sh FOLDER, an absolute path" ;;
esac
[ "$(id -u)" = 0 ] || die "needs root, for chroot and namespaces"
if [ ! -x "$root/usr/lib/frr/bgpd" ]; then
  [ ! -e "$root" ] || die "$root exists and has no FRR in it: remove it, or name another folder with SID_ROOT"
  new=$root.new
  log=$root.log
  mkdir -p "$(dirname "$root")"
  rm -rf --one-file-system "$new"
  trap 'rm -rf --one-file-system "$new"' EXIT
  printf 'sid: putting Debian sid with FRR into %s (about 400 MB)\n' "$root"
  if ! unshare --mount --propagation private -- "$0" --inside "$new" >"$log" 2>&1; then
    tail -20 "$log" >&2
    die "failed; all of it is in $log"
  fi
  mv "$new" "$root"
  rm -f "$log"
fi
printf 'sid: FRR %s in %s\n' "$(version "$root")" "$root"
