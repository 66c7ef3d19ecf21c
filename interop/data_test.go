//go:build interop && linux

package interop

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/interop/lab"
	"github.com/softrnic/softrnic/interop/peer"
	"github.com/softrnic/softrnic/verbs"
)

// fault is an impairment of packets, on the cable or in softrnic's own link.
type fault struct {
	name string
	lab.Faults
	impair string // for rnic.Options.Impair
}

// faults returns each impairment of the network in each direction, and all of softrnic's
// link combined, which corrupts packets after their ICRC is computed.
func faults() []fault {
	list := []fault{{name: "clean"}}
	for _, f := range []struct{ name, words string }{
		{"loss", "loss 1%"},
		{"reorder", "delay 4ms reorder 99%"}, // delays one of a hundred
		{"duplicate", "duplicate 2%"},
		{"corrupt", "corrupt 1%"},
	} {
		list = append(list,
			fault{name: f.name + " from rxe", Faults: lab.Faults{FromGuest: f.words}},
			fault{name: f.name + " to rxe", Faults: lab.Faults{ToGuest: f.words}})
	}
	return append(list, fault{name: "all by softrnic", impair: "loss 1% duplicate 1% corrupt 1% delay 2ms reorder 99%"})
}

// setFaults impairs the network until the end of the test.
func setFaults(t testing.TB, g *lab.Guest, f lab.Faults) {
	t.Helper()
	require.NoError(t, g.SetFaults(context.Background(), f))
	if f != (lab.Faults{}) {
		t.Cleanup(func() { require.NoError(t, g.SetFaults(context.Background(), lab.Faults{})) })
	}
}

// mtus are the path MTUs of the matrix.
var mtus = []verbs.MTU{verbs.MTU1024, verbs.MTU4096}

// isSelected reports whether a combination is run: all in a full matrix, and in a wide one
// without loss; otherwise one of each four that differ in addresses and MTU only, and
// another one for each n.
func isSelected(n, family, mtu int, clean bool) bool {
	return isFull() || isWide() && clean || n%4 == 2*family+mtu
}

// TestReliableData compares the payload of SEND, WRITE and READ in every size.
func TestReliableData(t *testing.T) {
	g := lab.Need(t)
	n := 0
	for _, fault := range faults() {
		for _, k := range kinds {
			for fi, f := range families {
				for mi, mtu := range mtus {
					if !isSelected(n, fi, mi, isWide()) {
						continue
					}
					t.Run(fmt.Sprintf("%v %s MTU %v %s", k, f.name, mtu, fault.name), func(t *testing.T) {
						checks := 0
						defer func() {
							total := checks
							if t.Failed() {
								total++
							}
							payloadT.Count(fault.name, checks, total, k.String(), f.name, mtu.String())
						}()
						setFaults(t, g, fault.Faults)
						sizes := payloadSizes(mtu.Bytes(), fault.name == "clean" || isFull())
						o := peer.Options{Memory: sizes[len(sizes)-1]}
						a, b := openPair(t, g, k, f, 1, o, o, verbs.ConnectOptions{MTU: mtu})
						require.NoError(t, softOf(a, b).Device.SetImpair(fault.impair))
						for _, size := range sizes {
							transfer(t, a, b, size, &checks)
						}
					})
				}
			}
			n++
		}
	}
}

// payloadSizes returns message sizes around the MTU and up to 8 MiB, or three of them.
func payloadSizes(mtu int, all bool) []int {
	if !all {
		return []int{1, mtu + 1, 64<<10 + 3}
	}
	return []int{0, 1, 8, mtu - 1, mtu, mtu + 1, 3*mtu + 5, 64<<10 + 3, 1 << 20, 8 << 20}
}

