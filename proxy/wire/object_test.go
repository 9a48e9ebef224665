package wire

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

func mustObject(t *testing.T, body string) Object {
	t.Helper()
	o, err := ParseObject([]byte(body))
	require.NoError(t, err, body)
	return o
}

func TestObjectRendersByteForByte(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"a":1}`, `{"a": [1, 2 , {"b":"}"}],"b":"\"\\","c":null,"d":-1.5e+9}`,
		`{"a":1,"a":2,"b":{},"":[]}`, `{"\u0061\ud83d\ude00":"\u2028"}`,
	} {
		o := mustObject(t, body)
		compacted := strings.NewReplacer(`"a": `, `"a":`).Replace(body)
		require.Equal(t, compacted, string(o.Append(nil)))
	}
	for _, name := range []string{"route_open_request.json", "scope_apply_request.json"} {
		data, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		o := mustObject(t, string(data))
		require.JSONEq(t, string(data), string(o.Append(nil)))
	}
}

func TestObjectGetCountSetDelete(t *testing.T) {
	o := mustObject(t, `{"a":1,"\u0061":2,"b":3,"a":4}`)
	v, ok := o.Get("a")
	require.True(t, ok)
	require.Equal(t, "4", string(v), "the last one, as the router takes it")
	require.Equal(t, 3, o.Count("a"))
	_, ok = o.Get("zzz")
	require.False(t, ok)

	o.Set("a", jsontext.Value("5"))
	require.Equal(t, `{"a":5,"b":3}`, string(o.Append(nil)), "repeated ones become one, in its place")
	o.Set("new\"", jsontext.Value(`{"x":1}`))
	require.Equal(t, `{"a":5,"b":3,"new\"":{"x":1}}`, string(o.Append(nil)))
	o.Delete("a")
	require.Equal(t, `{"b":3,"new\"":{"x":1}}`, string(o.Append(nil)))

	o = mustObject(t, `{"\u0061":1}`)
	o.Delete("a")
	require.Equal(t, `{}`, string(o.Append(nil)), "an escape hides no member")
}

func TestParseObjectRefusesWhatIsNone(t *testing.T) {
	for _, body := range []string{
		``, ` `, `[]`, `["a"]`, `null`, `1`, `"{}"`, `{`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{,}`, `{"a" 1}`,
		`{"a":1}x`, `{"a":1}{}`, `{a:1}`, `{"a":"}`, `{"a":[}`, `{"a":1 2}`, `{1:2}`, "\ufeff{}",
	} {
		_, err := ParseObject([]byte(body))
		require.ErrorIs(t, err, ErrNotObject, body)
	}
}

func TestParseObjectTakesAnyDepth(t *testing.T) {
	const n = 1 << 20
	body := `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"b":1}`
	o := mustObject(t, body)
	require.Equal(t, 1, o.Count("b"))
	require.Equal(t, body, string(o.Append(nil)))
}

func TestUnmarshalIsStrict(t *testing.T) {
	type ours struct {
		A int `json:"a"`
	}
	var v ours
	require.NoError(t, Unmarshal([]byte(`{"a":1}`), &v))
	for _, bad := range []string{`{"a":1,"b":2}`, `{"a":1,"a":2}`, `{"A":1}`, `{"a":1} x`, "{\"a\":1,\"\xff\":1}", `{"a":"1"}`} {
		require.Error(t, Unmarshal([]byte(bad), &v), bad)
	}
}

func TestIsNull(t *testing.T) {
	require.True(t, IsNull(jsontext.Value(" null\n")))
	require.False(t, IsNull(jsontext.Value("nul")))
	require.False(t, IsNull(nil))
}

