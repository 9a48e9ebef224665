package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStoryGoesAsTold(t *testing.T) {
	var steps []Step
	require.NoError(t, Run(t.Context(), func(s Step) { steps = append(steps, s) }))
	var codes []string
	for _, s := range steps {
		if s.Code != "" {
			codes = append(codes, s.Code)
		}
	}
	require.Equal(t, []string{"scope_not_carrier", "scope_ended", "scope_not_live"}, codes)
}
