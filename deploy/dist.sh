#!/usr/bin/env bash
# Packs what an operator installs: dist.sh VERSION BIN OUT writes OUT/pncd-VERSION-OS-ARCH.tar.gz and prints
# its path. The layout is the repository's, so that links between the pages work. The same commit and the
# same binaries give the same octets.
set -euo pipefail
export LC_ALL=C

version=$1 bin=$(realpath "$2") given=$3 out=$3
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "$0")/.."
go=${GO:-go}
name=pncd-$version-$($go env GOOS)-$($go env GOARCH)
stage=$(mktemp -d "$out/.stage-XXXXXX")
trap 'rm -rf "$stage"' EXIT
root=$stage/$name

install -D -t "$root/bin" "$bin/pncd" "$bin/pncctl" "$bin/pnclab"
# Files of the commit only, where git knows them.
{ git ls-files LICENSE README.md docs proto deploy integration/bed integration/README.md 2>/dev/null ||
  find LICENSE README.md docs proto deploy integration/bed integration/README.md -type f; } |
  grep -v -e '\.go$' -e '^deploy/dist\.sh$' | xargs cp --parents -t "$root"

# The notices of every module that is linked, beside each package's own and up to its module's root.
goroot=$($go env GOROOT)
install -D -m 644 -t "$root/licenses/go" "$goroot/LICENSE" "$goroot/PATENTS"
$go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}} {{$.Dir}}{{end}}{{end}}' ./cmd/pncd ./cmd/pncctl ./cmd/pnclab |
  sort -u | while read -r module base dir; do
    while :; do
      for f in "$dir"/{LICEN[CS]E,COPYING,NOTICE,PATENTS,AUTHORS}*; do
        [ ! -f "$f" ] || [[ $f == *.go ]] || install -D -m 644 "$f" "$root/licenses/$module/${f#"$base"/}"
      done
      [ "$dir" != "$base" ] || break
      dir=$(dirname "$dir")
    done
    compgen -G "$root/licenses/$module/*" >/dev/null || { echo "dist: no licence found for $module" >&2; exit 1; }
  done

when=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
tar -C "$stage" --format=ustar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner --mode=u+rw,go-w,a+rX -cf - "$name" |
  gzip -n9 >"$stage/tar.gz"
mv "$stage/tar.gz" "$out/$name.tar.gz"
echo "$given/$name.tar.gz"
