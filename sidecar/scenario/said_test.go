package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"scopeward/proxy/routertest"
)

// said is a reply on one line:
//
//	scope_sync_stale                                a refusal's code
//	a@1 created, b@2 scope_expired                  a sync's results
//	a@2 replaced | ended a@1 | b@1 not_live         the scopes a call ended, its ends
//	live owner/a@1 head authorized                  a description
type said struct {
	t       *testing.T
	text    string
	message string // of a refusal; of a call, those of its refused records
}

func (r said) is(want string) said {
	r.t.Helper()
	require.Equal(r.t, want, r.text)
	return r
}

// naming requires that a refusal's text names what it is about.
func (r said) naming(names ...string) {
	r.t.Helper()
	for _, n := range names {
		require.Contains(r.t, r.message, n)
	}
}

type named struct {
	Ref     string `json:"ref"`
	Epoch   uint64 `json:"scope_epoch"`
	Outcome string `json:"outcome"`
	Code    string `json:"code"`
	Message string `json:"message"`
	State   string `json:"parent_state"`
}

func (n named) String() string { return fmt.Sprintf("%s@%d", n.Ref, n.Epoch) }

func (s *stage) said(r routertest.Reply) said {
	s.t.Helper()
	if code := r.Code(); code != "" {
		return said{s.t, code, r.Text("message")}
	}
	var body struct {
		Op         string  `json:"op"`
		Results    []named `json:"results"`
		Ended      []named `json:"ended"`
		Ends       []named `json:"end_results"`
		Status     string  `json:"status"`
		Epoch      uint64  `json:"scope_epoch"`
		Scope      *stamp  `json:"scope"`
		Synced     bool    `json:"owner_synced"`
		Configured bool    `json:"owner_configured"`
	}
	r.Into(&body)
	if body.Status != "" {
		return said{t: s.t, text: description(body.Status, body.Epoch, body.Scope, body.Synced, body.Configured)}
	}
	var parts, messages []string
	add := func(prefix string, list []named, show func(named) string) {
		if len(list) > 0 {
			var texts []string
			for _, n := range list {
				texts = append(texts, show(n))
			}
			parts = append(parts, prefix+strings.Join(texts, ", "))
		}
	}
	add("", body.Results, func(n named) string {
		if n.Outcome == "refused" {
			messages = append(messages, n.Message)
			return n.String() + " " + n.Code
		}
		return strings.TrimSpace(n.String() + " " + n.Outcome + " " + n.State)
	})
	slices.SortFunc(body.Ended, func(a, b named) int { return strings.Compare(a.Ref, b.Ref) })
	add("ended ", body.Ended, named.String)
	add("", body.Ends, func(n named) string { return n.String() + " " + n.Outcome })
	return said{s.t, strings.Join(parts, " | "), strings.Join(messages, " ")}
}

func description(status string, epoch uint64, sc *stamp, synced, configured bool) string {
	switch {
	case sc != nil:
		status += " " + sc.String()
	case status == "ended":
		status += fmt.Sprintf(" @%d", epoch)
	}
	if !synced {
		status += " unsynced"
	}
	if !configured {
		status += " unconfigured"
	}
	return status
}

// stamp is a scope as a provider or a reader sees it.
type stamp struct {
	Owner      owner          `json:"owner"`
	Ref        string         `json:"ref"`
	Epoch      uint64         `json:"scope_epoch"`
	Kind       string         `json:"kind"`
	Attributes jsontext.Value `json:"attributes"`
	Parent     *stamp         `json:"parent"`
	State      string         `json:"parent_state"`
	Expires    uint64         `json:"expires_at_ms"`
	Authorized *bool          `json:"owner_authorized"`
}

type owner struct {
	Kind     string `json:"kind"`
	ModuleID string `json:"module_id"`
}

// String is owner/ref@epoch kind, then what else is there, in this order: the
// attributes, the parent and its state, "expires", "authorized".
func (s *stamp) String() string {
	if s == nil {
		return "unscoped"
	}
	text := fmt.Sprintf("%s/%s@%d", s.Owner.ModuleID, s.Ref, s.Epoch)
	if s.Kind == "" {
		return text
	}
	text += " " + s.Kind
	if s.Attributes != nil {
		text += " " + string(s.Attributes)
	}
	if s.Parent != nil {
		text += " under " + s.Parent.String() + " " + s.State
	}
	if s.Expires > 0 {
		text += " expires"
	}
	if s.Authorized != nil && *s.Authorized {
		text += " authorized"
	}
	return text
}

// stampOf is a bind's stamp and call mode.
func stampOf(t *testing.T, b *routertest.Bind) string {
	t.Helper()
	var sc *stamp
	if b.Scope != nil {
		require.NoError(t, json.Unmarshal(b.Scope, &sc, json.RejectUnknownMembers(true)))
	}
	text := sc.String()
	if b.CallMode != "" {
		text += " " + b.CallMode
	}
	return text
}
