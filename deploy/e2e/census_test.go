package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"scopeward/proxy/wire"
	"scopeward/sidecar/operator/api"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// socket is the sidecar's operator socket.
func (w *world) socket() string { return w.path("side/scopeward.sock") }

// index lists the routes of the sidecar's index as "opener -> target", sorted.
// A bind in flight is an entry too.
func (w *world) index() ([]string, error) {
	client := api.NewClient(w.socket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := client.Routes(ctx, api.Filter{})
	list := []string{}
	for _, r := range answer.Routes {
		list = append(list, strings.TrimPrefix(r.Principal, "reserved:")+" -> "+r.Target)
	}
	slices.Sort(list)
	return list, err
}

// census lists the routes that the router holds, in the index's form. In the
// worlds that ask for it every route is scoped.
func (w *world) census() ([]string, error) {
	conn, err := dialFile(w.routerFile())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var answer struct {
		Modules []struct {
			ModuleID string `json:"module_id"`
			Routes   []struct {
				Consumer struct {
					Kind     string `json:"kind"`
					ModuleID string `json:"module_id"`
				} `json:"consumer"`
			} `json:"routes"`
		} `json:"modules"`
	}
	body := askOnce(conn, object{"op": wire.OpSupervisorRoutes})
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("supervisor.routes: %w: %s", err, body)
	}
	list := []string{}
	for _, m := range answer.Modules {
		for _, r := range m.Routes {
			list = append(list, consumerName(r.Consumer.ModuleID)+" -> "+m.ModuleID)
		}
	}
	slices.Sort(list)
	return list, nil
}

func consumerName(id string) string {
	if id == "" {
		return "direct"
	}
	return id
}

// agree waits until the router's routes are exactly the index's, and returns
// them.
func (w *world) agree(when string) []string {
	w.t.Helper()
	var theirs, ours []string
	var err error
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s: the router has %v, the index %v, %v", when, theirs, ours, err)
		}
	}()
	within(w.t, patience, when+": the router and the index to agree", func() bool {
		if theirs, err = w.census(); err != nil {
			return false
		}
		ours, err = w.index()
		return err == nil && slices.Equal(theirs, ours)
	})
	return ours
}

// footprint is what a leak would show in.
type footprint struct {
	descriptors, routerDescriptors, goroutines int
	totals                                     api.Totals
}

func (w *world) footprint() (f footprint, err error) {
	if f.descriptors, err = descriptors(w.sidecar.cmd.Process.Pid); err != nil {
		return f, err
	}
	if f.routerDescriptors, err = descriptors(w.router.cmd.Process.Pid); err != nil {
		return f, err
	}
	m, err := w.gauges()
	if err != nil {
		return f, err
	}
	f.goroutines = int(m["go_goroutines"])
	client := api.NewClient(w.socket())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := client.Status(ctx)
	f.totals = status.Totals
	return f, err
}

func descriptors(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}

// gauges are the sidecar's metrics that have no label.
func (w *world) gauges() (map[string]float64, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.socket())
	}}
	client := http.Client{Transport: transport, Timeout: patience}
	answer, err := client.Get("http://scopeward" + api.PathMetrics)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); ok && err == nil {
			values[name] = value
		}
	}
	return values, nil
}

// mustFootprint is footprint when it has come to rest: twice the same.
func (w *world) mustFootprint() footprint {
	w.t.Helper()
	var last footprint
	within(w.t, patience, "the sidecar to come to rest", func() bool {
		f, err := w.footprint()
		rest := err == nil && f == last
		last = f
		return rest
	})
	return last
}

// slack is what may be open more than before: an answer that is on its way, a
// timer's goroutine.
const slack = 3

// returned waits until nothing is left over since before.
func (w *world) returned(before footprint) {
	w.t.Helper()
	var now footprint
	var err error
	defer func() {
		if w.t.Failed() {
			w.t.Logf("before %+v, now %+v, %v", before, now, err)
		}
	}()
	within(w.t, patience, "descriptors, goroutines and the table to be as before", func() bool {
		now, err = w.footprint()
		return err == nil && now.descriptors <= before.descriptors+slack && now.goroutines <= before.goroutines+slack &&
			now.routerDescriptors <= before.routerDescriptors+slack &&
			now.totals.Routes == before.totals.Routes && now.totals.Pending == before.totals.Pending &&
			now.totals.Presence == before.totals.Presence && now.totals.Scopes == before.totals.Scopes &&
			now.totals.Modules == before.totals.Modules
	})
	require.NoError(w.t, err)
}
