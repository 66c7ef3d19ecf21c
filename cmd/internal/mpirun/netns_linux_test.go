package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namespaces creates two network namespaces connected by a cable, and a command that replaces ssh
// and runs a command in one of them.
func namespaces(t *testing.T) (names [2]string, launch []string) {
	if os.Getuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip (Debian: package iproute2)")
	}
	ip := func(args ...string) {
		t.Helper()
		out, err := exec.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", strings.Join(args, " "), out)
	}
	for i := range names {
		names[i] = fmt.Sprintf("mpirun%d%c", os.Getpid(), 'a'+i)
		if out, err := exec.Command("ip", "netns", "add", names[i]).CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces, and ip netns says %s", out)
		}
		t.Cleanup(func() { ip("netns", "del", names[i]) })
	}
	ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
	for i, name := range names {
		ip("-n", name, "addr", "add", fmt.Sprintf("198.18.0.%d/24", i+1), "dev", "cable")
		ip("-n", name, "link", "set", "cable", "up")
		ip("-n", name, "link", "set", "lo", "up")
	}
	ssh := filepath.Join(t.TempDir(), "ssh")
	require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\nexec ip netns exec \"$1\" sh -c \"$2\"\n"), 0o700))
	return names, []string{ssh}
}

// TestHostVanishes cuts the cable and checks that all ranks report the lost peer in time although
// they only wait. The launcher reaches both hosts by another path and notices nothing.
func TestHostVanishes(t *testing.T) {
	names, launch := namespaces(t)
	type running struct {
		stdout *text
		done   <-chan result
	}
	signals := map[string]chan os.Signal{}
	jobs := map[string]running{}
	for _, net := range []string{"rdma", "ud", "tcp"} {
		signals[net] = make(chan os.Signal, 1)
		stdout, done := start(t, Options{Programs: []Program{program(2, "wait")}, Hosts: []Host{{names[0], 1}, {names[1], 1}}, Launch: launch,
			Environ: []string{"SOFTRNIC_MPI_NET=" + net}, Signals: signals[net]})
		jobs[net] = running{stdout, done}
	}
	for _, k := range jobs {
		k.stdout.wait("ready\n", 2)
	}
	out, err := exec.Command("ip", "-n", names[1], "link", "set", "cable", "down").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for net, k := range jobs {
		k.stdout.wait(" is lost: ", 2)
		signals[net] <- os.Interrupt
		r := <-k.done
		require.Contains(t, r.stdout, "rank 0 ends: mpi: rank 0 of world: receive from 1, tag 5: rank 1 (", net)
		require.Contains(t, r.stdout, "rank 1 ends: mpi: rank 1 of world: receive from 0, tag 5: rank 0 (", net)
		require.NotContains(t, r.failed(t).Reason, "hangs", net)
		t.Logf("%s\n%s", net, r.stdout)
	}
}

// TestTwoHosts checks that ranks on two hosts with separate networks connect and communicate over
// the cable, which is not needed to start them.
func TestTwoHosts(t *testing.T) {
	names, launch := namespaces(t)
	hosts := []Host{{names[0], 2}, {names[1], 2}}
	for _, port := range []bool{false, true} {
		r := runJob(t, Options{Programs: []Program{program(4, "exchange")}, Hosts: hosts, Launch: launch, Port: port})
		require.NoError(t, r.err)
		lines := r.lines(t)
		slices.Sort(lines)
		require.Equal(t, []string{"rank 0 of 4 on node 0 is done", "rank 1 of 4 on node 0 is done", "rank 2 of 4 on node 1 is done", "rank 3 of 4 on node 1 is done"}, lines)
	}

	// Standard input, variables and failures are forwarded between hosts as well.
	t.Setenv("SOFTRNIC_TEST_X", "exported")
	r := runJob(t, Options{Programs: []Program{program(4, "say", "$SOFTRNIC_TEST_X")}, Hosts: hosts, Launch: launch})
	require.NoError(t, r.err)
	require.Equal(t, 4, strings.Count(r.stdout, "exported\n"))
	r = runJob(t, Options{Programs: []Program{program(2, "cat")}, Hosts: hosts, PPN: 1, Launch: launch, Stdin: strings.NewReader("to rank 0\n")})
	require.NoError(t, r.err)
	require.Equal(t, "to rank 0\n", r.stdout)

	w := newWitness(t)
	fail := filepath.Join(t.TempDir(), "fail")
	require.NoError(t, mkfifo(fail))
	_, done := start(t, Options{Programs: []Program{program(4, "family", w.path, fail)}, Hosts: hosts, Launch: launch, Grace: 1})
	w.waitFor(t, 8)
	f, err := os.OpenFile(fail, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	failure := (<-done).failed(t)
	require.Contains(t, failure.Reason, "rank 0 on "+names[0])
	require.Contains(t, failure.Reason, "exited with status 3; the other 3 ranks were ended")
	w.waitNone(t)
}
