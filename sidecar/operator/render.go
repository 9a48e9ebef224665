package operator

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/sidecar/operator/api"
)

// renderEvent appends e as JSON, as json.Marshal renders it and several times
// faster: there are two for each open, and one rendering for each reader.
func renderEvent(b []byte, e *api.Event) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = strconv.AppendInt(append(b, `,"at_ms":`...), e.AtMS, 10)
	b = appendText(b, `,"kind":`, e.Kind, true)
	b = appendNumber(b, `,"conn":`, e.Conn)
	b = appendNumber(b, `,"opener":`, e.Opener)
	b = appendText(b, `,"principal":`, e.Principal, false)
	b = appendNumber(b, `,"pid":`, e.PID)
	b = appendText(b, `,"exe":`, e.Exe, false)
	b = appendText(b, `,"owner":`, e.Owner, false)
	b = appendText(b, `,"ref":`, e.Ref, false)
	if e.ScopeEpoch != nil {
		b = strconv.AppendUint(append(b, `,"scope_epoch":`...), *e.ScopeEpoch, 10)
	}
	b = appendText(b, `,"target":`, e.Target, false)
	b = appendText(b, `,"rule":`, e.Rule, false)
	b = appendText(b, `,"code":`, e.Code, false)
	b = appendText(b, `,"message":`, e.Message, false)
	b = appendNumber(b, `,"routes":`, e.Routes)
	b = appendNumber(b, `,"deadline_ms":`, e.DeadlineMS)
	b = appendNumber(b, `,"elapsed_us":`, e.ElapsedUS)
	b = appendText(b, `,"digest":`, e.Digest, false)
	if e.Call != nil {
		if call, err := json.Marshal(e.Call); err == nil {
			b = append(append(b, `,"call":`...), call...)
		}
	}
	b = appendText(b, `,"who":`, e.Who, false)
	b = appendText(b, `,"why":`, e.Why, false)
	return append(b, '}')
}

func appendText(b []byte, member, s string, always bool) []byte {
	if s == "" && !always {
		return b
	}
	// What is no UTF-8 becomes replacement characters: the answer stays JSON.
	b, _ = jsontext.AppendQuote(append(b, member...), s)
	return b
}

func appendNumber[N int64 | uint64](b []byte, member string, n N) []byte {
	if n == 0 {
		return b
	}
	b = append(b, member...)
	if n < 0 {
		return strconv.AppendInt(b, int64(n), 10)
	}
	return strconv.AppendUint(b, uint64(n), 10)
}
