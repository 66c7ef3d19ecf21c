package rnic

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/ownaddr"
	"github.com/softrnic/softrnic/verbs"
)

// linkModes are the modes of the link.
var linkModes = map[string]childOptions{
	"fast":           {},
	"no GSO":         {NoGSO: true},
	"no GRO":         {NoGRO: true},
	"no mmsg":        {NoMMsg: true},
	"plain":          {NoGSO: true, NoGRO: true, NoMMsg: true},
	"portable":       {Portable: true},
	"default buffer": {RecvBuffer: link.SystemDefault, SendBuffer: link.SystemDefault},
}

// TestTwoProcesses exchanges messages of every transport between two processes over UDP, in every
// mode of the link on either side, over IPv4 and IPv6.
func TestTwoProcesses(t *testing.T) {
	for name, o := range linkModes {
		if testing.Short() && name != "fast" && name != "plain" {
			continue
		}
		for _, ip := range []string{"IPv4", "IPv6"} {
			t.Run(name+" "+ip, func(t *testing.T) {
				theirs := o
				if ip == "IPv6" {
					o.Addr, o.AnyPort = netip.MustParseAddrPort("[::1]:0"), true
					theirs = o
					needIPv6(t)
				}
				for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
					t.Run(typ.String(), func(t *testing.T) {
						t.Parallel()
						traffic(t, newEndOf(t, o.options(), typ), newChild(t, theirs, typ), typ)
					})
				}
			})
		}
	}
	t.Run("mixed", func(t *testing.T) {
		traffic(t, newEnd(t, linkModes["portable"].options()), newChild(t, linkModes["fast"], verbs.RC), verbs.RC)
		traffic(t, newEnd(t, linkModes["no GRO"].options()), newChild(t, linkModes["no GSO"], verbs.RC), verbs.RC)
	})
}

func needIPv6(t *testing.T) {
	c, err := link.OpenUDP(link.Options{Addr: netip.MustParseAddrPort("[::1]:0")})
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	c.Close()
}

// traffic transfers messages in both directions and checks every byte.
func traffic(t *testing.T, e *end, c *child, typ verbs.QPType) {
	local, err := verbs.LocalEndpoint(e.dev, e.qp, 100)
	require.NoError(t, err)
	var ah verbs.AH
	if typ == verbs.UD {
		require.NoError(t, verbs.ActivateUD(e.qp, qkey, 100))
		ah, err = e.pd.CreateAH(verbs.AHAttr{DGID: c.Endpoint.GID, UDPPort: c.Endpoint.UDPPort})
		require.NoError(t, err)
	} else {
		require.NoError(t, verbs.Connect(e.qp, local, *c.Endpoint, verbs.ConnectOptions{}))
		c.Do(order{Do: "connect", Peer: &local})
	}
	lengths := map[verbs.QPType][]int{verbs.RC: {1, 4096, 100_003, 8 << 20}, verbs.UC: {1, 4096, 40_001}, verbs.UD: {1, 1024, 4056}}[typ]
	grh := map[verbs.QPType]int{verbs.UD: 40}[typ]
	for i, n := range lengths {
		seed := uint64(i)
		mine := e.mr.Bytes()

		fill(mine[:n], seed)
		c.Do(order{Do: "recv", N: min(n+grh, 8<<20)})
		e.post(t, verbs.SendWR{Opcode: verbs.WRSend, SGList: []verbs.SGE{e.mr.SGE(0, n)}, AH: ah, RemoteQPN: c.Endpoint.QPN, RemoteQKey: qkey})
		require.EqualValues(t, n+grh, c.completion().ByteLen)
		e.poll1(t)
		require.Equal(t, sum(mine[:n]), c.Do(order{Do: "sum", Off: grh, N: n}).Sum, "send of %d bytes", n)

		clear(mine)
		c.Do(order{Do: "fill", N: n, Seed: seed + 10})
		e.recv(t, 1, 0, min(n+grh, 8<<20))
		c.Do(order{Do: "send", N: n, Type: typ, Peer: &local})
		require.EqualValues(t, n+grh, e.poll1(t).ByteLen)
		c.completion()
		require.Equal(t, c.Do(order{Do: "sum", N: n}).Sum, sum(mine[grh:grh+n]), "their send of %d bytes", n)
	}
	if typ != verbs.RC {
		return
	}
	n := 3_000_001
	fill(e.mr.Bytes()[:n], 20)
	e.post(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{e.mr.SGE(0, n)}, RemoteAddr: c.Memory.Addr, RKey: c.Memory.RKey})
	e.poll1(t)
	require.Equal(t, sum(e.mr.Bytes()[:n]), c.Do(order{Do: "sum", N: n}).Sum, "write")

	c.Do(order{Do: "fill", N: n, Seed: 21})
	e.post(t, verbs.SendWR{Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{e.mr.SGE(0, n)}, RemoteAddr: c.Memory.Addr, RKey: c.Memory.RKey})
	e.poll1(t)
	require.Equal(t, c.Do(order{Do: "sum", N: n}).Sum, sum(e.mr.Bytes()[:n]), "read")

	c.Do(order{Do: "fill", N: n, Seed: 22})
	e.enterEngine()
	c.Do(order{Do: "write", N: n, Remote: remoteMemory{e.mr.Addr(), e.mr.RKey()}})
	c.completion()
	e.enterEngine()
	require.Equal(t, c.Do(order{Do: "sum", N: n}).Sum, sum(e.mr.Bytes()[:n]), "their write")
}

