package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every key that holds a value is compared, nested ones included.
func TestDifferencesNameEveryKeyThatDiffers(t *testing.T) {
	require.Empty(t, Differences(Default(), Default()))
	var leaves []string
	keys := Keys()
	for i, key := range keys {
		if i+1 == len(keys) || !strings.HasPrefix(keys[i+1], key+".") {
			leaves = append(leaves, key)
		}
	}
	all := Config{
		Version: 2, Router: Router{"a"}, Listen: "b", ConnectionFile: "c", ScopeAuthorityOwners: []string{"d"},
		Scopes: "e", Heal: true, Attribution: Attribution{"f", "g", "h"}, Operator: Operator{"i"},
		Metrics: Metrics{"j"}, Ledger: Ledger{"k", true, 1}, Log: Log{"l", "m"},
	}
	require.Equal(t, leaves, Differences(Config{}, all))

	one := Default()
	one.Log.Level = LevelDebug
	require.Equal(t, []string{"log.level"}, Differences(Default(), one))
}
