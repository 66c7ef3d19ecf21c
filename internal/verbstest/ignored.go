package verbstest

import (
	"reflect"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// fillUnused sets every field of the struct v that used does not name to a value that would be
// invalid if it were used.
func fillUnused(v reflect.Value, used map[string]bool) {
	for i := range v.NumField() {
		f := v.Field(i)
		if used[v.Type().Field(i).Name] {
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			fillUnused(f, nil)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			f.SetUint(1<<f.Type().Bits() - 1)
		case reflect.Int:
			f.SetInt(-1)
		case reflect.Array:
			for k := range f.Len() {
				f.Index(k).SetUint(0xff)
			}
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 100, 100)) // more than any limit of the queue pair
			for k := range f.Len() {
				if e := f.Index(k); e.Kind() == reflect.Struct {
					fillUnused(e, nil)
				}
			}
		}
	}
}

func names(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range list {
		m[n] = true
	}
	return m
}

// testUnusedFieldsOfRequests checks that fields that an opcode does not use have no effect.
func testUnusedFieldsOfRequests(t *T) {
	common := []string{"WRID", "Opcode", "Flags"}
	remote := []string{"RemoteAddr", "RKey"}
	datagram := []string{"AH", "RemoteQPN", "RemoteQKey"}
	const unknown = verbs.SendFlags(1<<4 | 1<<5 | 1<<6)
	for _, c := range []struct {
		typ    verbs.QPType
		op     verbs.WROpcode
		inline bool
		bytes  int
		used   []string
		flags  verbs.SendFlags // unused ones
	}{
		{verbs.RC, verbs.WRSend, false, 100, []string{"SGList"}, 0},
		{verbs.RC, verbs.WRSend, true, 8, []string{"SGList", "InlineData"}, 0},
		{verbs.RC, verbs.WRSend, false, 0, []string{"SGList"}, 0},
		{verbs.RC, verbs.WRSendWithImm, false, 100, []string{"SGList", "Imm"}, 0},
		{verbs.RC, verbs.WRRDMAWrite, false, 100, append(remote, "SGList"), verbs.SendSolicited},
		{verbs.RC, verbs.WRRDMAWrite, false, 0, []string{"SGList"}, verbs.SendSolicited},
		{verbs.RC, verbs.WRRDMAWriteWithImm, false, 0, []string{"SGList", "Imm"}, 0},
		{verbs.RC, verbs.WRRDMARead, false, 100, append(remote, "SGList"), verbs.SendSolicited},
		{verbs.RC, verbs.WRRDMARead, false, 0, []string{"SGList"}, verbs.SendSolicited},
		{verbs.RC, verbs.WRAtomicCmpSwap, false, 8, append(remote, "SGList", "CompareAdd", "Swap"), verbs.SendSolicited},
		{verbs.RC, verbs.WRAtomicFetchAdd, false, 8, append(remote, "SGList", "CompareAdd"), verbs.SendSolicited},
		{verbs.RC, verbs.WRBindMW, false, 0, []string{"Bind"}, verbs.SendSolicited | verbs.SendInline},
		{verbs.RC, verbs.WRLocalInv, false, 0, []string{"InvKey"}, verbs.SendSolicited | verbs.SendInline},
		{verbs.UC, verbs.WRSend, false, 100, []string{"SGList"}, verbs.SendFence},
		{verbs.UC, verbs.WRRDMAWrite, false, 100, append(remote, "SGList"), verbs.SendSolicited | verbs.SendFence},
		{verbs.UC, verbs.WRRDMAWrite, false, 0, []string{"SGList"}, verbs.SendSolicited | verbs.SendFence},
		{verbs.UC, verbs.WRBindMW, false, 0, []string{"Bind"}, verbs.SendSolicited | verbs.SendInline},
		{verbs.UD, verbs.WRSend, false, 100, append(datagram, "SGList"), verbs.SendFence},
		{verbs.UD, verbs.WRSendWithImm, true, 8, append(datagram, "SGList", "InlineData", "Imm"), verbs.SendFence},
	} {
		name := c.typ.String() + " " + c.op.String()
		if c.bytes == 0 {
			name += " of nothing"
		}
		t.Run(name, func(t *T) {
			a, b := pairOf(t, c.typ)
			window, err := a.pd.AllocMW()
			require.NoError(t, err)
			bindable := a.reg(t, 64, allAccess|verbs.AccessMWBind)
			ah := a.handle(t, b.dev)
			key := window.RKey()
			do := func(unused bool, id uint64) (sent, got verbs.WC) {
				wr := verbs.SendWR{
					WRID: id, Opcode: c.op, Flags: verbs.SendSignaled, Imm: 7, RemoteAddr: b.mr.Addr() + 64, RKey: b.mr.RKey(),
					CompareAdd: 1, Swap: 2, AH: ah, RemoteQPN: b.qp.Num(), RemoteQKey: qkey, InvKey: key,
				}
				if c.op == verbs.WRLocalInv { // of the new binding
					key = verbs.IncRKey(key)
					bind := verbs.SendWR{Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: verbs.BindMW{MW: window, RKey: key, MR: bindable, Addr: bindable.Addr(), Length: 8, Access: verbs.AccessRemote}}
					a.post(t, bind)
					a.poll1(t)
					wr.InvKey = key
				}
				if c.op == verbs.WRBindMW {
					if unused {
						a.post(t, verbs.SendWR{Opcode: verbs.WRLocalInv, InvKey: key})
						a.poll1(t)
					}
					key = verbs.IncRKey(key)
					wr.Bind = verbs.BindMW{MW: window, RKey: key, MR: bindable, Addr: bindable.Addr(), Length: 8, Access: verbs.AccessRemote}
				}
				switch {
				case c.inline:
					wr.Flags |= verbs.SendInline
					wr.InlineData = a.mr.Bytes()[:c.bytes]
				case c.bytes > 0:
					wr.SGList = []verbs.SGE{a.mr.SGE(0, c.bytes)}
				}
				if unused {
					fillUnused(reflect.ValueOf(&wr).Elem(), names(append(common, c.used...)...))
					wr.Flags |= c.flags | unknown
					if c.bytes == 0 && wr.Flags&verbs.SendInline == 0 && names(c.used...)["SGList"] {
						wr.SGList = []verbs.SGE{{Addr: 1, LKey: 0xffffffff}} // 0 bytes need no key
					}
				}
				receives := c.op == verbs.WRSend || c.op == verbs.WRSendWithImm || c.op == verbs.WRRDMAWriteWithImm
				if receives {
					b.recv(t, id, 0, 300)
				}
				fill(a.mr.Bytes()[:100], 1)
				fill(b.mr.Bytes()[64:164], 2)
				n, err := a.qp.PostSend([]verbs.SendWR{wr})
				require.NoError(t, err)
				require.Equal(t, 1, n)
				sent = a.poll1(t)
				if receives {
					got = b.poll1(t)
				} else if c.typ == verbs.UC { // the written data is there when the next message is
					b.recv(t, 0, 0, 0)
					a.post(t, verbs.SendWR{Opcode: verbs.WRSend})
					a.poll1(t)
					b.poll1(t)
				}
				return sent, got
			}
			sent, got := do(false, 1)
			memory := func() (mine, theirs []byte) {
				if c.typ == verbs.UD && !t.device.SameHeaders {
					clear(b.mr.Bytes()[24:26]) // identification of the IPv4 header
					clear(b.mr.Bytes()[30:32]) // its checksum
				}
				return slices.Clone(a.mr.Bytes()[:200]), slices.Clone(b.mr.Bytes()[:400])
			}
			mine, theirs := memory()
			sentToo, gotToo := do(true, 1)
			mineToo, theirsToo := memory()
			require.Equal(t, sent, sentToo)
			require.Equal(t, got, gotToo)
			require.Equal(t, mine, mineToo)
			require.Equal(t, theirs, theirsToo)
		})
	}
}

