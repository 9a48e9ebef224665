package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"scopeward/sidecar/operator/api"
)

// endpoint is one path of the API.
type endpoint struct {
	method string
	params []string // the query's
	answer func(r *http.Request) (any, error)
	serve  http.HandlerFunc // in place of answer, for what is no JSON document
}

// endpoints are all of the API. A test keeps them equal to its description.
func (s *Server) endpoints() map[string]endpoint {
	return map[string]endpoint{
		api.PathStatus:      {method: http.MethodGet, answer: s.status},
		api.PathHealth:      {method: http.MethodGet, serve: s.health},
		api.PathScopes:      {method: http.MethodGet, params: []string{"owner", "ref"}, answer: s.scopes},
		api.PathRoutes:      {method: http.MethodGet, params: []string{"owner", "ref", "target"}, answer: s.routes},
		api.PathLaunches:    {method: http.MethodGet, answer: s.launches},
		api.PathRefusals:    {method: http.MethodGet, params: []string{"limit", "owner", "code"}, answer: s.refusals},
		api.PathExplain:     {method: http.MethodGet, params: []string{"owner", "ref", "epoch", "as", "to", "provides"}, answer: s.explain},
		api.PathDrain:       {method: http.MethodPost, answer: s.drain},
		api.PathEvents:      {method: http.MethodGet, params: []string{"kind"}, serve: s.events},
		api.PathLedger:      {method: http.MethodGet, serve: s.ledger},
		api.PathDescription: {method: http.MethodGet, serve: describeAPI},
		api.PathMetrics:     {method: http.MethodGet, serve: s.p.Metrics.Handler().ServeHTTP},
	}
}

func describeAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(api.Description)
}

// handler dispatches a request. What is not as the description says is refused
// by name.
func (s *Server) handler() http.Handler {
	endpoints := s.endpoints()
	s.watch(endpoints)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, ok := endpoints[r.URL.Path]
		switch {
		case !ok:
			refuse(w, http.StatusNotFound, api.CodeNotFound, "there is no such path: read "+api.PathDescription)
			return
		case r.Method != e.method:
			w.Header().Set("Allow", e.method)
			refuse(w, http.StatusMethodNotAllowed, api.CodeMethodNotAllowed, "this path takes "+e.method+" only")
			return
		}
		if err := known(r.URL, e.params); err != nil {
			refuse(w, http.StatusBadRequest, api.CodeBadRequest, err.Error())
			return
		}
		if e.serve != nil {
			e.serve(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), writeTimeout)
		defer cancel()
		v, err := e.answer(r.WithContext(ctx))
		if err != nil {
			refuseError(w, err)
			return
		}
		reply(w, http.StatusOK, v)
	})
}

// known refuses parameters that the path does not take, and those given twice.
func known(u *url.URL, params []string) error {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the query can't be read")
	}
	for name, values := range q {
		if !slices.Contains(params, name) {
			return fmt.Errorf("%s is no parameter of this path: it takes %s", Quote(name), list(params))
		}
		if len(values) > 1 {
			return fmt.Errorf("%s is given more than once", name)
		}
	}
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// refuseError answers with what an endpoint refused.
func refuseError(w http.ResponseWriter, err error) {
	var f *api.Failure
	if !errors.As(err, &f) {
		f = &api.Failure{Code: api.CodeUnavailable, Message: err.Error()}
	}
	status := http.StatusServiceUnavailable
	if f.Code == api.CodeBadRequest {
		status = http.StatusBadRequest
	}
	refuse(w, status, f.Code, f.Message)
}

func badRequest(format string, a ...any) error {
	return &api.Failure{Code: api.CodeBadRequest, Message: fmt.Sprintf(format, a...)}
}

// errNoRouter is the answer of what needs a router while there is none.
func errNoRouter() error {
	return &api.Failure{Code: api.CodeNoRouter, Message: "there is no router: see the status"}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, api.Failure{Code: code, Message: message})
}

func reply(w http.ResponseWriter, status int, v any) {
	// A process may choose a path that is no UTF-8: it must not hide what is around it.
	body, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"code":"unavailable","message":"the answer can't be rendered"}`)
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
