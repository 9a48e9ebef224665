package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// poller waits for many sockets in one thread. The zero value is ready.
type poller struct {
	fd     int // 0 until the first add
	events [64]unix.EpollEvent
	ready  []int
}

// add watches a socket for bytes to read and calls it i.
func (p *poller) add(fd, i int) error {
	if p.fd == 0 {
		made, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
		p.fd = made
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &event)
}

// wait returns the sockets that have bytes, at least one. It is valid until the
// next call.
func (p *poller) wait() ([]int, error) {
	for {
		n, err := unix.EpollWait(p.fd, p.events[:], patience*1000)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("epoll: %w", err)
		}
		if n == 0 {
			return nil, errIdle
		}
		p.ready = p.ready[:0]
		for _, e := range p.events[:n] {
			p.ready = append(p.ready, int(e.Fd))
		}
		return p.ready, nil
	}
}

func (p *poller) close() {
	if p.fd != 0 {
		unix.Close(p.fd)
	}
}
