package bpf

// Needs clang and llvm-strip, nothing else. The generated Go and the objects are
// committed; running it again changes nothing.
//
//go:generate go tool bpf2go -go-package bpf -target amd64,arm64 -no-global-types -cc clang -strip llvm-strip attribute attribute.c -- -O2 -Wall -Wextra -Werror -nostdinc
