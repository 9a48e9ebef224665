package wire

import (
	"encoding/binary"
	"fmt"
)

const (
	// Version is the only envelope version spoken here.
	Version = 2
	// HeaderLen is the length of a frame header in bytes.
	HeaderLen = 21
	// PreludeLen is how much of a header must be read before its version can be
	// judged. An older peer's header is shorter than [HeaderLen]: whoever waits
	// for the rest of it waits for ever.
	PreludeLen = 5
	// MaxBody is the largest body of a frame in bytes.
	MaxBody = 64 << 20
	// ControlChannel carries control frames; every other channel is a route.
	ControlChannel = 0
)

// Offsets of the header's fields. All numbers are little-endian.
const (
	offLen     = 0  // u32, body bytes
	offVersion = 4  // u8
	offType    = 5  // u8
	offFlags   = 6  // u8
	offChannel = 7  // u16
	offEpoch   = 9  // u32
	offCorr    = 13 // u64
)

// Type is a frame's type.
type Type uint8

// The frame types. Cancel, Ping, Pong and Goodbye are pure headers.
const (
	Request Type = iota
	Response
	Push
	StreamData
	StreamEnd
	Error
	Cancel
	Ping
	Pong
	Hello
	HelloAck
	Goodbye

	typeCount
)

var typeNames = [typeCount]string{
	"Request", "Response", "Push", "StreamData", "StreamEnd", "Error",
	"Cancel", "Ping", "Pong", "Hello", "HelloAck", "Goodbye",
}

// Known reports whether t is a type of this envelope version. The router closes
// a connection that sends any other.
func (t Type) Known() bool { return t < typeCount }

func (t Type) String() string {
	if t.Known() {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Flags is the header's flag byte.
type Flags uint8

// The flag bits. Bits 1-2 hold the priority and bits 4-5 the admission class.
const (
	FlagBinary       Flags = 1 << 0
	FlagInteractive  Flags = 1 << 1
	FlagBackground   Flags = 2 << 1
	FlagLast         Flags = 1 << 3
	FlagExpedite     Flags = 1 << 4
	FlagSheddable    Flags = 2 << 4
	FlagDaemon       Flags = 1 << 6
	FlagSubscription Flags = 1 << 7

	maskPriority Flags = 3 << 1
	maskClass    Flags = 3 << 4
)

// Header is one frame's header. The zero value is an empty Request on the
// control channel.
type Header struct {
	Len     uint32 // body bytes, at most MaxBody
	Type    Type
	Flags   Flags
	Channel uint16 // route slot in the sender's space; 0 is the control channel
	Epoch   uint32 // the Nth binding of that slot; 0 on channel 0 only
	Corr    uint64 // correlation id; 0 on pushes and Goodbyes
}

// ParseHeader reads the header at the start of b. It needs [HeaderLen] bytes,
// or [PreludeLen] to return a [VersionError]. It returns [ErrShort] when b holds less
// and [ErrTooLong] for a body over [MaxBody].
//
// It does not judge the rest: the router closes a connection for an unknown
// type, a reserved flag value or a misplaced epoch, and the sidecar lets it.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < PreludeLen {
		return Header{}, ErrShort
	}
	if b[offVersion] != Version {
		return Header{}, &VersionError{Got: b[offVersion]}
	}
	if len(b) < HeaderLen {
		return Header{}, ErrShort
	}
	h := Header{
		Len:     binary.LittleEndian.Uint32(b[offLen:]),
		Type:    Type(b[offType]),
		Flags:   Flags(b[offFlags]),
		Channel: binary.LittleEndian.Uint16(b[offChannel:]),
		Epoch:   binary.LittleEndian.Uint32(b[offEpoch:]),
		Corr:    binary.LittleEndian.Uint64(b[offCorr:]),
	}
	if h.Len > MaxBody {
		return h, ErrTooLong
	}
	return h, nil
}

// Legal reports whether the router goes on with a connection that sent h. It
// closes one, without a word, for an unknown type, priority 3, class 3, a
// sheddable frame that is neither Push nor StreamData, an epoch on the control
// channel, or a pure header with a body.
func (h Header) Legal() bool {
	class := h.Flags & maskClass
	switch {
	case !h.Type.Known(), h.Flags&maskPriority == maskPriority, class == maskClass:
		return false
	case class == FlagSheddable && h.Type != Push && h.Type != StreamData:
		return false
	case h.Channel == ControlChannel && h.Epoch != 0:
		return false
	}
	switch h.Type {
	case Cancel, Ping, Pong, Goodbye:
		return h.Len == 0
	}
	return true
}

// Append appends the 21 bytes of h to b.
func (h Header) Append(b []byte) []byte {
	var x [HeaderLen]byte
	binary.LittleEndian.PutUint32(x[offLen:], h.Len)
	x[offVersion] = Version
	x[offType] = uint8(h.Type)
	x[offFlags] = uint8(h.Flags)
	binary.LittleEndian.PutUint16(x[offChannel:], h.Channel)
	binary.LittleEndian.PutUint32(x[offEpoch:], h.Epoch)
	binary.LittleEndian.PutUint64(x[offCorr:], h.Corr)
	return append(b, x[:]...)
}
