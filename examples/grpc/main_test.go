package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRun runs the commands of the package comment.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, ":0", "", w) }()
	addr, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "", strings.TrimSpace(addr), &out))
	require.Equal(t, "SERVING\n", out.String())
	host, _, err := net.SplitHostPort(strings.TrimSpace(addr))
	require.NoError(t, err)
	require.ErrorContains(t, run(t.Context(), "", host+":1", io.Discard), "connection refused")
	cancel()
	require.NoError(t, <-ended)

	require.ErrorContains(t, run(t.Context(), "", "", io.Discard), "give -listen or -check")
}
