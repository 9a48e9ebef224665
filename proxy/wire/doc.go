// Package wire is the router's envelope, version 2, written once: the 21-byte
// header, whole frames, and the JSON bodies of the control channel.
//
// Everything the sidecar knows about bytes is here: offsets, frame types, flag
// bits, limits, op names and error bodies appear in no other package. The
// package holds no socket, no goroutine and no policy. It parses what it is
// given and renders what it is told to.
//
// A control body is read with [ParseObject], which splits the top level of a
// JSON object into members and leaves every value as the bytes that came. It
// accepts whatever the router's own decoder accepts, and more: a body that it
// reads differently from the router would let a caller name a scope that only
// one of the two sees. Members that are ours are then decoded strictly with
// [Unmarshal].
package wire
