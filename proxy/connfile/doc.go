// Package connfile is the connection file: the 0600 JSON file by which a router
// and the sidecar say where they listen and prove who they are.
//
// [Read] takes one in, judged on the opened file and not on its path. [Publish]
// puts one in place atomically with exactly the members the sidecar publishes.
// [Remove] takes it away again, if it is still ours. [TakeLock] tells a second
// sidecar that the path is taken. [Watch] says when the file may have changed,
// by watching its folder: a rename would lose a watch on the file. [Discover]
// finds the router's. [Dial] connects to what a file names and shakes hands.
//
// The key is a [Secret]: no verb prints it. Every error names the file and what
// to do about it, in one line, and holds no value of the file.
package connfile
