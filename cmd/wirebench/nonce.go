package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// launchNonce takes the nonce that the router gave this process: through the
// pipe that SUBC_LAUNCH_NONCE_FD names by descriptor and inode, or in
// SUBC_LAUNCH_NONCE.
func launchNonce() (string, error) {
	number, _, ok := strings.Cut(os.Getenv("SUBC_LAUNCH_NONCE_FD"), ":")
	if !ok {
		return os.Getenv("SUBC_LAUNCH_NONCE"), nil
	}
	fd, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return "", fmt.Errorf("SUBC_LAUNCH_NONCE_FD names no descriptor")
	}
	pipe := os.NewFile(uintptr(fd), "launch nonce")
	defer pipe.Close()
	text, err := io.ReadAll(io.LimitReader(pipe, 4096))
	return strings.TrimSpace(string(text)), err
}