func TestErrorFrameAndRouteClosed(t *testing.T) {
	b := AppendError(nil, 7, 2, 9, ErrorBody{Code: "c", Message: "m"})
	f, err := ReadFrame(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, Header{Len: f.Len, Type: Error, Channel: 7, Epoch: 2, Corr: 9}, f.Header)
	require.Equal(t, `{"code":"c","message":"m"}`, string(f.Body))
	require.Equal(t, `{"code":"c","message":"m","detail":{"a":1}}`,
		string(MustMarshal(ErrorBody{Code: "c", Message: "m", Detail: jsontext.Value(`{"a":1}`)})))
	require.Equal(t, `{"op":"route.closed","module_id":"t","channels":[1,2],"reason":"scope_ended","drained":false,`+
		`"abandoned":0,"excluded_subscriptions":0,"terminal":false}`,
		string(MustMarshal(RouteClosed{Op: OpRouteClosed, ModuleID: "t", Channels: []uint16{1, 2}, Reason: "scope_ended"})))
}

func TestErrorsNameNoValue(t *testing.T) {
	require.Equal(t, "the whole body", (&FieldError{What: "the whole body"}).Error())
	require.Equal(t, `"scope.ref" is not a string`, (&FieldError{Field: "scope.ref", What: "is not a string"}).Error())
	require.Equal(t, "peer speaks envelope version 3, not 2", (&VersionError{Got: 3}).Error())
}

// strictMembers are the members of body as a strict decoder reads them, or false
// when it refuses body as a JSON object. Repeated names are its reader's affair.
func strictMembers(body []byte) ([]Member, bool) {
	opts := []jsontext.Options{jsontext.AllowDuplicateNames(true)}
	d := jsontext.NewDecoder(bytes.NewReader(body), opts...)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	var members []Member
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		name := t.String()
		raw, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		members = append(members, Member{Name: name, Raw: raw.Clone()})
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '}' {
		return nil, false
	}
	_, err := d.ReadToken()
	return members, err == io.EOF
}

// FuzzParseObject: whatever a strict decoder takes for an object we take, with
// the same members. Otherwise a caller could name a member that only one of us
// sees.
func FuzzParseObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"a":2}`, `{"\u0061\/\"":[{}]}`, `{"a":"\\","b":"}"}`, " {\t\"a\"\n:\r1 } ", `{"a":-0.1e9,"b":true}`,
		`{"a":tru}`, `{"a":1]}`, `{"a":[1:2]}`, "{\"\xff\":1}", `{"\ud800":1}`, `{"op":"route.open","scope":{"owner":{}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := ParseObject(bytes.Clone(body))
		want, strict := strictMembers(body)
		if strict {
			require.NoError(t, err, "%q", body)
			require.Len(t, o.Members, len(want), "%q", body)
			for i, m := range o.Members {
				require.Equal(t, want[i].Name, m.Name, "%q", body)
				require.Equal(t, string(want[i].Raw), string(m.Raw), "%q", body)
			}
			again, ok := strictMembers(o.Append(nil))
			require.True(t, ok, "%q", body)
			require.Equal(t, len(want), len(again))
		}
		if err != nil {
			return
		}
		// Our own edit is in the body whoever reads it, as long as it can be read.
		o.Set("scope", jsontext.Value(`{"ref":"r"}`))
		o.Delete("call_mode")
		if members, ok := strictMembers(o.Append(nil)); ok {
			scopes, modes := 0, 0
			for _, m := range members {
				if m.Name == "scope" {
					scopes++
					require.Equal(t, `{"ref":"r"}`, string(m.Raw))
				}
				if m.Name == "call_mode" {
					modes++
				}
			}
			require.Equal(t, 1, scopes, "%q", body)
			require.Zero(t, modes, "%q", body)
		}
	})
}

// FuzzUnmarshalAgrees: a body that decodes strictly has, through ParseObject, the
// same member that the strict decoder saw.
func FuzzUnmarshalAgrees(f *testing.F) {
	f.Add([]byte(`{"op":"x"}`))
	f.Add([]byte(`{"\u006fp":"x","y":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var v struct {
			Op *string `json:"op"`
		}
		if json.Unmarshal(body, &v) != nil || v.Op == nil {
			return
		}
		o, err := ParseObject(body)
		if err != nil {
			require.Equal(t, "null", string(bytes.TrimSpace(body)))
			return
		}
		raw, ok := o.Get("op")
		require.True(t, ok)
		var op string
		require.NoError(t, json.Unmarshal(raw, &op))
		require.Equal(t, *v.Op, op)
	})
}