// transfer moves n bytes by every operation and compares them.
func transfer(t testing.TB, a, b peer.Side, n int, checks *int) {
	t.Helper()
	seed := uint32(n)
	check := func(end peer.Side, op string) {
		t.Helper()
		sum, err := end.Sum(0, n)
		require.NoError(t, err)
		require.Equal(t, peer.PatternSum(n, seed), sum, "%s of %d bytes", op, n)
		seed++
		*checks++
	}
	send := func(wr verbs.SendWR, receives bool) {
		t.Helper()
		if receives {
			require.NoError(t, b.PostRecv(0, 1, b.SGE(0, n)))
		}
		wr.Flags, wr.SGList, wr.Imm = verbs.SendSignaled, a.SGE(0, n), 0x12345678
		wr.RemoteAddr, wr.RKey = b.Addr(0), b.RKey()
		require.NoError(t, a.PostSend(0, wr))
		if receives {
			wc := poll(t, b, 1)[0]
			require.NoError(t, wc.Err())
			require.EqualValues(t, n, wc.ByteLen)
			if wr.Opcode != verbs.WRSend {
				require.NotZero(t, wc.Flags&verbs.WCWithImm)
				require.Equal(t, wr.Imm, wc.Imm)
			}
		}
		require.NoError(t, poll(t, a, 1)[0].Err())
	}
	for _, op := range []verbs.WROpcode{verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm} {
		require.NoError(t, a.Fill(0, n, seed))
		require.NoError(t, b.Fill(0, n, ^seed))
		send(verbs.SendWR{Opcode: op}, op != verbs.WRRDMAWrite)
		check(b, op.String())
	}
	require.NoError(t, b.Fill(0, n, seed))
	require.NoError(t, a.Fill(0, n, ^seed))
	send(verbs.SendWR{Opcode: verbs.WRRDMARead}, false)
	check(a, "READ")
}

// TestUnreliableData checks that messages that arrive by UC and UD are complete. In a
// clean network all messages arrive; otherwise few may, since UC drops reordered packets.
func TestUnreliableData(t *testing.T) {
	g := lab.Need(t)
	n := 0
	for _, fault := range faults() {
		for _, k := range kinds {
			if against := map[string]string{"rxe": fault.ToGuest + fault.impair, "softrnic": fault.FromGuest}[k.a]; against != "" {
				continue // no payload in this direction
			}
			for _, typ := range []verbs.QPType{verbs.UC, verbs.UD} {
				f, mtu := families[n%2], mtus[n/2%2]
				n++
				cell(t, datagramT, fault.name, []string{k.String(), typ.String()}, fmt.Sprintf("%v %v %s MTU %v %s", k, typ, f.name, mtu, fault.name), func(t *testing.T) {
					setFaults(t, g, fault.Faults)
					sendMany(t, g, k, f, typ, mtu, fault)
				})
			}
		}
	}
}

// sendMany sends many messages and checks those that arrive.
func sendMany(t *testing.T, g *lab.Guest, k kind, f family, typ verbs.QPType, mtu verbs.MTU, fault fault) {
	const messages = 20
	clean := fault.name == "clean"
	size, front := 3*mtu.Bytes()+5, 0 // of a message, and of the GRH before it in a receive
	if typ == verbs.UD {
		size, front = mtu.Bytes()-3, 40
	}
	room := front + size
	o := peer.Options{Type: typ, Memory: messages * room, RecvDepth: messages}
	a, b := openPair(t, g, k, f, 1, o, o, verbs.ConnectOptions{MTU: mtu})
	require.NoError(t, softOf(a, b).Device.SetImpair(fault.impair))
	for i := range messages {
		require.NoError(t, b.PostRecv(0, uint64(i), b.SGE(i*room, room)))
		require.NoError(t, a.Fill(i*room, size, uint32(i)))
	}
	for i := range messages {
		require.NoError(t, a.PostSend(0, verbs.SendWR{Opcode: verbs.WRSendWithImm, Flags: verbs.SendSignaled, Imm: uint32(i), SGList: a.SGE(i*room, size)}))
		require.NoError(t, poll(t, a, 1)[0].Err())
	}
	// In a clean network all messages arrive. Otherwise wait until no more arrive.
	within := patience
	if !clean {
		within = quiet
	}
	var arrived []verbs.WC
	for {
		wcs, err := b.Poll(1, within)
		require.NoError(t, err)
		arrived = append(arrived, wcs...)
		if len(wcs) == 0 || clean && len(arrived) == messages {
			break
		}
	}
	for _, wc := range arrived {
		require.NoError(t, wc.Err())
		require.EqualValues(t, room, wc.ByteLen)
		require.Less(t, wc.Imm, uint32(messages))
		sum, err := b.Sum(int(wc.WRID)*room+front, size)
		require.NoError(t, err)
		require.Equal(t, peer.PatternSum(size, wc.Imm), sum, "message %d", wc.Imm)
	}
	if clean {
		require.Len(t, arrived, messages)
	}
}
