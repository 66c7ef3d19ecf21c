//go:build interop && linux

package interop

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
)

// TestUverbsTools runs softrnic's tools on the guest's kernel device: against softrnic on the host,
// and against the original.
func TestUverbsTools(t *testing.T) {
	g := lab.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	host := lab.Binary(t, "softrnic")
	program, err := os.ReadFile(host)
	require.NoError(t, err)
	const path = "/lab/softrnic"
	require.NoError(t, g.WriteFile(ctx, path, program))
	out, err := g.Output(ctx, path, "devinfo", "--list")
	require.NoError(t, err)
	require.Contains(t, out, "\tuverbs:"+lab.Device+"\n")
	out, err = g.Output(ctx, path, "devinfo", "--device", "uverbs:"+lab.Device, "-v")
	require.NoError(t, err)
	require.Contains(t, out, "hca_id:\t"+lab.Device+"\n")
	require.Contains(t, out, "GID[  0]:\t\t::ffff:"+lab.GuestIPv4.String()+", RoCE v2\n")

	for _, kind := range []string{"rc", "uc", "ud", "srq"} {
		t.Run(kind, func(t *testing.T) {
			const port = 18600
			server, err := g.Start(ctx, io.Discard, io.Discard, path, "pingpong", kind, "--device", "uverbs:"+lab.Device, "-p", "18600", "-n", "20", "-s", "1000", "-e", "-c")
			require.NoError(t, err)
			require.NoError(t, g.WaitListen(ctx, port))
			client, err := exec.CommandContext(ctx, host, "pingpong", kind, "-p", "18600", "-n", "20", "-s", "1000", "-c", lab.GuestIPv4.String()).CombinedOutput()
			require.NoError(t, err, string(client))
			require.NoError(t, server.Wait())
		})
	}
	t.Run("ibv_rc_pingpong", func(t *testing.T) {
		server, err := g.Start(ctx, io.Discard, io.Discard, "ibv_rc_pingpong", "-d", lab.Device, "-g", "1", "-p", "18601", "-n", "20")
		require.NoError(t, err)
		require.NoError(t, g.WaitListen(ctx, 18601))
		out, err := g.Output(ctx, path, "pingpong", "rc", "--device", "uverbs:"+lab.Device, "-p", "18601", "-n", "20", lab.GuestIPv4.String())
		require.NoError(t, err, out)
		require.NoError(t, server.Wait())
	})
	t.Run("perf write_lat", func(t *testing.T) {
		server, err := g.Start(ctx, io.Discard, io.Discard, path, "perf", "write_lat", "--device", "uverbs:"+lab.Device, "-p", "18602", "-n", "20", "-s", "64")
		require.NoError(t, err)
		require.NoError(t, g.WaitListen(ctx, 18602))
		client, err := exec.CommandContext(ctx, host, strings.Fields("perf write_lat -p 18602 -n 20 -s 64 "+lab.GuestIPv4.String())...).CombinedOutput()
		require.NoError(t, err, string(client))
		require.NoError(t, server.Wait())
	})
}
