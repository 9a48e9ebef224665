// Package bpf tells which process is at the other end of a TCP connection that
// we accepted. It attributes: it redirects, filters and blocks nothing.
package bpf
