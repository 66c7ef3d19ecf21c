package pmi

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scripted is a process manager that replies to each line with the next of the given lines, and
// closes the connection after the last.
func scripted(t *testing.T, answers ...string) *client {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		asked := bufio.NewReader(theirs)
		for _, answer := range answers {
			if _, err := asked.ReadString('\n'); err != nil {
				return
			}
			if _, err := theirs.Write([]byte(answer)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { ours.Close(); <-done })
	return &client{protocol: &protocolV1{}, rank: 1, size: 2, conn: newConn(ours, "PMI_FD=3")}
}

// hello are the replies that start a session of PMI-1.
var hello = []string{
	"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
	"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
	"cmd=my_kvsname kvsname=kvs_1\n",
	"cmd=get_result rc=0 msg=success value=(vector,(0,1,1))\n",
}

func TestMalformedRepliesInOpen(t *testing.T) {
	for _, c := range []struct {
		at   int
		says string
		want string
	}{
		{0, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n", "rejected"},
		{0, "HTTP/1.1 400 Bad Request\r\n\r\n", "want cmd= or a length"},
		{0, "cmd=maxes\n", "want response_to_init"},
		{1, "cmd=maxes keylen_max=64 vallen_max=many\n", "not a number"},
		{1, "cmd=maxes vallen_max=1024\n", "no keylen_max"},
		{1, "cmd=maxes keylen_max=8 vallen_max=1024\n", "key limit of 7 characters"},
		{1, "cmd=maxes keylen_max=64 vallen_max=8\n", "value limit of 7 characters"},
		{2, "cmd=my_kvsname\n", "no job name"},
		{3, "cmd=get_result rc=0 value=(vector,(1,1,1))\n", "PMI_process_mapping"},
		{3, strings.Repeat("cmd=x ", 20000), "longer than"},
	} {
		answers := slices.Clone(hello)
		answers[c.at] = c.says
		_, err := scripted(t, answers...).joinManager(soon(t))
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "PMI_FD=3")
	}
	for vanish := range hello {
		_, err := scripted(t, hello[:vanish]...).joinManager(soon(t))
		require.ErrorIs(t, err, ErrGone)
	}
	// If the manager reports no mapping of ranks to nodes, each rank has a node of its own.
	for _, says := range []string{"cmd=get_result rc=-1 msg=key_PMI_process_mapping_not_found value=unknown\n", "cmd=get_result rc=0 value=\n"} {
		m, err := scripted(t, append(hello[:3:3], says)...).joinManager(soon(t))
		require.NoError(t, err)
		require.Equal(t, 1, m.Node(1))
	}
	c := scripted(t, hello...)
	c.size = 1
	_, err := c.joinManager(soon(t))
	require.ErrorContains(t, err, "rank 1 of a job of 1")
}

func TestMalformedReplies(t *testing.T) {
	begin := func(says ...string) Manager {
		m, err := scripted(t, append(append([]string(nil), hello...), says...)...).joinManager(soon(t))
		require.NoError(t, err)
		return m
	}
	m := begin("cmd=get_result rc=0 value=x\n")
	err := m.Put("k", "v")
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, ": want put_result")
	require.ErrorIs(t, m.Fence(soon(t)), ErrProtocol) // the connection is unusable
	require.ErrorContains(t, m.Abort(1, "x"), "PMI_FD=3")

	require.ErrorContains(t, begin("cmd=put_result rc=-1 msg=duplicate_key_k\n").Put("k", "v"), "duplicate key k")

	for _, says := range []string{"foreign", "t2:a", "b1:*", "t0:"} {
		_, err := begin("cmd=get_result rc=0 value="+says+"\n", "cmd=get_result rc=-1\n").Get(soon(t), "k")
		require.Error(t, err, says)
	}
	require.ErrorContains(t, begin("cmd=barrier_out rc=-1 msg=no\n").Fence(soon(t)), "rejected")

	for _, call := range map[string]func(m Manager) error{
		"Put":      func(m Manager) error { return m.Put("k", "v") },
		"Fence":    func(m Manager) error { return m.Fence(soon(t)) },
		"Get":      func(m Manager) error { _, err := m.Get(soon(t), "k"); return err },
		"Finalize": func(m Manager) error { return m.Finalize() },
	} {
		m := begin()
		err := call(m)
		require.ErrorIs(t, err, ErrGone)
		require.ErrorIs(t, m.Fence(context.Background()), ErrGone)
	}
}

// TestFragmentedReplies checks that the part of a reply that arrived before a call was canceled is
// kept.
func TestFragmentedReplies(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := &client{protocol: &protocolV1{}, rank: 0, size: 1, conn: newConn(ours, "x")}
	ctx, cancel := context.WithCancel(soon(t))
	first := asked(func() error { _, err := c.roundTrip(ctx, newRequestV1("get_result", "get")); return err })
	b := make([]byte, 100)
	_, err := theirs.Read(b)
	require.NoError(t, err)
	_, err = theirs.Write([]byte("cmd=get_re")) // returns when it is read
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	go theirs.Write([]byte("sult rc=0\n"))
	require.NoError(t, c.finishPending(soon(t)))
	require.Empty(t, c.buf)
}

func TestProtocolErrorText(t *testing.T) {
	err := newProtocolError("cmd=get", "cmd=put_result", "want get_result")
	require.EqualError(t, err, `pmi: invalid reply of the process manager: request "cmd=get": reply "cmd=put_result": want get_result`)
}
