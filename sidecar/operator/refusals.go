package operator

import (
	"net/http"
	"strconv"

	"scopeward/sidecar/operator/api"
)

// refusalsAsked is how many refusals are answered when no limit is given.
const refusalsAsked = 100

// refusals lists the last refusals, the newest first.
func (s *Server) refusals(r *http.Request) (any, error) {
	match, err := scopeFilter(r)
	if err != nil {
		return nil, err
	}
	owner := ""
	if match.owner.Kind != 0 {
		owner = principalText(match.owner)
	}
	q := r.URL.Query()
	limit := refusalsAsked
	if q.Has("limit") {
		if limit, err = strconv.Atoi(q.Get("limit")); err != nil || limit < 1 || limit > refusalsKept {
			return nil, badRequest("limit is a number from 1 to %d", refusalsKept)
		}
	}
	code := q.Get("code")
	found, total := s.p.Journal.refusals.last(limit, func(e *api.Event) bool {
		return (owner == "" || e.Owner == owner) && (code == "" || e.Code == code)
	})
	return api.Refusals{Total: total, Refusals: found}, nil
}
