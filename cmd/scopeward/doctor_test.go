package main

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/bpf"
)

func TestDoctorsExitCodeIsItsWorstFinding(t *testing.T) {
	ok := finding{Check: "a", State: "ok", Found: "x"}
	warn := finding{Check: "b", State: "warn", Found: "x", Remedy: "do"}
	fail := finding{Check: "c", State: "fail", Found: "x", Remedy: "grant CAP_BPF"}
	for _, tc := range []struct {
		found  []finding
		strict bool
		want   int
	}{
		{[]finding{ok}, true, exitOK},
		{[]finding{ok, warn}, false, exitOK},
		{[]finding{ok, warn}, true, exitNo},
		{[]finding{warn, fail, ok}, false, exitNo},
	} {
		require.Equal(t, tc.want, exitCode(prognosis(tc.found, tc.strict)))
	}
	require.ErrorContains(t, prognosis([]finding{warn, fail}, false), "c: grant CAP_BPF")
}

// Every check of the host comes out, with a remedy where there is something to do.
func TestDoctorPrintsEveryCheck(t *testing.T) {
	var out bytes.Buffer
	c := newDoctor()
	c.SetOut(&out)
	c.SetArgs([]string{"--json"})
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	var doc struct {
		Checks []finding `json:"checks"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &doc, json.RejectUnknownMembers(true)))
	require.Equal(t, diagnose(bpf.Probe()), doc.Checks)
	require.Equal(t, exitCode(prognosis(doc.Checks, false)), exitCode(err))

	out.Reset()
	c.SetArgs([]string{"--json=false"})
	c.Execute()
	for _, f := range doc.Checks {
		require.Contains(t, out.String(), f.Check)
	}
}
