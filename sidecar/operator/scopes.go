package operator

import (
	"net/http"

	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// scopes lists the live scopes, by owner and ref.
func (s *Server) scopes(r *http.Request) (any, error) {
	match, err := scopeFilter(r)
	if err != nil {
		return nil, err
	}
	answer := api.Scopes{Scopes: []api.Scope{}}
	w := s.p.Proxy.World()
	if w == nil {
		return answer, nil
	}
	answer.Incarnation = w.Incarnation
	for _, o := range w.Table.Owners() {
		if !match.owns(table.ReservedPrincipal(o.ID)) {
			continue
		}
		for _, sc := range w.Table.Scopes(o.ID) {
			if match.names(sc.ID.Ref) {
				answer.Scopes = append(answer.Scopes, scopeOf(sc))
			}
		}
	}
	return answer, nil
}

func scopeOf(s table.ScopeStats) api.Scope {
	rec := s.Record
	v := api.Scope{
		Owner: principalText(s.ID.Owner), Ref: s.ID.Ref, ScopeEpoch: s.ID.Epoch, Version: s.Version,
		Kind: rec.Kind.String(), ParentState: s.ParentState.String(),
		AgentID: text(rec.Attributes.AgentID), FlowID: text(rec.Attributes.FlowID), RunID: text(rec.Attributes.RunID),
		Delegates: rec.Attributes.Delegates, OwnerAuthorized: s.OwnerAuthorized,
		ProofRequired: rec.BindProof != nil,
		Carriers:      []api.Carrier{}, ChildOwners: []string{},
		Digest: rec.Digest().String(),
		Routes: int64(s.Routes), Pending: int64(s.Pending), Presence: int64(s.Holders),
	}
	if rec.ExpiresAtMS != nil {
		v.ExpiresAtMS = *rec.ExpiresAtMS
	}
	if p := rec.Parent; p != nil {
		v.Parent = &api.ScopeID{Owner: principalText(p.Owner), Ref: p.Ref, ScopeEpoch: p.Epoch}
	}
	for _, c := range rec.Carriers.Sorted() {
		carrier := api.Carrier{Principal: principalText(c.Principal)}
		for _, id := range c.Targets.Sorted() {
			carrier.Targets = append(carrier.Targets, string(id))
		}
		v.Carriers = append(v.Carriers, carrier)
	}
	for _, p := range rec.ChildOwners.Sorted() {
		v.ChildOwners = append(v.ChildOwners, principalText(p))
	}
	return v
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// chosen is what a query chooses scopes by. An unset part chooses all.
type chosen struct {
	owner table.Principal
	ref   *string
}

func scopeFilter(r *http.Request) (chosen, error) {
	var c chosen
	q := r.URL.Query()
	if q.Has("owner") {
		p, err := parseOwner(q.Get("owner"))
		if err != nil {
			return c, badRequest("owner: %v", err)
		}
		c.owner = p
	}
	if q.Has("ref") {
		ref := q.Get("ref")
		c.ref = &ref
	}
	return c, nil
}

func (c chosen) owns(p table.Principal) bool { return c.owner.Kind == 0 || c.owner == p }

func (c chosen) names(ref string) bool { return c.ref == nil || *c.ref == ref }
