//go:build interop && linux

package interop

import (
	"bytes"
	"cmp"
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

// fieldsOf returns the words of a command, with the guest's address for SERVER.
func fieldsOf(command string) []string {
	return strings.Fields(strings.ReplaceAll(command, "SERVER", lab.GuestIPv4.String()))
}

// TestUverbsConnections runs the tools that connect by RDMA-CM on the guest's kernel device: against the
// originals in the guest, in both roles, and against softrnic on the host.
func TestUverbsConnections(t *testing.T) {
	g := lab.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	host := lab.Binary(t, "softrnic")
	program, err := os.ReadFile(host)
	require.NoError(t, err)
	const path = "/lab/softrnic"
	require.NoError(t, g.WriteFile(ctx, path, program))
	const device = " --device uverbs:" + lab.Device
	for _, c := range []struct{ name, ours, server, client, roles string }{
		{"rping", "", "-s -a SERVER -V -C 5", "-c -a SERVER -V -C 5", "server client both host"},
		{"ucmatose", "", "-b SERVER -c 3 -C 10", "-s SERVER -c 3 -C 10", "server client"},
		{"ucmatose", "", "-b SERVER -P ib", "-s SERVER -P ib", "both"},
		{"ib_write_lat", "perf write_lat", "-R -n 20 -s 64 -p 18610", "-R -n 20 -s 64 -p 18610 SERVER", "server client"},
		{"ib_send_bw", "perf send_bw", "-R -n 20 -s 4096 -p 18611", "-R -n 20 -s 4096 -p 18611 SERVER", "host"},
	} {
		ours := path + " " + cmp.Or(c.ours, c.name)
		fields := func(command, args string) []string { return fieldsOf(command + " " + args) }
		for role := range strings.FieldsSeq(c.roles) {
			t.Run(c.name+" "+role, func(t *testing.T) {
				server, client := c.name, c.name
				if role != "client" {
					server = ours + device
				}
				if role != "server" {
					client = ours + device
				}
				var log bytes.Buffer
				s, err := g.Start(ctx, &log, &log, fields(server, c.server)...)
				require.NoError(t, err)
				require.NoError(t, g.WaitListenCM(ctx))
				var out string
				if role == "host" {
					var text []byte
					text, err = exec.CommandContext(ctx, host, fields(cmp.Or(c.ours, c.name), c.client)...).CombinedOutput()
					out = string(text)
				} else {
					out, err = g.Output(ctx, fields(client, c.client)...)
				}
				require.NoError(t, err, out)
				require.NoError(t, s.Wait(), log.String())
			})
		}
	}
	t.Run("sdp cat", func(t *testing.T) {
		var got bytes.Buffer
		s, err := g.Start(ctx, &got, io.Discard, fieldsOf(path+" sdp cat -l SERVER 18612"+device)...)
		require.NoError(t, err)
		require.NoError(t, g.WaitListenCM(ctx))
		_, err = g.Output(ctx, "sh", "-c", "echo hello through the kernel | "+strings.Join(fieldsOf(path+" sdp cat SERVER 18612"+device), " "))
		require.NoError(t, err)
		require.NoError(t, s.Wait())
		require.Equal(t, "hello through the kernel\n", got.String())
	})
}
