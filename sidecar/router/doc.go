// Package router is the sidecar's own conversation with the router behind it:
// one authenticated client connection, and the questions that only the router
// can answer.
//
// [Dial] opens a [Link]; requests of any goroutine share it by corr. On a link
// stand the questions: [Link.Describe] (does it serve scopes itself),
// [Link.Modules] (who is configured), [Link.Restart], [Link.SpawnSnapshot] and
// [Link.SpawnSubscribe] (who is launched), and [Link.Attest] (is a nonce a live
// launch's), which relays nothing to anybody.
//
// A link knows no policy: it caches nothing, retries nothing and logs nothing.
// What the answers mean is the launch table's and the sidecar's.
package router
