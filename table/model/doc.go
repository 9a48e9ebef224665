// Package model is a second implementation of the table's rules, for tests only.
// It is written from the sentences of the contract (sections 2, 3, 4, 5, 5a, 6
// and 11, and the router's own choices where those are silent) and not from
// package table: plain maps, loops over everything, a copy of the whole state for
// every change. It is slow, and short enough to be read beside the contract.
//
// A change copies the state, works on the copy and throws it away when the call
// is refused. Drains, new tags and released presence are never tracked: they are
// read off by comparing the state before with the state after.
package model
