package config

import (
	"strings"
	"testing"
)

// Whatever the file holds, the answer is a valid configuration or one line.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"attribution":{"mode":"off"},"x\u0000y":1}`))
	f.Add([]byte("{\"a/b~c\": 1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("sw.jsonc", data, noEnv)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		if p := c.Validate(); p != nil {
			t.Fatalf("accepted and not valid: %s %s", p.Key, p.What)
		}
	})
}
