package rnic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/childtest"
	"github.com/softrnic/softrnic/verbs"
)

// childOptions are the Options sent to a child.
type childOptions struct {
	Addr                           netip.AddrPort
	AnyPort, Share                 bool
	NoGSO, NoGRO, NoMMsg, Portable bool
	RecvBuffer, SendBuffer         int
	Impair                         string
}

func (o childOptions) options() Options {
	return Options{Addr: o.Addr, AnyPort: o.AnyPort, Share: o.Share, NoGSO: o.NoGSO, NoGRO: o.NoGRO, NoMMsg: o.NoMMsg, Portable: o.Portable,
		RecvBuffer: o.RecvBuffer, SendBuffer: o.SendBuffer, Impair: o.Impair}
}

// order is an order to a child, a process with a device: "open" a device, "connect" its queue pair, "fill" memory, return
// its "sum", post a "recv", "send" or "write", or poll a "completion". "setuid" changes the user to
// N, "hold" holds a name of a Unix socket, and "refusal" returns the error of opening a device.
type order struct {
	Do      string
	Options childOptions
	Type    verbs.QPType
	Peer    *verbs.Endpoint
	Remote  remoteMemory
	Off, N  int
	Name    string
	Seed    uint64
}

type remoteMemory struct {
	Addr uint64
	RKey uint32
}

// answer is the reply to an order.
type answer struct {
	Endpoint *verbs.Endpoint
	Memory   remoteMemory
	Addr     netip.AddrPort
	Sum      string
	WC       verbs.WC
	Refusal  string
	Denied   bool
}

// heldName is the name that a child holds until it ends.
var heldName net.Listener

// setUser changes the user of this process. It is for Linux only.
var setUser func(uid int) error

// execute executes an order.
func (e *end) execute(o *order, a *answer) (err error) {
	e.enterEngine()
	defer e.enterEngine()
	switch o.Do {
	case "open":
		return e.childOpen(o, a)
	case "setuid":
		return setUser(o.N)
	case "hold":
		heldName, err = net.Listen("unixpacket", o.Name)
		return err
	case "refusal":
		_, err := Open(o.Options.options())
		a.Refusal = fmt.Sprint(err)
		a.Denied = errors.Is(err, os.ErrPermission)
	case "connect":
		local, err := verbs.LocalEndpoint(e.dev, e.qp, 0xfffff0)
		if err != nil {
			return err
		}
		return verbs.Connect(e.qp, local, *o.Peer, verbs.ConnectOptions{})
	case "fill":
		fill(e.mr.Bytes()[o.Off:o.Off+o.N], o.Seed)
	case "sum":
		a.Sum = sum(e.mr.Bytes()[o.Off : o.Off+o.N])
	case "recv":
		_, err = e.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{e.mr.SGE(o.Off, o.N)}}})
	case "send", "write":
		wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{e.mr.SGE(o.Off, o.N)}}
		if o.Do == "write" {
			wr.Opcode, wr.RemoteAddr, wr.RKey = verbs.WRRDMAWrite, o.Remote.Addr, o.Remote.RKey
		}
		if o.Type == verbs.UD {
			wr.RemoteQPN, wr.RemoteQKey = o.Peer.QPN, qkey
			if wr.AH, err = e.pd.CreateAH(verbs.AHAttr{DGID: o.Peer.GID, UDPPort: o.Peer.UDPPort}); err != nil {
				return err
			}
		}
		_, err = e.qp.PostSend([]verbs.SendWR{wr})
	case "completion":
		var wc [1]verbs.WC
		_, err = e.cq.PollWait(context.Background(), wc[:])
		a.WC = wc[0]
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	return err
}

// enterEngine makes one call into the engine. Orders separate the accesses of a process from those
// of its peer in time, which the race detector does not see.
func (e *end) enterEngine() {
	if e.qp != nil {
		e.qp.State()
	}
}

func (e *end) childOpen(o *order, a *answer) (err error) {
	if e.dev, err = Open(o.Options.options()); err != nil {
		return err
	}
	if e.pd, err = e.dev.AllocPD(); err != nil {
		return err
	}
	if e.cq, err = e.dev.CreateCQ(1024); err != nil {
		return err
	}
	if e.qp, err = e.pd.CreateQP(verbs.QPInitAttr{Type: o.Type, SendCQ: e.cq, RecvCQ: e.cq, Cap: sizes}); err != nil {
		return err
	}
	if e.mr, err = e.pd.RegMR(aligned(8<<20), allAccess); err != nil {
		return err
	}
	a.Addr, a.Memory = e.dev.Addr(), remoteMemory{e.mr.Addr(), e.mr.RKey()}
	if o.Type == verbs.UD {
		if err := verbs.ActivateUD(e.qp, qkey, 7); err != nil {
			return err
		}
	}
	local, err := verbs.LocalEndpoint(e.dev, e.qp, 0xfffff0)
	a.Endpoint = &local
	return err
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// child is a child process, seen by its parent.
type child struct {
	*childtest.Child[order, answer]
	t testing.TB
	answer
}

// newChild starts a child that opens a device.
func newChild(t testing.TB, o childOptions, typ verbs.QPType) *child {
	t.Helper()
	c := startChild(t)
	c.answer = c.Do(order{Do: "open", Options: o, Type: typ})
	return c
}

// startChild starts a child without a device.
func startChild(t testing.TB) *child {
	t.Helper()
	return &child{Child: childtest.Start[order, answer](t), t: t}
}

// completion waits for a successful completion of the child.
func (c *child) completion() verbs.WC {
	c.t.Helper()
	wc := c.Do(order{Do: "completion"}).WC
	require.NoError(c.t, wc.Err())
	return wc
}
