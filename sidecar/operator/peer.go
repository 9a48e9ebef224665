package operator

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peerKey is where a request's context holds who asks.
type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	if p, ok := c.(*peerConn); ok {
		return context.WithValue(ctx, peerKey{}, p.cred)
	}
	return ctx
}

// peerOf says who asks, in words for a log.
func peerOf(ctx context.Context) string {
	cred, ok := ctx.Value(peerKey{}).(unix.Ucred)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("uid=%d,pid=%d", cred.Uid, cred.Pid)
}

func effectiveUser() uint32 { return uint32(os.Geteuid()) }
