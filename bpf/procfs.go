package bpf

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// procfsUsable reports what keeps /proc from being a source.
func procfsUsable() error {
	refuse := func(err error) error {
		return &NotSupportedError{
			Reason: "/proc doesn't show sockets and who holds them",
			Remedy: "mount /proc (without hidepid, or with our group as its gid=)",
			Err:    err,
		}
	}
	f, err := os.Open("/proc/thread-self/net/tcp")
	if err != nil {
		return refuse(err)
	}
	f.Close()
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		return refuse(err)
	}
	return nil
}

// peerByProcfs finds the client's end of s in the socket tables, and then the
// processes that hold it. It names a process only when there is one to name: the
// only holder, or the one from whom all other holders descend.
func (h *held) peerByProcfs(s Socket) *Peer {
	if !s.Local.IsValid() || !s.Remote.IsValid() {
		return unknownPeer(SourceProcfs, "the connection has no TCP addresses")
	}
	sock, err := findSocket(unmapped(s.Remote), unmapped(s.Local))
	if err != nil {
		return unknownPeer(SourceProcfs, err.Error())
	}
	holders := holdersOf(sock.inode)
	first, ok := commonAncestor(holders)
	if !ok {
		if len(holders) == 0 {
			return unknownPeer(SourceProcfs, "no process that we may look into holds the other end")
		}
		return unknownPeer(SourceProcfs, fmt.Sprintf("%d unrelated processes hold the other end", len(holders)))
	}
	return h.newPeer(Process{PID: first.id.PID, UID: sock.uid, Source: SourceProcfs}, 0, func() bool {
		got, err := os.Readlink(first.fd)
		return err == nil && got == socketLink(sock.inode) && first.id.Alive()
	})
}

// unmapped writes a v4-mapped address as IPv4, and drops a zone, which the tables
// don't have.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// socket is a line of /proc/net/tcp or tcp6.
type socket struct {
	local, remote netip.AddrPort // v4-mapped is written as IPv4
	uid           int
	inode         uint64 // 0: no process holds it any more
}

// findSocket looks for the socket with these ends in both tables: a mapped
// client of an IPv4 server is in the other one. Only our network namespace's.
func findSocket(local, remote netip.AddrPort) (socket, error) {
	for _, table := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue // no IPv6
		}
		s, ok := scanSockets(f, local, remote)
		f.Close()
		if ok && s.inode == 0 {
			return socket{}, fmt.Errorf("the other end has been closed")
		}
		if ok {
			return s, nil
		}
	}
	return socket{}, fmt.Errorf("the other end is not in our network namespace's socket tables")
}

func scanSockets(r io.Reader, local, remote netip.AddrPort) (socket, bool) {
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		s, ok := parseSocket(sc.Bytes())
		if ok && s.local == local && s.remote == remote {
			return s, true
		}
	}
	return socket{}, false
}

// parseSocket reads one line of a socket table; false for its heading.
func parseSocket(line []byte) (socket, bool) {
	const (
		fieldLocal  = 1
		fieldRemote = 2
		fieldUID    = 7
		fieldInode  = 9
	)
	f := bytes.Fields(line)
	if len(f) <= fieldInode {
		return socket{}, false
	}
	var s socket
	var ok bool
	if s.local, ok = parseEnd(f[fieldLocal]); !ok {
		return socket{}, false
	}
	if s.remote, ok = parseEnd(f[fieldRemote]); !ok {
		return socket{}, false
	}
	uid, err := strconv.ParseUint(string(f[fieldUID]), 10, 32)
	if err != nil {
		return socket{}, false
	}
	s.uid = int(uid)
	s.inode, err = strconv.ParseUint(string(f[fieldInode]), 10, 64)
	return s, err == nil
}

// parseEnd reads ADDRESS:PORT. The address is printed as 32-bit words in the
// machine's order, the port as a number.
func parseEnd(b []byte) (netip.AddrPort, bool) {
	addr, port, ok := bytes.Cut(b, []byte(":"))
	if !ok || (len(addr) != 8 && len(addr) != 32) {
		return netip.AddrPort{}, false
	}
	var raw [16]byte
	if _, err := hex.Decode(raw[:], addr); err != nil {
		return netip.AddrPort{}, false
	}
	n := len(addr) / 2
	for i := 0; i < n; i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	p, err := strconv.ParseUint(string(port), 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	ip, _ := netip.AddrFromSlice(raw[:n])
	return unmapped(netip.AddrPortFrom(ip, uint16(p))), true
}

func socketLink(inode uint64) string { return "socket:[" + strconv.FormatUint(inode, 10) + "]" }

// holder is a process with a descriptor of a socket.
type holder struct {
	id Instance
	fd string // path of the descriptor in /proc
}

// holdersOf are the processes that hold a socket, as far as we may look.
func holdersOf(inode uint64) []holder {
	want := socketLink(inode)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []holder
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", e.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // it ended, or it is not ours to look into
		}
		for _, fd := range fds {
			path := filepath.Join(dir, fd.Name())
			if got, err := os.Readlink(path); err != nil || got != want {
				continue
			}
			if id, err := InstanceOf(pid); err == nil {
				found = append(found, holder{id: id, fd: path})
			}
			break
		}
	}
	return found
}

// commonAncestor is the holder from whom every holder descends.
func commonAncestor(hs []holder) (holder, bool) {
	for _, root := range hs {
		all := true
		for _, h := range hs {
			if in, err := SameOrDescendant(h.id, root.id); err != nil || !in {
				all = false
				break
			}
		}
		if all {
			return root, true
		}
	}
	return holder{}, false
}
