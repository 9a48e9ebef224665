package launch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"scopeward/proxy"
	"scopeward/sidecar/config"
	"scopeward/sidecar/router"
)

func lagged() error { return &router.RefusedError{Code: router.CodeLagged} }
func closed() error { return router.ErrClosed }

func TestS11_ConfiguredMeansPresentInTheSupervisorsModuleMap(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.set(func() { r.router.roster = []string{"a", "disabled"} })
		require.True(r.t, r.configured("a"))
		require.True(r.t, r.configured("disabled"))
		r.Registered(1, "merely registered", "")
		require.False(r.t, r.configured("merely registered"))
	})
}

func TestRosterIsAskedAtMostOnceASecondAndOnceForMany(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.set(func() { r.router.takes = 10 * time.Millisecond })
		answers := make(chan proxy.Answer, 50)
		for range cap(answers) {
			r.Ask(proxy.Question{Kind: proxy.AskRoster, ModuleID: "a"}, func(a proxy.Answer) { answers <- a })
		}
		for range cap(answers) {
			<-answers
		}
		require.Equal(r.t, 1, r.router.lists)
		<-time.After(rosterFor - time.Millisecond)
		require.False(r.t, r.configured("a"))
		require.Equal(r.t, 1, r.router.lists)
		<-time.After(time.Millisecond)
		r.router.set(func() { r.router.roster = []string{"a"} })
		require.True(r.t, r.configured("a"))
		require.Equal(r.t, 2, r.router.lists)
	})
}

func TestARosterThatCannotKnowALaunchedModuleIsNotTrusted(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		require.False(r.t, r.configured("new"))
		r.router.set(func() { r.router.roster = []string{"new"} })
		r.router.spawn("new", 1, 100)
		synctest.Wait()
		require.True(r.t, r.configured("new"), "in the same second")
	})
}

func TestNoAnswerInTwoSecondsCountsAsConfigured(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.set(func() { r.router.silent = true })
		began := time.Now()
		require.True(r.t, r.configured("a"))
		require.Equal(r.t, 2*time.Second, time.Since(began))
		require.True(r.t, r.configured("a"))
		require.Equal(r.t, 1, r.router.lists, "nor is it asked twice at a time")
		r.router.set(func() { r.router.silent = false })
		<-time.After(answerAtAll)
		require.False(r.t, r.configured("a"), "silence is not remembered")
	})
}

func TestALateAnswerServesTheQuestionsAfterIt(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.set(func() { r.router.takes = 5 * time.Second })
		require.True(r.t, r.configured("a"))
		<-time.After(3500 * time.Millisecond)
		began := time.Now()
		require.False(r.t, r.configured("a"))
		require.Zero(r.t, time.Since(began))
	})
}

func TestALateAnswerFromBeforeALaunchIsNotKept(t *testing.T) {
	bubble(t, config.AttributionOff, func(r *rig) {
		r.router.set(func() { r.router.takes = 5 * time.Second })
		require.True(r.t, r.configured("new"))
		r.router.spawn("new", 1, 100)
		<-time.After(3500 * time.Millisecond)
		r.router.set(func() { r.router.roster, r.router.takes = []string{"new"}, 0 })
		require.True(r.t, r.configured("new"))
		require.Equal(r.t, 2, r.router.lists)
	})
}