// testUnusedRequestFieldsOfDatagramRDMA checks the same for RDMA between UD queue pairs.
func testUnusedRequestFieldsOfDatagramRDMA(t *T) {
	for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicCmpSwap, verbs.WRAtomicFetchAdd} {
		t.Run(op.String(), func(t *T) {
			a, b := newEndOf(t, verbs.UD), newEndOf(t, verbs.UD)
			for _, e := range []*end{a, b} {
				e.qp = e.newQPWith(t, verbs.QPInitAttr{Type: verbs.UD, MaxDatagramRDMA: 4})
				require.NoError(t, verbs.ActivateUD(e.qp, qkey, 1))
			}
			to := connectPeers(t, a, b)
			wr := verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, AH: to, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(), SGList: []verbs.SGE{a.mr.SGE(0, 8)}}
			fillUnused(reflect.ValueOf(&wr).Elem(), names("Opcode", "Flags", "AH", "RemoteAddr", "RKey", "SGList"))
			wr.WRID = 3
			a.post(t, wr)
			wc := a.poll1(t)
			require.EqualValues(t, 3, wc.WRID)
			require.EqualValues(t, 8, wc.ByteLen)
		})
	}
}

// attrFields are the fields of verbs.QPAttr by their mask bit.
var attrFields = map[verbs.QPAttrMask]string{
	verbs.AttrState: "State", verbs.AttrCurState: "CurState", verbs.AttrEnSQDAsyncNotify: "EnSQDAsyncNotify",
	verbs.AttrAccessFlags: "AccessFlags", verbs.AttrPKeyIndex: "PKeyIndex", verbs.AttrPort: "PortNum", verbs.AttrQKey: "QKey",
	verbs.AttrAV: "AV", verbs.AttrPathMTU: "PathMTU", verbs.AttrTimeout: "Timeout", verbs.AttrRetryCnt: "RetryCnt",
	verbs.AttrRNRRetry: "RNRRetry", verbs.AttrRQPSN: "RQPSN", verbs.AttrMaxQPRdAtomic: "MaxRdAtomic", verbs.AttrMinRNRTimer: "MinRNRTimer",
	verbs.AttrSQPSN: "SQPSN", verbs.AttrMaxDestRdAtomic: "MaxDestRdAtomic", verbs.AttrDestQPN: "DestQPN",
}

