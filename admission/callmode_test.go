package admission

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"scopeward/table"
)

func attributes(run, flow, delegates bool) *table.Attributes {
	a := &table.Attributes{AgentID: ptr("a"), Delegates: delegates}
	if run {
		a.RunID = ptr("r")
	}
	if flow {
		a.FlowID = ptr("f")
	}
	return a
}

func TestS4a_TheModeIsTheScopesIdentity(t *testing.T) {
	require.Equal(t, Classic, DeriveCallMode(nil))
	for _, delegates := range []bool{false, true} {
		require.Equal(t, Classic, DeriveCallMode(attributes(false, false, delegates)))
		require.Equal(t, Flow, DeriveCallMode(attributes(false, true, delegates)))
		require.Equal(t, Codemode, DeriveCallMode(attributes(true, false, delegates)))
		require.Equal(t, Codemode, DeriveCallMode(attributes(true, true, delegates)))
	}
}

func TestS4a_OnlyADeclarerReceivesAModeAndOnEveryBind(t *testing.T) {
	legacy := NewCapabilities(FlowScopes, AgentRunScopes, "call-modes/v2")
	for _, attrs := range []*table.Attributes{nil, attributes(false, false, true), attributes(false, true, false), attributes(true, false, false)} {
		require.Empty(t, ModeFor(legacy, attrs))
		require.Empty(t, ModeFor(Capabilities{}, attrs))
		require.Equal(t, DeriveCallMode(attrs), ModeFor(NewCapabilities(CallModes, FlowScopes), attrs))
	}
}

func TestS4a_AnAbsentModeIsDerivedAndNotClassicByDefault(t *testing.T) {
	require.Equal(t, Codemode, ModeOfBind(nil, attributes(true, false, false)))
	require.Equal(t, Flow, ModeOfBind(nil, attributes(false, true, false)))
	require.Equal(t, Classic, ModeOfBind(nil, attributes(false, false, true)))
	require.Equal(t, Classic, ModeOfBind(nil, nil))
	require.Equal(t, Flow, ModeOfBind(ptr(Flow), nil), "a stamped mode is the mode")
	require.Equal(t, CallMode(""), ModeOfBind(ptr(CallMode("")), attributes(true, false, false)))
}

func TestS4a_AnUnknownModeKeepsItsStringAndIsNotKnown(t *testing.T) {
	for _, wire := range []string{`"future-mode"`, `"Classic"`, `""`, `"mode\nwith\"escapes"`} {
		var m CallMode
		require.NoError(t, json.Unmarshal([]byte(wire), &m))
		require.False(t, m.Known(), wire)
		back, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, wire, string(back))
	}
	for _, m := range []CallMode{Classic, Codemode, Flow} {
		require.True(t, m.Known())
	}
}

func TestS4a_AModeIsAString(t *testing.T) {
	for _, wire := range []string{`null`, `1`, `true`, `{}`, `[]`, `["flow"]`} {
		var m CallMode
		require.ErrorIs(t, json.Unmarshal([]byte(wire), &m), ErrCallMode, wire)
	}
	bind := struct {
		CallMode *CallMode `json:"call_mode"`
	}{}
	require.NoError(t, json.Unmarshal([]byte(`{"call_mode":null}`), &bind))
	require.Nil(t, bind.CallMode, "an optional field that is null is absent")
}
