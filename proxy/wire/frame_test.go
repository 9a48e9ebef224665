package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
)

// vector is one golden frame.
type vector struct {
	Name    string `json:"name"`
	Type    uint8  `json:"ty"`
	Flags   uint8  `json:"flags"`
	Channel uint16 `json:"channel"`
	Epoch   uint32 `json:"epoch"`
	Corr    uint64 `json:"corr"`
	Body    string `json:"body_hex"`
	Header  string `json:"expected_header_hex"`
	Frame   string `json:"expected_frame_hex"`
}

func mustHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func goldenFrames(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/wire_vectors.json")
	require.NoError(t, err)
	var file struct {
		Frames []vector `json:"frame_vectors"`
	}
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.Frames)
	return file.Frames
}

func TestGoldenFramesBothWays(t *testing.T) {
	for _, v := range goldenFrames(t) {
		t.Run(v.Name, func(t *testing.T) {
			body, frame := mustHex(t, v.Body), mustHex(t, v.Frame)
			h := Header{Type: Type(v.Type), Flags: Flags(v.Flags), Channel: v.Channel, Epoch: v.Epoch, Corr: v.Corr}
			require.Equal(t, v.Frame, hex.EncodeToString(AppendFrame(nil, h, body)))
			h.Len = uint32(len(body))
			require.Equal(t, v.Header, hex.EncodeToString(h.Append(nil)))

			got, err := ParseHeader(frame)
			require.NoError(t, err)
			require.Equal(t, h, got)
			f, err := ReadFrame(bytes.NewReader(frame))
			require.NoError(t, err)
			require.Equal(t, h, f.Header)
			require.True(t, bytes.Equal(body, f.Body))
		})
	}
}

func TestHeaderHexTable(t *testing.T) {
	for _, c := range []struct {
		hex string
		h   Header
	}{
		{"00000000" + "02" + "00" + "00" + "0000" + "00000000" + "0000000000000000", Header{}},
		{"01000000" + "02" + "01" + "06" + "0100" + "02000000" + "0300000000000000",
			Header{Len: 1, Type: Response, Flags: FlagInteractive | FlagBackground, Channel: 1, Epoch: 2, Corr: 3}},
		{"00000004" + "02" + "0b" + "ff" + "ffff" + "ffffffff" + "ffffffffffffffff",
			Header{Len: MaxBody, Type: Goodbye, Flags: 0xff, Channel: 0xffff, Epoch: 0xffffffff, Corr: 0xffffffffffffffff}},
		{"00000000" + "02" + "c8" + "80" + "0000" + "00000000" + "0000000000000000", Header{Type: 200, Flags: FlagSubscription}},
	} {
		require.Equal(t, c.hex, hex.EncodeToString(c.h.Append(nil)))
		got, err := ParseHeader(mustHex(t, c.hex))
		require.NoError(t, err)
		require.Equal(t, c.h, got)
	}
}

func TestTypesAndTheirNames(t *testing.T) {
	require.EqualValues(t, 12, typeCount)
	for n, name := range []string{"Request", "Response", "Push", "StreamData", "StreamEnd", "Error", "Cancel", "Ping", "Pong", "Hello", "HelloAck", "Goodbye"} {
		require.True(t, Type(n).Known())
		require.Equal(t, name, Type(n).String())
	}
	require.False(t, Type(12).Known())
	require.Equal(t, "Type(200)", Type(200).String())
}

func TestFlagBits(t *testing.T) {
	require.EqualValues(t, 0x01, FlagBinary)
	require.EqualValues(t, 0x02, FlagInteractive)
	require.EqualValues(t, 0x04, FlagBackground)
	require.EqualValues(t, 0x08, FlagLast)
	require.EqualValues(t, 0x10, FlagExpedite)
	require.EqualValues(t, 0x20, FlagSheddable)
	require.EqualValues(t, 0x40, FlagDaemon)
	require.EqualValues(t, 0x80, FlagSubscription)
}

func TestLegal(t *testing.T) {
	for _, h := range []Header{
		{}, {Type: Request, Flags: FlagSubscription | FlagDaemon | FlagBinary | FlagLast | FlagBackground | FlagExpedite, Channel: 1, Len: 5},
		{Type: Push, Flags: FlagSheddable}, {Type: StreamData, Flags: FlagSheddable, Channel: 1}, {Type: Request, Channel: 1}, {Type: Goodbye},
		{Type: Hello, Len: 9}, {Type: StreamEnd, Len: 1, Channel: 2, Epoch: 3},
	} {
		require.True(t, h.Legal(), h)
	}
	for _, h := range []Header{
		{Type: 12}, {Type: 200}, {Flags: FlagInteractive | FlagBackground}, {Type: Push, Flags: FlagExpedite | FlagSheddable},
		{Flags: FlagSheddable}, {Type: StreamEnd, Flags: FlagSheddable, Channel: 1, Epoch: 1}, {Epoch: 1},
		{Type: Cancel, Len: 1}, {Type: Ping, Len: 1}, {Type: Pong, Len: 1}, {Type: Goodbye, Len: 1, Channel: 1, Epoch: 1},
	} {
		require.False(t, h.Legal(), h)
	}
}

