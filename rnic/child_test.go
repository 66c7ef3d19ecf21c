package rnic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// childEnv makes the test binary a child: a process with a device that executes orders, one JSON
// object a line, from its standard input until that ends.
const childEnv = "SOFTRNIC_TEST_CHILD"

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

// order is an order to a child: "open" a device, "connect" its queue pair, "fill" memory, return
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
	Err      string
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

func childMain() {
	if os.Getenv(childEnv) == "" {
		return
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var e end
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, "child:", err)
			}
			os.Exit(0)
		}
		var a answer
		if err := e.execute(&o, &a); err != nil {
			a.Err = err.Error()
		}
		if err := out.Encode(a); err != nil {
			os.Exit(1)
		}
	}
}

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
	t   testing.TB
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
	answer
}

// newChild starts a child that opens a device.
func newChild(t testing.TB, o childOptions, typ verbs.QPType) *child {
	t.Helper()
	c := startChild(t)
	c.answer = c.do(order{Do: "open", Options: o, Type: typ})
	return c
}

// startChild starts a child without a device.
func startChild(t testing.TB) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{t: t, cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), childEnv+"=1")
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.in, c.out = json.NewEncoder(in), json.NewDecoder(out)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		in.Close()
		c.cmd.Wait()
	})
	return c
}

// start sends an order; finish waits for its reply.
func (c *child) start(o order) {
	c.t.Helper()
	require.NoError(c.t, c.in.Encode(o))
}

func (c *child) finish() (a answer) {
	c.t.Helper()
	require.NoError(c.t, c.out.Decode(&a))
	require.Empty(c.t, a.Err)
	return a
}

func (c *child) do(o order) answer {
	c.t.Helper()
	c.start(o)
	return c.finish()
}

// completion waits for a successful completion of the child.
func (c *child) completion() verbs.WC {
	c.t.Helper()
	wc := c.do(order{Do: "completion"}).WC
	require.NoError(c.t, wc.Err())
	return wc
}

// kill kills the process without a chance to clean up.
func (c *child) kill() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill())
	c.cmd.Wait()
}