// strict is a queue pair whose Modify sets all fields that are not in the mask to invalid values.
type strict struct{ verbs.QP }

func (q strict) Modify(a verbs.QPAttr, mask verbs.QPAttrMask) error {
	used := map[string]bool{}
	for bit, name := range attrFields {
		used[name] = mask&bit != 0
	}
	fillUnused(reflect.ValueOf(&a).Elem(), used)
	return q.QP.Modify(a, mask)
}

// testUnusedAttributes checks that attributes that are not in the mask of Modify have no effect, in
// all transitions of each type of queue pair.
func testUnusedAttributes(t *T) {
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		t.Run(typ.String(), func(t *T) {
			a, b := newEndOf(t, typ), newEndOf(t, typ)
			plain := a.newQP(t, typ)
			bring := func(q verbs.QP) {
				if typ == verbs.UD {
					require.NoError(t, verbs.ActivateUD(q, qkey, 100))
				} else {
					local, err := verbs.LocalEndpoint(a.dev, q, 100)
					require.NoError(t, err)
					remote, err := verbs.LocalEndpoint(b.dev, b.qp, 200)
					require.NoError(t, err)
					require.NoError(t, verbs.Connect(q, local, remote, verbs.ConnectOptions{}))
				}
				for _, s := range []verbs.QPState{verbs.StateSQD, verbs.StateRTS} {
					require.NoError(t, q.Modify(verbs.QPAttr{State: s}, verbs.AttrState))
				}
				require.NoError(t, q.Modify(verbs.QPAttr{}, 0), "nothing at all")
			}
			bring(plain)
			bring(strict{a.qp})
			want, wantInit := plain.Query()
			got, gotInit := a.qp.Query()
			require.Equal(t, want, got)
			require.Equal(t, wantInit, gotInit)
			for _, s := range []verbs.QPState{verbs.StateErr, verbs.StateReset} {
				require.NoError(t, strict{a.qp}.Modify(verbs.QPAttr{State: s}, verbs.AttrState))
			}
		})
	}
}

// testUnusedOptionsOfConnect checks that options for RC have no effect on UC.
func testUnusedOptionsOfConnect(t *T) {
	a, b := newEndOf(t, verbs.UC), newEndOf(t, verbs.UC)
	var o verbs.ConnectOptions
	fillUnused(reflect.ValueOf(&o).Elem(), names("Access", "MTU", "SL", "TrafficClass", "HopLimit", "FlowLabel"))
	o.AckTimeout, o.Retries, o.RNRDelay = 9*time.Hour, 99, -1
	local, err := verbs.LocalEndpoint(a.dev, a.qp, 1)
	require.NoError(t, err)
	remote, err := verbs.LocalEndpoint(b.dev, b.qp, 2)
	require.NoError(t, err)
	remote.RdAtomic = 1
	require.NoError(t, verbs.Connect(a.qp, local, remote, o))
	got, _ := a.qp.Query()
	require.Zero(t, got.Timeout)
}

// testUnusedSizes checks that with a shared receive queue the sizes of the own queue have no
// effect.
func testUnusedSizes(t *T) {
	e := newEnd(t)
	queue, err := e.pd.CreateSRQ(verbs.SRQInitAttr{MaxWR: 1, MaxSGE: 1})
	require.NoError(t, err)
	for _, typ := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		for _, n := range []int{0, 1 << 30, -1} {
			q, err := e.pd.CreateQP(verbs.QPInitAttr{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, SRQ: queue,
				Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1, MaxRecvWR: n, MaxRecvSGE: n}})
			require.NoError(t, err)
			require.NoError(t, q.Close())
		}
	}
	require.NoError(t, queue.Modify(verbs.SRQAttr{MaxWR: 5, MaxSGE: -1, Limit: -1}, verbs.SRQMaxWR))
	require.NoError(t, queue.Modify(verbs.SRQAttr{MaxWR: -1, MaxSGE: 1 << 30, Limit: 2}, verbs.SRQLimit))
	got, err := queue.Query()
	require.NoError(t, err)
	require.Equal(t, verbs.SRQAttr{MaxWR: 5, MaxSGE: 1, Limit: 2}, got)
}

// testOptionalAccess checks that optional access flags are ignored.
func testOptionalAccess(t *T) {
	e := newEnd(t)
	mr, err := e.pd.RegMR(make([]byte, 8), verbs.AccessLocalWrite|verbs.AccessOptional)
	require.NoError(t, err)
	require.Equal(t, verbs.AccessLocalWrite, mr.Access())
	_, err = e.pd.RegMR(make([]byte, 8), 1<<10)
	require.ErrorIs(t, err, verbs.ErrInvalid)
}
