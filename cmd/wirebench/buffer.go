package main

import (
	"errors"

	"scopeward/proxy/wire"
)

const (
	// firstBuffer is what a connection can read at once, in bytes.
	firstBuffer = 64 << 10
	// wideBuffer is that of a connection that large bodies or deep windows cross.
	wideBuffer = 1 << 20
)

// buffer holds what a connection has received: whole frames and the start of
// one. It grows to hold the largest frame and is never given back.
type buffer struct {
	b    []byte
	r, w int // unread bytes are b[r:w]
}

// room returns where the next bytes go. It is never empty.
func (b *buffer) room() []byte {
	if b.r == b.w {
		b.r, b.w = 0, 0
	}
	if b.b == nil {
		b.widen(firstBuffer)
	}
	need := wire.HeaderLen
	if h, err := wire.ParseHeader(b.b[b.r:b.w]); err == nil {
		need += int(h.Len)
	}
	if b.r+need <= len(b.b) && b.w < len(b.b) {
		return b.b[b.w:]
	}
	b.widen(need + firstBuffer)
	b.w = copy(b.b, b.b[b.r:b.w])
	b.r = 0
	return b.b[b.w:]
}

// widen makes room for size bytes.
func (b *buffer) widen(size int) {
	if size <= len(b.b) {
		return
	}
	into := make([]byte, size)
	b.w = copy(into, b.b[b.r:b.w])
	b.b, b.r = into, 0
}

// next takes the first frame whose bytes have all arrived. raw is the whole of
// it, header included, and stays valid until the next call of room.
func (b *buffer) next() (h wire.Header, raw []byte, ok bool, err error) {
	h, err = wire.ParseHeader(b.b[b.r:b.w])
	if errors.Is(err, wire.ErrShort) {
		return h, nil, false, nil
	}
	if err != nil {
		return h, nil, false, err
	}
	end := b.r + wire.HeaderLen + int(h.Len)
	if end > b.w {
		return h, nil, false, nil
	}
	raw = b.b[b.r:end]
	b.r = end
	return h, raw, true, nil
}
