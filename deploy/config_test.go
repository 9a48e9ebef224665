package deploy

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"

	"scopeward/sidecar/config"
)

func noEnv(string) string { return "" }

// The three places where a key can be read of say the same: the code, the sample
// and the README's table.
func TestTheSampleIsTheDefaultsWithEveryKey(t *testing.T) {
	got, err := config.Parse(SampleConfig, File(SampleConfig), noEnv)
	require.NoError(t, err)
	want := config.Default()
	require.NotEmpty(t, got.ConnectionFile)
	require.NotEmpty(t, got.Router.ConnectionFile)
	want.ConnectionFile, want.Router, want.Operator = got.ConnectionFile, got.Router, got.Operator
	require.Equal(t, want, got)

	root, err := hujson.Parse(File(SampleConfig))
	require.NoError(t, err)
	require.Equal(t, config.Keys(), keysOf(t, root, ""))
}

// keysOf returns every key of the sample. Each has a comment of its own, but for
// those that only group others.
func keysOf(t *testing.T, v hujson.Value, prefix string) []string {
	t.Helper()
	var keys []string
	for _, m := range v.Value.(*hujson.Object).Members {
		key := prefix + m.Name.Value.(hujson.Literal).String()
		keys = append(keys, key)
		if _, group := m.Value.Value.(*hujson.Object); group {
			keys = append(keys, keysOf(t, m.Value, key+".")...)
			continue
		}
		require.Contains(t, string(m.Name.BeforeExtra), "//", "%s has no comment", key)
	}
	return keys
}

func TestTheREADMEsTableOfKeysIsTheCodes(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Configuration\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var keys []string
	defaults := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(section, -1) {
		keys = append(keys, row[1])
		defaults[row[1]] = row[2]
	}
	var want []string
	for key, value := range leaves(reflect.ValueOf(config.Default()), "") {
		want = append(want, key)
		switch key {
		case "router.connection_file", "connection_file", "operator.socket":
			require.NotEmpty(t, defaults[key])
		default:
			require.Equal(t, "`"+value+"`", defaults[key], key)
		}
	}
	require.Equal(t, want, keys)
}

// leaves yields every key that holds a value, with its default as JSON.
func leaves(v reflect.Value, prefix string) func(func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		walk(v, prefix, yield)
	}
}

func walk(v reflect.Value, prefix string, yield func(string, string) bool) bool {
	for f := range v.Type().Fields() {
		key, x := prefix+f.Tag.Get("json"), v.FieldByIndex(f.Index)
		if x.Kind() == reflect.Struct {
			if !walk(x, key+".", yield) {
				return false
			}
			continue
		}
		text := fmt.Sprintf("%v", x)
		switch x.Kind() {
		case reflect.String:
			text = fmt.Sprintf("%q", x.String())
		case reflect.Slice:
			text = fmt.Sprintf("%q", x.Interface())
		}
		if !yield(key, text) {
			return false
		}
	}
	return true
}
