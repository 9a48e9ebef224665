package scopewatch_test

import (
	"context"
	"fmt"

	"scopeward/proxy/scopewatch"
)

// A provider runs work for a session. The work survives a restart of the router,
// which knows nobody's sessions then, and ends with the session.
func Example() {
	play(func(s *stage) {
		ctx := context.Background()
		w := s.provider(scopewatch.Params{})
		session := scopewatch.Binding{Owner: scopewatch.Module(core), Ref: "session-1", Epoch: 1}
		s.module(core).Sync(1, head("session-1", 1)).OK()

		// A call comes in under the session and starts work that outlives it.
		fmt.Println("call:", w.Hold(ctx, session).Case)
		killed := make(chan string)
		go func() {
			if v := w.Ended(ctx, session); v.Dead() {
				killed <- "killed (scope revoked): " + v.Case.String()
			}
		}()

		// The router restarts: nothing is known, and everything goes on.
		s.restart()
		until(s.tb, func() bool { return w.Decide(ctx, session).Held() })
		fmt.Println("after a restart:", w.Decide(ctx, session).Case)

		// The owner comes back with the same session, and ends it later.
		owner := s.module(core)
		owner.Sync(1, head("session-1", 1)).OK()
		fmt.Println("synced again:", w.Hold(ctx, session).Case)
		owner.Sync(2).OK()
		fmt.Println("work:", <-killed)
		fmt.Println("stored approval:", w.Decide(ctx, session).Code)
	})
	// Output:
	// call: live
	// after a restart: not_synced
	// synced again: live
	// work: killed (scope revoked): ended
	// stored approval: scope_ended
}

// play runs a story on a stage, on a goroutine that a failure ends.
func play(story func(*stage)) {
	a := &audience{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.leave()
		story(newStage(a))
	}()
	<-done
}
