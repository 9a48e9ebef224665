package operator

import (
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"scopeward/sidecar/operator/api"
	"scopeward/table"
)

// maxRequest is the longest body of a request in bytes.
const maxRequest = 64 << 10

// ruleByHand is the rule of what an operator did.
const ruleByHand = "by hand"

// drain closes live routes by hand: a scope's, an opener's, or a scope's of one
// opener. Authority is not revoked: openers read restart, not terminal, and may
// come back. Who did it and why is in the log.
func (s *Server) drain(r *http.Request) (any, error) {
	var req api.DrainRequest
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil || len(body) > maxRequest {
		return nil, badRequest("the body can't be read, or is over %d bytes", maxRequest)
	}
	if err := json.Unmarshal(body, &req, json.RejectUnknownMembers(true)); err != nil {
		return nil, badRequest("the body is not as the description has it: %v", err)
	}
	match, e, err := drainOf(req)
	if err != nil {
		return nil, err
	}
	if s.p.Proxy.World() == nil {
		return nil, errNoRouter()
	}
	n := s.p.Proxy.Evict(r.Context(), req.Conn, match)
	e.Routes, e.Who = int64(n), peerOf(r.Context())
	s.p.Journal.evicted(e)
	return api.Drained{Routes: int64(n)}, nil
}

// drainOf reads what is to be closed, and begins its record.
func drainOf(req api.DrainRequest) (func(table.ScopeID) bool, *api.Event, error) {
	scoped := req.Owner != "" || req.Ref != "" || req.ScopeEpoch != nil
	switch {
	case req.Why == "":
		return nil, nil, badRequest("why is not given: say in the log why routes are closed")
	case !scoped && req.Conn == 0:
		return nil, nil, badRequest("neither a scope nor an opener's connection is given")
	case scoped && (req.Owner == "" || req.Ref == ""):
		return nil, nil, badRequest("a scope is given by its owner and its ref")
	}
	e := &api.Event{Conn: req.Conn, Rule: ruleByHand, Why: req.Why}
	if !scoped {
		return func(table.ScopeID) bool { return true }, e, nil
	}
	owner, err := parseOwner(req.Owner)
	if err != nil {
		return nil, nil, badRequest("owner: %v", err)
	}
	e.Owner, e.Ref, e.ScopeEpoch = principalText(owner), req.Ref, req.ScopeEpoch
	return func(id table.ScopeID) bool {
		return id.Owner == owner && id.Ref == req.Ref && (req.ScopeEpoch == nil || *req.ScopeEpoch == id.Epoch)
	}, e, nil
}
