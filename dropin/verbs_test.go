package dropin_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/dropin/internal/programtest"
)

// TestTimes checks times of completions.
func TestTimes(t *testing.T) {
	r := command{args: []string{buildProgram(t, "times.c")}}.runProgram(t)
	require.Zero(t, r.code, r)
	require.Equal(t, "ok\n", r.stdout)
}

// TestPingpongTimes runs ibv_rc_pingpong with times of completions, which asks for the clock of the device and its mask.
func TestPingpongTimes(t *testing.T) {
	programtest.NeedPrograms(t, "ibv_rc_pingpong")
	port := programtest.FreePort(t)
	_, wait := command{args: []string{"ibv_rc_pingpong", "-t", "-g", "0", "-n", "200", "-p", port}}.start(t)
	programtest.WaitListening(t, port)
	client := command{args: []string{"ibv_rc_pingpong", "-t", "-g", "0", "-n", "200", "-p", port, "127.0.0.1"}}.runProgram(t)
	for _, r := range []result{client, wait()} {
		require.Zero(t, r.code, r)
		m := regexp.MustCompile(`Max receive completion clock cycles = (\d+)\nMin receive completion clock cycles = (\d+)\nAverage receive completion clock cycles = (\d+)`).
			FindStringSubmatch(r.stdout)
		require.Len(t, m, 4, r)
		var n [3]int64
		for i, text := range m[1:] {
			var err error
			n[i], err = strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
		}
		most, least, average := n[0], n[1], n[2]
		require.True(t, 0 < least && least <= average && average <= most && most < time.Minute.Nanoseconds(), r)
	}
}

// TestFlush posts ATOMIC WRITE and FLUSH.
func TestFlush(t *testing.T) {
	r := command{args: []string{buildProgram(t, "flush.c")}}.runProgram(t)
	require.Zero(t, r.code, r)
	require.Equal(t, "ok\n", r.stdout)
}

// TestMulticastIPv6 joins a group of IPv6 by mckey in a network namespace with one interface, and sends to it until the
// receiver has ended.
func TestMulticastIPv6(t *testing.T) {
	programtest.NeedPrograms(t, "mckey", "unshare", "ip")
	if err := exec.Command("unshare", "-n", "true").Run(); err != nil {
		t.Skip("no network namespace: ", err)
	}
	const script = `
		ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up || exit 99
		ip addr add fd00::1/64 dev d0 nodad && ip addr add fd00::2/64 dev d0 nodad || exit 99
		SOFTRNIC_ADDR=fd00::1 mckey -m ff15::4791 -b fd00::1 -C 3 & receiver=$!
		while kill -0 $receiver; do
			SOFTRNIC_ADDR=fd00::2 mckey -m ff15::4791 -b fd00::2 -C 3 -s >/dev/null || exit 98
		done
		wait $receiver`
	r := command{args: []string{"unshare", "-n", "sh", "-c", script}}.runProgram(t)
	if r.code == 99 {
		t.Skip("no interface: ", r)
	}
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "data transfers complete", r)
	require.Contains(t, r.stdout, "return status 0", r)
}