// TestPeerIsKilled kills the peer's process during a stream. Requests fail after the retries, with
// the likely cause. Then a new process uses the address: it serves nothing of the old connection,
// and a new connection works.
func TestPeerIsKilled(t *testing.T) {
	e, c := newEnd(t, Options{}), newChild(t, childOptions{Addr: ownaddr.Device(49)}, verbs.RC) // an address that stays free
	local, err := verbs.LocalEndpoint(e.dev, e.qp, 100)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(e.qp, local, *c.Endpoint, verbs.ConnectOptions{Retries: 4}))
	c.Do(order{Do: "connect", Peer: &local})
	other := e.newQP(t, verbs.RC) // idle when the peer dies
	endpoint, err := verbs.LocalEndpoint(e.dev, other, 100)
	require.NoError(t, err)
	require.NoError(t, verbs.Connect(other, endpoint, *c.Endpoint, verbs.ConnectOptions{Retries: 2}))

	write := verbs.SendWR{WRID: 5, Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{e.mr.SGE(0, 1<<20)},
		RemoteAddr: c.Memory.Addr, RKey: c.Memory.RKey}
	for range 20 {
		e.post(t, write)
	}
	for range 10 {
		e.poll1(t)
	}
	c.Kill()
	for {
		if wc := e.next(t); wc.Status != verbs.WCSuccess {
			checkRetriesSpent(t, e, wc, 4, c.Addr)
			if e.dev.caps.Name != "udp-portable" { // without ICMP errors
				require.ErrorIs(t, wc.Err(), syscall.ECONNREFUSED) // the port is closed
			}
			break
		}
		e.post(t, write)
	}
	require.Equal(t, verbs.StateErr, e.qp.State())

	again := newChild(t, childOptions{Addr: c.Addr}, verbs.RC)
	require.Equal(t, c.Addr, again.Addr)
	for wc := e.next(t); ; wc = e.next(t) { // the queued requests
		require.Equal(t, verbs.WCWRFlushErr, wc.Status)
		if e.dev.Inspect().CQs[0].Used == 0 {
			break
		}
	}
	_, err = other.PostSend(empty)
	require.NoError(t, err)
	silent := e.next(t)
	checkRetriesSpent(t, e, silent, 2, c.Addr)
	require.ErrorContains(t, silent.Err(), "has never responded")

	e.qp = e.newQP(t, verbs.RC)
	traffic(t, e, again, verbs.RC)
}

// checkRetriesSpent checks the text of a failed completion.
func checkRetriesSpent(t *testing.T, e *end, wc verbs.WC, retries int, peer netip.AddrPort) {
	t.Helper()
	require.Equal(t, verbs.WCRetryExcErr, wc.Status, wc.Err())
	require.Equal(t, retries, wc.Failure.Retries)
	require.ErrorContains(t, wc.Err(), fmt.Sprintf("no acknowledgement from %v", peer))
	require.NotZero(t, e.dev.Stats().Counters.RetryExceededErr)
}
