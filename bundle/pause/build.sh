#!/bin/sh
# build.sh OUT: pause.c as OUT/pause-{amd64,arm64,arm}, with Debian's gcc and its cross compilers; the same bytes each time with the same
# compilers. Packages: gcc gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf. archive.mjs makes the image of them.
set -eu
out=$1
cd "$(dirname "$0")"

build() { # NAME TRIPLE FLAGS…
  name=$1 triple=$2
  shift 2
  "$triple-gcc" "$@" -std=c11 -Os -Wall -Wextra -Werror -ffreestanding -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables \
    -fomit-frame-pointer -fno-pie -fno-ident -ffile-prefix-map="$PWD"=. -nostdlib -static -no-pie \
    -Wl,--build-id=none -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,-z,noexecstack -Wl,-z,max-page-size=65536 -o "$out/pause-$name" pause.c
  "$triple-strip" --strip-all --remove-section=.comment --remove-section=.note.gnu.property --remove-section=.ARM.attributes "$out/pause-$name"
}

build amd64 x86_64-linux-gnu -fcf-protection=none
build arm64 aarch64-linux-gnu
build arm arm-linux-gnueabihf -marm
echo "gcc $(x86_64-linux-gnu-gcc -dumpfullversion) $(aarch64-linux-gnu-gcc -dumpfullversion) $(arm-linux-gnueabihf-gcc -dumpfullversion), $(ld --version | head -n 1)" >"$out/compilers"
