package qp_test

import (
	"fmt"
	"net/netip"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// region is Memory with one region at address 0 that permits all accesses.
type region []byte

func (r region) Local(_ uint32, addr uint64, n uint32, _ bool) ([]byte, qp.Fault) {
	if addr > uint64(len(r)) || uint64(n) > uint64(len(r))-addr {
		return nil, qp.FaultBounds
	}
	return r[addr : addr+uint64(n)], qp.NoFault
}

func (r region) Remote(key uint32, addr uint64, n uint32, _ verbs.AccessFlags, _ uint32) ([]byte, qp.Fault) {
	return r.Local(key, addr, n, true)
}

func (region) CheckKey(uint32, verbs.AccessFlags, uint32) qp.Fault { return qp.NoFault }
func (region) Bind(*verbs.BindMW, uint32) qp.Fault                 { return qp.FaultKey }
func (region) Invalidate(rkey uint32, qpn uint32) qp.Fault         { return qp.FaultKey }

// printer is a Host that prints its events.
type printer string

func (name printer) Complete(wc verbs.WC, _ bool) {
	fmt.Printf("%s: request %d: %v, %v\n", name, wc.WRID, wc.Opcode, wc.Status)
}

func (name printer) Event(e verbs.EventType, _ *verbs.Failure) { fmt.Printf("%s: %v\n", name, e) }

func (printer) Path(verbs.AH) *wire.Path   { return nil } // RC has no address handles
func (printer) RDMAPeer(verbs.AH) *qp.Peer { return nil }

// mailbag is an Out that keeps packets until they are delivered.
type mailbag [][]byte

func (m *mailbag) Next(_ *wire.Path, n int) []byte {
	b := make([]byte, n)
	*m = append(*m, b)
	return b
}

func (m *mailbag) NextZeroCopy(to *wire.Path, head int, payload []byte) []byte {
	b := m.Next(to, head+len(payload)+wire.ICRCLen)
	copy(b[head:], payload)
	return b[:head]
}

func (m *mailbag) Cancel() { *m = (*m)[:len(*m)-1] }

// carry delivers all packets that from has to send.
func carry(from, to *qp.Core, src netip.Addr) {
	var out mailbag
	for from.Drain(1, &out) {
	}
	from.DrainAck(1, &out)
	for _, raw := range out {
		p := wire.Packet{Src: netip.AddrPortFrom(src, qp.Port)}
		if drop := p.Parse(raw); drop != wire.DropNone {
			fmt.Println(drop.Description())
		}
		fmt.Printf("%s: %v\n", src, p.BTH.Opcode)
		to.HandlePacket(1, &p)
	}
}

// Two queue pairs and an RDMA write of six bytes, without a network.
func Example() {
	memory := [2]region{[]byte("hello!"), make([]byte, 6)}
	addr := [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	var q [2]*qp.Core
	for i, name := range []printer{"A", "B"} {
		q[i] = qp.New(qp.Config{
			Num: uint32(100 + i), Type: verbs.RC, Host: name, Memory: memory[i],
			Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1},
		})
	}
	for i := range q {
		attr := verbs.QPAttr{
			PortNum: 1, AccessFlags: verbs.AccessRemoteWrite, PathMTU: verbs.MTU1024, DestQPN: q[1-i].Num(),
			AV: verbs.AHAttr{DGID: verbs.GIDFromAddr(addr[1-i])}, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
		}
		for _, step := range []struct {
			to   verbs.QPState
			mask verbs.QPAttrMask
		}{
			{verbs.StateInit, verbs.AttrPKeyIndex | verbs.AttrPort | verbs.AttrAccessFlags},
			{verbs.StateRTR, verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrDestQPN | verbs.AttrRQPSN |
				verbs.AttrMaxDestRdAtomic | verbs.AttrMinRNRTimer},
			{verbs.StateRTS, verbs.AttrTimeout | verbs.AttrRetryCnt | verbs.AttrRNRRetry | verbs.AttrSQPSN | verbs.AttrMaxQPRdAtomic},
		} {
			attr.State = step.to
			if err := q[i].Modify(0, &attr, verbs.AttrState|step.mask); err != nil {
				fmt.Println(err)
				return
			}
		}
	}

	_, err := q[0].PostSend(1, []verbs.SendWR{{
		WRID: 7, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
		SGList: []verbs.SGE{{Addr: 0, Length: 6}}, RemoteAddr: 0,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	carry(q[0], q[1], addr[0])
	carry(q[1], q[0], addr[1])
	fmt.Printf("B has %q\n", memory[1])
	// Output:
	// 192.0.2.1: RC_WRITE_ONLY
	// 192.0.2.2: RC_ACKNOWLEDGE
	// A: request 7: RDMA_WRITE, SUCCESS
	// B has "hello!"
}