func TestParseHeaderJudgesTheFirstFiveBytesFirst(t *testing.T) {
	whole := Header{Type: Ping}.Append(nil)
	for n := range HeaderLen {
		_, err := ParseHeader(whole[:n])
		require.ErrorIs(t, err, ErrShort, n)
	}
	old := bytes.Clone(whole)
	old[4] = 1
	for n := PreludeLen; n <= HeaderLen; n++ {
		_, err := ParseHeader(old[:n])
		var version *VersionError
		require.ErrorAs(t, err, &version, n)
		require.EqualValues(t, 1, version.Got)
	}
	long := Header{Len: MaxBody + 1, Type: Push, Channel: 7}.Append(nil)
	h, err := ParseHeader(long)
	require.ErrorIs(t, err, ErrTooLong)
	require.EqualValues(t, 7, h.Channel)
}

func TestHostileTransport(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 40<<10) // over the first allocation
	small := AppendFrame(nil, Header{Type: Request, Channel: 3, Epoch: 1, Corr: 9}, []byte("hello"))

	t.Run("one byte at a time", func(t *testing.T) {
		f, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(AppendFrame(nil, Header{Type: Push, Channel: 1, Epoch: 1}, body))))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, f.Body))
	})
	t.Run("cut at every offset", func(t *testing.T) {
		for cut := range small {
			_, err := ReadFrame(iotest.DataErrReader(bytes.NewReader(small[:cut])))
			if cut == 0 {
				require.Equal(t, io.EOF, err)
			} else {
				require.Equal(t, io.ErrUnexpectedEOF, err, "cut at %d", cut)
			}
		}
	})
	t.Run("an error of the transport is passed on", func(t *testing.T) {
		broken := errors.New("broken")
		for cut := range small {
			_, err := ReadFrame(io.MultiReader(bytes.NewReader(small[:cut]), iotest.ErrReader(broken)))
			require.ErrorIs(t, err, broken)
		}
	})
	t.Run("an old peer is an error, not a wait", func(t *testing.T) {
		pr, pw := io.Pipe()
		defer pw.Close()
		go pw.Write([]byte{9, 0, 0, 0, 1})
		_, err := ReadFrame(pr)
		var version *VersionError
		require.ErrorAs(t, err, &version)
	})
	t.Run("a long body is believed when it comes", func(t *testing.T) {
		h := Header{Len: MaxBody, Type: Push, Channel: 1, Epoch: 1}.Append(nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadFrame(io.MultiReader(bytes.NewReader(h), bytes.NewReader(body[:100])))
		runtime.ReadMemStats(&after)
		require.Equal(t, io.ErrUnexpectedEOF, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		b, err := readBody(bytes.NewReader(body), len(body))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, b))
		require.LessOrEqual(t, cap(b), len(body), "never more than was announced")
	})
	t.Run("oversize", func(t *testing.T) {
		_, err := ReadFrame(bytes.NewReader(Header{Len: MaxBody + 1}.Append(nil)))
		require.ErrorIs(t, err, ErrTooLong)
	})
	t.Run("frames back to back", func(t *testing.T) {
		r := bytes.NewReader(append(bytes.Clone(small), AppendGoodbye(nil, 4, 2)...))
		f, err := ReadFrame(r)
		require.NoError(t, err)
		require.Equal(t, "hello", string(f.Body))
		f, err = ReadFrame(r)
		require.NoError(t, err)
		require.Equal(t, Frame{Header: Header{Type: Goodbye, Channel: 4, Epoch: 2}}, f)
		_, err = ReadFrame(r)
		require.Equal(t, io.EOF, err)
	})
}

// FuzzReadFrame: the two readers agree on every input, and what is read renders
// to the bytes it was read from.
func FuzzReadFrame(f *testing.F) {
	for _, v := range goldenFrames(f) {
		f.Add(mustHex(f, v.Frame))
	}
	f.Add([]byte{0, 0, 0, 0, 3})
	f.Add(Header{Len: MaxBody + 1}.Append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, herr := ParseHeader(in)
		frame, err := ReadFrame(bytes.NewReader(in))
		if err == nil {
			require.NoError(t, herr)
			require.Equal(t, h, frame.Header)
			require.Len(t, frame.Body, int(h.Len))
			n := HeaderLen + int(h.Len)
			require.True(t, bytes.Equal(in[:n], AppendFrame(nil, frame.Header, frame.Body)))
			return
		}
		var version *VersionError
		switch {
		case errors.As(herr, &version), errors.Is(herr, ErrTooLong):
			require.Equal(t, herr, err)
		default:
			require.True(t, err == io.EOF && len(in) == 0 || err == io.ErrUnexpectedEOF)
		}
	})
}
