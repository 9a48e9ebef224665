package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The paths of the API.
const (
	PathStatus      = "/v1/status"
	PathHealth      = "/v1/health"
	PathScopes      = "/v1/scopes"
	PathRoutes      = "/v1/routes"
	PathLaunches    = "/v1/launches"
	PathRefusals    = "/v1/refusals"
	PathExplain     = "/v1/explain"
	PathDrain       = "/v1/drain"
	PathEvents      = "/v1/events"
	PathLedger      = "/v1/ledger"
	PathDescription = "/v1/openapi.json"
	PathMetrics     = "/metrics"
)

// dialTimeout bounds a connect to the socket. It is local: whoever does not
// accept by then is stuck.
const dialTimeout = 2 * time.Second

// maxAnswer bounds an answer in bytes: 10,000 scopes with every member are well
// below it.
const maxAnswer = 256 << 20

// Client asks the sidecar behind one socket. Its methods return a [Failure] for
// what the sidecar refuses and an [UnavailableError] when none answers.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient makes a client of the sidecar whose operator socket is at path. It
// connects when it is asked.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{socket: path, http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Close closes what is idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status reads the sidecar at a glance.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, PathStatus, nil)
}

// Health probes the sidecar through itself. A sidecar that is not live is an
// answer and not an error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	return get[Health](ctx, c, PathHealth, nil)
}

// Filter chooses among scopes, routes and refusals. An empty member chooses all.
type Filter struct {
	Owner  string // a module id or reserved:ID
	Ref    string
	Target string // routes: the module that serves them
	Code   string // refusals
	Limit  int    // refusals: at most so many, 0 for the API's default
}

// Scopes lists the live scopes.
func (c *Client) Scopes(ctx context.Context, f Filter) (Scopes, error) {
	return get[Scopes](ctx, c, PathScopes, f.query())
}

// Routes lists the scoped routes.
func (c *Client) Routes(ctx context.Context, f Filter) (Routes, error) {
	return get[Routes](ctx, c, PathRoutes, f.query())
}

// Launches lists the living launches and the registered modules.
func (c *Client) Launches(ctx context.Context) (Launches, error) {
	return get[Launches](ctx, c, PathLaunches, nil)
}

// Refusals lists the last refusals, the newest first.
func (c *Client) Refusals(ctx context.Context, f Filter) (Refusals, error) {
	return get[Refusals](ctx, c, PathRefusals, f.query())
}

func (f Filter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"owner": f.Owner, "ref": f.Ref, "target": f.Target, "code": f.Code} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// Opening is an open to be explained.
type Opening struct {
	Owner, Ref string
	Epoch      *uint64 // nil: it names none
	As         string  // direct, a module id or reserved:ID
	To         string  // the target module
	// Provides are the target's capabilities in place of those that it declares,
	// nil for the latter.
	Provides []string
}

// Explain asks what admission would answer to an open.
func (c *Client) Explain(ctx context.Context, o Opening) (Explanation, error) {
	q := url.Values{"owner": {o.Owner}, "ref": {o.Ref}, "as": {o.As}, "to": {o.To}}
	if o.Epoch != nil {
		q.Set("epoch", strconv.FormatUint(*o.Epoch, 10))
	}
	if o.Provides != nil {
		q.Set("provides", strings.Join(o.Provides, ","))
	}
	return get[Explanation](ctx, c, PathExplain, q)
}

// Drain closes live routes by hand.
func (c *Client) Drain(ctx context.Context, r DrainRequest) (Drained, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Drained{}, err
	}
	return answer[Drained](c.do(ctx, http.MethodPost, PathDrain, nil, body))
}

// Ledger writes a copy of the ledger's file to w.
func (c *Client) Ledger(ctx context.Context, w io.Writer) error {
	res, err := c.do(ctx, http.MethodGet, PathLedger, nil, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return failure(res)
	}
	_, err = io.Copy(w, res.Body)
	return err
}

func get[T any](ctx context.Context, c *Client, path string, q url.Values) (T, error) {
	return answer[T](c.do(ctx, http.MethodGet, path, q, nil))
}

// do asks and returns an answer of any status.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, body []byte) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "scopeward", Path: path, RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return nil, &UnavailableError{Socket: c.socket, Err: err}
}

// answer reads an answer: what a path promises with 200 and, for health, 503.
func answer[T any](res *http.Response, err error) (T, error) {
	var v T
	if err != nil {
		return v, err
	}
	defer res.Body.Close()
	if _, health := any(v).(Health); res.StatusCode != http.StatusOK && !(health && res.StatusCode == http.StatusServiceUnavailable) {
		return v, failure(res)
	}
	if err := json.UnmarshalRead(io.LimitReader(res.Body, maxAnswer), &v); err != nil {
		return v, fmt.Errorf("the sidecar's answer can't be read: %w", err)
	}
	return v, nil
}

func failure(res *http.Response) error {
	f := &Failure{}
	if err := json.UnmarshalRead(io.LimitReader(res.Body, 1<<20), f); err != nil || f.Message == "" {
		return fmt.Errorf("the sidecar answered %s", res.Status)
	}
	return f
}
