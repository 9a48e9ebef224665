package bpf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeOrigin(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, originLen))
	f.Add([]byte("\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, ok := decodeOrigin(b)
		require.Equal(t, len(b) == originLen, ok)
		if !ok {
			require.Zero(t, o)
			return
		}
		var back []byte
		back = binary.NativeEndian.AppendUint32(back, o.tgid)
		back = binary.NativeEndian.AppendUint32(back, o.uid)
		back = binary.NativeEndian.AppendUint64(back, o.at)
		back = binary.NativeEndian.AppendUint64(back, o.client)
		require.Equal(t, b, back)
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add("cat", "1 (cat) S 0")
	f.Add(") Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19", "")
	f.Fuzz(func(t *testing.T, name, junk string) {
		line := "7 (" + name + ") R 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1234 0 0"
		st, state, ok := parseStat([]byte(line))
		require.True(t, ok)
		require.Equal(t, stat{ppid: 3, start: 1234}, st)
		require.Equal(t, byte('R'), state)
		if st, _, ok := parseStat([]byte(junk)); ok {
			require.GreaterOrEqual(t, st.ppid, 0)
		}
	})
}

func FuzzParseSocket(f *testing.F) {
	f.Add(uint32(0x7f000001), uint16(80), uint16(443), uint32(1000), uint64(99), []byte("junk"))
	f.Fuzz(func(t *testing.T, addr uint32, lport, rport uint16, uid uint32, inode uint64, junk []byte) {
		var ip [4]byte
		binary.BigEndian.PutUint32(ip[:], addr)
		word := binary.NativeEndian.Uint32(ip[:])
		line := fmt.Sprintf("  0: %08X:%04X %08X:%04X 01 0:0 00:0 0 %d 0 %d 1", word, lport, word, rport, uid, inode)
		s, ok := parseSocket([]byte(line))
		require.True(t, ok)
		require.Equal(t, socket{
			local:  netip.AddrPortFrom(netip.AddrFrom4(ip), lport),
			remote: netip.AddrPortFrom(netip.AddrFrom4(ip), rport),
			uid:    int(uid), inode: inode,
		}, s)
		if s, ok := parseSocket(junk); ok {
			require.True(t, s.local.IsValid())
			require.True(t, s.remote.IsValid())
		}
	})
}
