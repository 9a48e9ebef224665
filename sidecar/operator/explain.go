package operator

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"scopeward/admission"
	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// explain answers what admission would say to an open. It runs the rules that
// decide about binds, on the same table, and reserves nothing.
func (s *Server) explain(r *http.Request) (any, error) {
	w := s.p.Proxy.World()
	if w == nil {
		return nil, errNoRouter()
	}
	ask, err := s.askOf(r)
	if err != nil {
		return nil, err
	}
	provides, from := s.provides(r, ask.Module)
	ask.Capabilities, ask.Now = provides, time.Now().UnixMilli()
	d := admission.Explain(w.Table, ask)
	e := api.Explanation{Provides: capabilityNames(provides.Sorted()), ProvidesFrom: from}
	if d.Verdict == admission.NeedRoster {
		configured, err := s.configured(r.Context(), ask.Selector.Owner.ModuleID)
		if err != nil {
			return nil, err
		}
		ask.Roster, e.Roster = admission.NotConfigured, "not_configured"
		if configured {
			ask.Roster, e.Roster = admission.Configured, "configured"
		}
		d = admission.Explain(w.Table, ask)
	}
	e.Verdict, e.Rule, e.Code, e.Message = "refused", d.Rule, string(d.Code), d.Message
	e.Retryable = d.Code.Retryable()
	if d.Verdict == admission.Admitted {
		e.Verdict, e.CallMode, e.Stamp = "admitted", string(d.Mode), jsontext.Value(d.Stamp)
	}
	if d.Digest != (table.Digest{}) {
		e.Digest = d.Digest.String()
	}
	return e, nil
}

// askOf reads the open that is asked about.
func (s *Server) askOf(r *http.Request) (admission.Ask, error) {
	q := r.URL.Query()
	var a admission.Ask
	for _, name := range []string{"owner", "ref", "as", "to"} {
		if !q.Has(name) || name != "ref" && q.Get(name) == "" {
			return a, badRequest("%s is not given", name)
		}
	}
	var err error
	if a.Selector.Owner, err = parsePrincipal(q.Get("owner")); err != nil {
		return a, badRequest("owner: %v", err)
	}
	if a.Principal, err = parsePrincipal(q.Get("as")); err != nil {
		return a, badRequest("as: %v", err)
	}
	a.Selector.Ref, a.Module = q.Get("ref"), q.Get("to")
	if q.Has("epoch") {
		epoch, err := strconv.ParseUint(q.Get("epoch"), 10, 64)
		if err != nil {
			return a, badRequest("epoch is a number from 0 to 18446744073709551615")
		}
		a.Selector.Epoch = &epoch
	}
	return a, nil
}

// provides are the target's capabilities: the caller's word, or else what the
// target's registration declares now. Of two registrations the current launch's
// counts.
func (s *Server) provides(r *http.Request, module string) (admission.Capabilities, string) {
	if q := r.URL.Query(); q.Has("provides") {
		var names []admission.Capability
		for name := range strings.SplitSeq(q.Get("provides"), ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, admission.Capability(name))
			}
		}
		return admission.NewCapabilities(names...), "caller"
	}
	conn := s.serving(module)
	for _, session := range s.p.Proxy.Sessions(r.Context()) {
		if session.Conn == conn {
			return admission.NewCapabilities(session.Provides...), "registration"
		}
	}
	return admission.Capabilities{}, "nobody"
}

// serving is the connection of a module's registration, 0 for none.
func (s *Server) serving(module string) proxy.ConnID {
	info := s.p.Launches.Info()
	current := uint64(0)
	for _, l := range info.Launches {
		if l.ModuleID == module && l.Current {
			current = l.Generation
		}
	}
	var conn proxy.ConnID
	for _, reg := range info.Registrations {
		if reg.ModuleID == module && (conn == 0 || reg.Generation == current) {
			conn = reg.Conn
		}
	}
	return conn
}

// configured asks the router's roster.
func (s *Server) configured(ctx context.Context, module string) (bool, error) {
	answer := make(chan bool, 1)
	s.p.Launches.Ask(proxy.Question{Kind: proxy.AskRoster, ModuleID: module}, func(a proxy.Answer) { answer <- a.Configured })
	select {
	case configured := <-answer:
		return configured, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func capabilityNames(of []admission.Capability) []string {
	names := make([]string, len(of))
	for i, c := range of {
		names[i] = string(c)
	}
	return names
}
