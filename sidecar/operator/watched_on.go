//go:build watched

package operator

import "net/http"

// watch adds to the API what only a build for tests has (-tags watched): the
// table checked against itself, as it is at this moment.
func (s *Server) watch(endpoints map[string]endpoint) {
	endpoints["/v1/watched/invariants"] = endpoint{method: http.MethodGet, answer: func(*http.Request) (any, error) {
		answer := struct {
			Watched bool     `json:"watched"` // there is a table
			Broken  []string `json:"broken"`
		}{Broken: []string{}}
		if w := s.p.Proxy.World(); w != nil {
			answer.Watched = true
			answer.Broken = append(answer.Broken, w.Table.Invariants()...)
		}
		return answer, nil
	}}
}
