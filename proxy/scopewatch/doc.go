// Package scopewatch is for providers: it follows a router's scopes over the
// provider's own registered module connection and answers, from memory, whether
// something bound to a scope may go on (sections 5 and 7).
//
// It is not a connection. The provider's SDK has one, and a [Watcher] sends its
// requests through it and is shown the frames that come:
//
//	registered    [Watcher.Follow]  begins scope.subscribe, where the ack lists it
//	every frame   [Watcher.Take]    keeps those of its own corrs, and says so
//	closed        [Watcher.Lost]    nothing is known until the next Follow
//
//	a live call       [Watcher.Hold]    waits for an owner that has not synced
//	a stored binding  [Watcher.Decide]  never waits for the owner
//	running work      [Watcher.Ended]   returns when the binding is dead
//
// A route's close ends nothing: it carries no reason, and routes close for
// ordinary reasons too. The provider asks Decide, and gives work up only when
// the verdict is dead.
//
// Where the feed can't tell, scope.describe is asked: whether an owner that has
// not synced is configured, anything while the first set is still coming, and
// everything on a router without scope.subscribe.
//
// A Watcher has no goroutine: Take runs on its caller's, and so does whatever
// waits. [Run] is a connection of its own for a provider without an SDK. It lives
// on the goroutine that calls it and has one more, which writes; both have ended
// when it returns.
package scopewatch
