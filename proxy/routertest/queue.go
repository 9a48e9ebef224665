package routertest

import (
	"net"
	"sync"
)

// writeBatch is how many queued bytes go out in one write.
const writeBatch = 256 << 10

// queue holds the frames that wait to be written to one connection. A frame is
// counted until it has been written.
type queue struct {
	mu     sync.Mutex
	change *sync.Cond
	frames [][]byte
	bytes  int // queued and being written
	closed bool
}

func newQueue() *queue {
	q := &queue{}
	q.change = sync.NewCond(&q.mu)
	return q
}

// push queues frame whatever its size.
func (q *queue) push(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addLocked(frame)
}

// offer queues frame if it fits, or if nothing waits but what is being written: a
// frame over the whole limit could not be sent otherwise, and a peer may have read
// all of a write before its writer hears of it.
func (q *queue) offer(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.fitsLocked(frame) {
		return false
	}
	q.addLocked(frame)
	return true
}

// wait queues frame as soon as it fits. It is false when the queue was closed
// first.
func (q *queue) wait(frame []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.fitsLocked(frame) {
		q.change.Wait()
	}
	q.addLocked(frame)
	return !q.closed
}

func (q *queue) fitsLocked(frame []byte) bool {
	return len(q.frames) == 0 || q.bytes+len(frame) <= MaxQueued
}

func (q *queue) addLocked(frame []byte) {
	if q.closed {
		return
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.change.Broadcast()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.frames = nil
	q.change.Broadcast()
}

// drain writes to nc what is queued, until the queue is closed or a write fails.
func (q *queue) drain(nc net.Conn) {
	var buf []byte
	for {
		buf = q.take(buf[:0])
		if buf == nil {
			return
		}
		if _, err := nc.Write(buf); err != nil {
			q.close()
			return
		}
		q.release(len(buf))
		if cap(buf) > writeBatch {
			buf = nil
		}
	}
}

// take waits for frames and appends a batch of them to buf. It is nil when the
// queue is closed.
func (q *queue) take(buf []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.frames) == 0 {
		if q.closed {
			return nil
		}
		q.change.Wait()
	}
	n := 0
	for n < len(q.frames) && (n == 0 || len(buf)+len(q.frames[n]) <= writeBatch) {
		buf = append(buf, q.frames[n]...)
		q.frames[n] = nil
		n++
	}
	q.frames = q.frames[n:]
	return buf
}

func (q *queue) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= n
	q.change.Broadcast()
}
