package admission

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"scopeward/table"
)

// The route.open rows of section 5a, and what they say of a retry.
func TestS5a_TheCodesOfRouteOpen(t *testing.T) {
	want := map[Code]bool{
		"scope_not_synced": true, "scope_changed": true,
		"scope_not_live": false, "scope_ended": false, "scope_epoch_required": false,
		"scope_bind_proof_required": false, "scope_bind_proof_mismatch": false, "scope_not_carrier": false,
		"target_flow_unsupported": false, "target_agent_run_unsupported": false, "scope_unsupported": false,
	}
	rows := Codes()
	require.Len(t, rows, len(want))
	for _, row := range rows {
		retryable, listed := want[row.Code]
		require.True(t, listed, row.Code)
		delete(want, row.Code)
		require.Equal(t, retryable, row.Code.Retryable(), row.Code)
		require.NotEmpty(t, row.Where)
		require.NotEmpty(t, row.Means)
	}
	for _, other := range []Code{"", "scope_expired", "target_unavailable", "Scope_changed"} {
		require.False(t, other.Retryable(), "every other code is terminal")
	}
	require.Equal(t, string(table.CodeScopeEnded), string(CodeEnded))
	require.Equal(t, string(table.CodeScopeChanged), string(CodeChanged))
}

func TestS5a_EveryCodeConstantIsARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, 0)
	require.NoError(t, err)
	var constants []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			constants = append(constants, code)
		}
		return true
	})
	var rows []string
	for _, row := range Codes() {
		rows = append(rows, string(row.Code))
	}
	require.Equal(t, constants, rows)
}
