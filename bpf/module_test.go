package bpf

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
)

func TestModule_ClosesWithTheApp(t *testing.T) {
	needHooks(t)
	var a *Attributor
	app := fx.New(fx.NopLogger, fx.Supply(Params{}), Module(), fx.Populate(&a))
	require.NoError(t, app.Start(testContext(t)))
	require.NoError(t, a.SelfProbe(testContext(t)))
	require.NoError(t, app.Stop(testContext(t)))
	require.Error(t, a.SelfProbe(testContext(t)))
}

func TestModule_IsNotOpenedUnlessAskedFor(t *testing.T) {
	app := fx.New(fx.NopLogger, fx.Supply(Params{CgroupPath: "/nowhere"}), Module())
	require.NoError(t, app.Err())
}
