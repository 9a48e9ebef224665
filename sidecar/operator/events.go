package operator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"scopeward/proxy"
	"scopeward/sidecar/operator/api"
)

const (
	// heartbeat is how often a silent stream says that it lives.
	heartbeat = 15 * time.Second
	// gatherFor is how long what follows an event is waited for, so that it goes out
	// with it: a write for each would cost more than the decision did.
	gatherFor = 10 * time.Millisecond
	// gathered is how many bytes of events go out in one write.
	gathered = 64 << 10
)

// eventKinds are all kinds of events, as the description lists them.
func eventKinds() []string {
	kinds := []string{kindRecordAccepted, kindRecordRefused, kindMismatch, kindEvicted}
	for k := proxy.Admitted; k <= proxy.PeerRefused; k++ {
		kinds = append(kinds, k.String())
	}
	for _, k := range feedKinds() {
		kinds = append(kinds, k)
	}
	return kinds
}

// events streams decisions and what becomes of scopes until the reader leaves, falls behind, or the sidecar
// ends.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	var kinds []string
	if given := r.URL.Query().Get("kind"); given != "" {
		kinds = strings.Split(given, ",")
		for _, k := range kinds {
			if !slices.Contains(eventKinds(), k) {
				refuse(w, http.StatusBadRequest, api.CodeBadRequest, "kind: "+Quote(k)+" is no kind of event: read "+api.PathDescription)
				return
			}
		}
	}
	lagged := []byte("event: " + api.EventLagged + "\ndata: {}\n\n")
	sub := s.p.Journal.hub.subscribe(kinds)
	defer s.p.Journal.hub.unsubscribe(sub)
	feed := newFeedReader(s.p.Proxy, s.p.Journal, kinds)
	out := eventWriter{w: w, c: http.NewResponseController(w)}
	out.c.SetReadDeadline(time.Time{}) // the request is read; what is left may last
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if out.send([]byte(": following\n\n")) != nil {
		return
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	worlds := time.NewTicker(worldEvery)
	defer worlds.Stop()
	var buf []byte
	for {
		select {
		case <-feed.woken():
			told := false
			if buf, told = feed.tell(buf[:0]); !told {
				out.send(lagged)
				return
			}
			if len(buf) == 0 {
				continue
			}
		case <-worlds.C:
			continue
		case e, ok := <-sub.events:
			if !ok {
				out.send(lagged)
				return
			}
			select {
			case <-time.After(gatherFor):
			case <-r.Context().Done():
				return
			}
			buf = gather(appendEvent(buf[:0], e), sub)
		case <-tick.C:
			buf = append(buf[:0], ": alive\n\n"...)
		case <-r.Context().Done():
			return
		}
		if out.send(buf) != nil {
			return
		}
	}
}

// gather appends what else waits, up to what goes out in one write.
func gather(b []byte, sub *subscription) []byte {
	for len(b) < gathered {
		select {
		case e, ok := <-sub.events:
			if !ok {
				return b // read again, and told then
			}
			b = appendEvent(b, e)
		default:
			return b
		}
	}
	return b
}

// appendEvent appends an event as server-sent events have it. JSON holds no line
// break, so no name can forge a field.
func appendEvent(b []byte, e *api.Event) []byte {
	b = append(append(b, "id: "...), strconv.FormatUint(e.Seq, 10)...)
	b = append(append(b, "\nevent: "...), e.Kind...)
	b = renderEvent(append(b, "\ndata: "...), e)
	return append(b, "\n\n"...)
}

// eventWriter writes and flushes. A reader that does not take what is written is
// given up.
type eventWriter struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func (o eventWriter) send(b []byte) error {
	if err := o.c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(b); err != nil {
		return err
	}
	return o.c.Flush()
}
