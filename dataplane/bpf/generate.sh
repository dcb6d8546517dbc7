#!/bin/sh
# generate.sh NAME TYPE...: run by go generate in a program's package; doc.go says what for. OUTPUT is where the result
# goes, by default the package's directory.
set -eu
export LC_ALL=C
name=$1
shift
here=$(dirname "$0")
types=
for t; do types="$types -type $t"; done
# shellcheck disable=SC2086 # each type is an argument
go tool -modfile="$here/../../tools/go.mod" bpf2go -output-dir "${OUTPUT:=.}" $types "$name" "$name.c" -- \
	-I"$here" -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu -mcpu=v3 -Wall -Werror
{
	# shellcheck disable=SC2046 # no name has a blank
	sha256sum "$name.c" $(find . -maxdepth 1 -name '*.h' | sort) "$here"/*.h | sed "s|  .*/|  |"
	clang --version | head -n 1
} >"$OUTPUT/$name.sum"
