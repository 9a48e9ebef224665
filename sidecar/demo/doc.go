// Package demo plays the sidecar's main job in one process on loopback: a stub
// router, the sidecar in front of it, a scope owner, a provider and two openers.
//
// The story is told step by step as it happens and summed up in a table. A step
// that did not go as told fails the demo: it proves an installation as much as
// it explains one.
package demo
