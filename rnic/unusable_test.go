package rnic

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	calls "github.com/softrnic/softrnic/internal/misuse"
	"github.com/softrnic/softrnic/verbs"
)

// someObjects creates an object of each type, and the functions that close them, users first.
func someObjects(t *testing.T, far *end) (objects map[string]any, destroy func()) {
	e := newEndOf(t, Options{}, verbs.UD)
	ch, err := e.dev.CreateCompChannel()
	require.NoError(t, err)
	srq, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 4, MaxSGE: 1})
	require.NoError(t, err)
	mr := e.reg(t, 64, verbs.AccessLocalWrite)
	mw, err := e.pd.AllocMW()
	require.NoError(t, err)
	pd, err := e.dev.AllocPD()
	require.NoError(t, err)
	cq, qp, ud, ah := e.newCQ(t, 4), e.newQPInState(t, verbs.RC, verbs.StateRTS), e.newQPWith(t, verbs.QPInitAttr{Type: verbs.UD, MaxDatagramRDMA: 4}), e.handle(t, far.dev)
	peer, err := ud.(verbs.DatagramRDMA).CreatePeer(verbs.PeerAttr{AH: ah.Attr(), QPN: far.qp.Num()})
	require.NoError(t, err)
	return map[string]any{"addressHandle": ah, "completionQueue": cq, "completionChannel": ch, "Device": e.dev, "memoryRegion": mr, "memoryWindow": mw, "protectionDomain": pd, "peerHandle": peer, "queuePair": qp, "sharedReceiveQueue": srq}, func() {
		for _, f := range []func() error{peer.Close, ah.Close, ud.Close, qp.Close, cq.Close, ch.Close, srq.Close, mw.Close, mr.Close, pd.Close} {
			require.NoError(t, f())
		}
	}
}

// TestUnusable calls every exported function and method with closed objects, with those of a closed
// device, and with arguments out of range: each returns, with an error if it has one.
func TestUnusable(t *testing.T) {
	far := newEndOf(t, Options{}, verbs.UD)
	live, _ := someObjects(t, far)
	destroyed, destroy := someObjects(t, far)
	destroy()
	delete(destroyed, "Device")
	closed, _ := someObjects(t, far)
	require.NoError(t, closed["Device"].(*Device).Close())

	s := &calls.Surface{
		Dir:     ".",
		Handles: []string{"addressHandle", "completionChannel", "completionQueue", "memoryRegion", "memoryWindow", "peerHandle", "protectionDomain", "queuePair", "sharedReceiveQueue"},
		NoNull:  "objects come of Open and of one another's methods alone, with an error if there is none, as those of libibverbs do",
		Funcs:   map[string]any{"CounterDescription": CounterDescription},
		Types:   map[string][]calls.Receiver{},
		Values: []any{verbs.QPInitAttr{}, verbs.QPInitAttr{Type: 99}, verbs.SRQInitAttr{MaxWR: -1}, verbs.SRQAttr{MaxWR: -1}, verbs.QPAttr{State: 99}, verbs.AHAttr{PortNum: 99},
			verbs.PeerAttr{}, Options{Shards: -1}, []verbs.SendWR{{Opcode: 99}}, []verbs.RecvWR{{SGList: []verbs.SGE{{Length: 1}}}}, filepath.Join(t.TempDir(), "nonsense")},
		Except: map[string]string{
			"Open":                    "opens a device with the arguments that are not out of range: see TestOpenMisuse",
			"Device.Close on live":    "ends the device of this test",
			"memoryRegion.LoadUint32": "panics as an index of a slice does",
			"memoryRegion.LoadUint64": "panics as an index of a slice does",
		},
		Errors: []error{verbs.ErrClosed, verbs.ErrInvalid, verbs.ErrLimit, verbs.ErrUnsupported},
		Quiet: map[string]string{
			"addressHandle.Close":                      "may be called again, also when the device is closed",
			"completionQueue.Close":                    "may be called again, also when the device is closed",
			"completionChannel.Close":                  "may be called again, also when the device is closed",
			"queuePair.Close":                          "may be called again, also when the device is closed",
			"sharedReceiveQueue.Close":                 "may be called again, also when the device is closed",
			"peerHandle.Close":                         "may be called again, also when the device is closed",
			"memoryRegion.Close":                       "may be called again, also when the device is closed",
			"memoryWindow.Close":                       "may be called again, also when the device is closed",
			"protectionDomain.Close":                   "may be called again, also when the device is closed",
			"Device.Close on of a closed device":       "may be called again",
			"Device.StopCapture on of a closed device": "there is none",
			"Device.FitPathMTU on of a closed device":  "the MTU of the path is unknown",
			"queuePair.FitPathMTU":                     "the MTU of the path is unknown",
		},
	}
	for name, objects := range map[string]map[string]any{"live": live, "destroyed": destroyed, "of a closed device": closed} {
		for typ, object := range objects {
			s.Types[typ] = append(s.Types[typ], calls.Receiver{Name: name, Usable: name == "live", Make: func() any { return object }})
		}
	}
	for typ, value := range map[string]any{"Counters": &Counters{}, "QPCounters": &QPCounters{}, "LinkCounters": &LinkCounters{}, "FaultCounters": &FaultCounters{}} {
		s.Types[typ] = []calls.Receiver{{Name: "zero", Usable: true, Make: func() any { return value }}}
	}
	s.Check(t)
}

// TestNilHandles passes nil objects and nil pointers in interfaces: all are refused, or the request
// fails.
func TestNilHandles(t *testing.T) {
	a := newEndOf(t, Options{}, verbs.UD)
	var cq *completionQueue
	var srq *sharedReceiveQueue
	for _, c := range []struct {
		says string
		attr verbs.QPInitAttr
	}{
		{"SendCQ must be", verbs.QPInitAttr{RecvCQ: a.cq}},
		{"RecvCQ must be", verbs.QPInitAttr{SendCQ: a.cq}},
		{"SendCQ must be", verbs.QPInitAttr{SendCQ: cq, RecvCQ: a.cq}},
		{"RecvCQ must be", verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: cq}},
		{"SRQ must be", verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: a.cq, SRQ: srq}},
	} {
		c.attr.Type = verbs.RC
		q, err := a.pd.CreateQP(c.attr)
		require.Nil(t, q)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}

	require.NoError(t, verbs.ActivateUD(a.qp, qkey, 1))
	var none *addressHandle
	for _, ah := range []verbs.AH{nil, none} {
		n, err := a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, AH: ah, RemoteQPN: 1}})
		require.Zero(t, n)
		require.ErrorIs(t, err, verbs.ErrInvalid)
	}

	var mw *memoryWindow
	var mr *memoryRegion
	for _, bind := range []verbs.BindMW{{}, {MW: mw, MR: a.mr}, {MW: mw, MR: mr}} {
		q, _ := pair(t, Options{})
		q.post(t, verbs.SendWR{Opcode: verbs.WRBindMW, Bind: bind})
		require.Equal(t, verbs.WCMWBindErr, q.next(t).Status)
	}
}
