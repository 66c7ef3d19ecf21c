package peer

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Program is a Python program that implements a Side on a Linux host. Run it with an address and
// a port to listen on; it prints a line when it listens.
//
//go:embed rxe.py
var Program []byte

// replyTimeout is the time for a reply beyond that in the request.
const replyTimeout = time.Minute

// Linux is a Side on a Linux host.
type Linux struct {
	conn    net.Conn
	replies *bufio.Reader
	opened  openReply
	psns    []uint32
}

// openReply is the reply to an open request.
type openReply struct {
	GID  verbs.GID `json:"gid"`
	QPNs []uint32  `json:"qpns"`
	Addr uint64    `json:"addr"`
	LKey uint32    `json:"lkey"`
	RKey uint32    `json:"rkey"`
}

// A request is a message to the program. Its fields depend on the operation, "do".
type request map[string]any

// DialLinux creates a Side at the host where Program listens on addr. Its queue pairs use the
// given entry of the device's GID table.
func DialLinux(addr, device string, gidIndex int, o Options) (*Linux, error) {
	o = o.withDefaults()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &Linux{conn: conn, replies: bufio.NewReader(conn)}
	err = l.roundTrip(request{"do": "open", "dev": device, "gid_index": gidIndex, "type": o.Type, "qps": o.QPs, "memory": o.Memory,
		"access": o.Access, "qp_access": o.QPAccess, "qkey": qkey, "srq": o.SRQ, "cq_depth": cqDepth,
		"send_depth": o.SendDepth, "recv_depth": o.RecvDepth}, 0, &l.opened)
	if err != nil {
		conn.Close()
		return nil, err
	}
	for range o.QPs {
		l.psns = append(l.psns, rand.Uint32N(1<<24))
	}
	return l, nil
}

// roundTrip sends a request and reads the reply.
func (l *Linux) roundTrip(r request, within time.Duration, reply any) error {
	fail := func(err error) error { return fmt.Errorf("rxe: %s: %w", r["do"], err) }
	text, err := json.Marshal(r)
	if err != nil {
		return fail(err)
	}
	if err := l.conn.SetDeadline(time.Now().Add(within + replyTimeout)); err != nil {
		return fail(err)
	}
	if _, err := l.conn.Write(append(text, '\n')); err != nil {
		return fail(err)
	}
	line, err := l.replies.ReadBytes('\n')
	if err != nil {
		return fail(err)
	}
	var envelope struct {
		OK    json.RawMessage `json:"ok"`
		Error string          `json:"error"`
	}
	if err := json.Unmarshal(line, &envelope); err != nil {
		return fail(err)
	}
	if envelope.Error != "" {
		return fail(errors.New(envelope.Error))
	}
	if reply != nil {
		if err := json.Unmarshal(envelope.OK, reply); err != nil {
			return fail(err)
		}
	}
	return nil
}

// Name returns "rxe".
func (l *Linux) Name() string { return "rxe" }

// Endpoint implements Side.
func (l *Linux) Endpoint(qp int) verbs.Endpoint {
	return verbs.Endpoint{GID: l.opened.GID, QPN: l.opened.QPNs[qp], PSN: l.psns[qp]}
}

// Connect implements Side.
func (l *Linux) Connect(qp int, to verbs.Endpoint, o verbs.ConnectOptions) error {
	a, err := o.QPAttr(verbs.RC)
	if err != nil {
		return err
	}
	return l.roundTrip(request{"do": "connect", "qp": qp, "gid": to.GID, "qpn": to.QPN, "rq_psn": to.PSN, "sq_psn": l.psns[qp], "qkey": qkey,
		"mtu": uint8(o.MTU), "timeout": a.Timeout, "retry_cnt": a.RetryCnt, "rnr_retry": a.RNRRetry,
		"min_rnr_timer": a.MinRNRTimer, "max_rd_atomic": a.MaxRdAtomic, "max_dest_rd_atomic": a.MaxDestRdAtomic}, 0, nil)
}

func encodeSGEs(sges []verbs.SGE) [][3]uint64 {
	l := make([][3]uint64, 0, len(sges))
	for _, s := range sges {
		l = append(l, [3]uint64{s.Addr, uint64(s.Length), uint64(s.LKey)})
	}
	return l
}

// PostRecv implements Side.
func (l *Linux) PostRecv(qp int, id uint64, sges []verbs.SGE) error {
	return l.roundTrip(request{"do": "recv", "qp": qp, "id": id, "sges": encodeSGEs(sges)}, 0, nil)
}

// PostSend implements Side.
func (l *Linux) PostSend(qp int, wr verbs.SendWR) error {
	r := request{"do": "send", "qp": qp, "id": wr.WRID, "opcode": wr.Opcode, "flags": ibvSendFlags(wr.Flags), "sges": encodeSGEs(wr.SGList), "imm": wr.Imm, "inv": wr.InvKey,
		"remote": wr.RemoteAddr, "rkey": wr.RKey, "compare_add": wr.CompareAdd, "swap": wr.Swap}
	return l.roundTrip(r, 0, nil)
}

// ibvSendFlags converts flags to the bit order of libibverbs.
func ibvSendFlags(f verbs.SendFlags) (flags int) {
	for i, bit := range []verbs.SendFlags{verbs.SendFence, verbs.SendSignaled, verbs.SendSolicited, verbs.SendInline} {
		if f&bit != 0 {
			flags |= 1 << i
		}
	}
	return flags
}

// Poll implements Side.
func (l *Linux) Poll(n int, within time.Duration) ([]verbs.WC, error) {
	var got []struct {
		ID     uint64 `json:"id"`
		Status verbs.WCStatus
		Opcode verbs.WCOpcode
		Bytes  uint32
		Flags  verbs.WCFlags
		Imm    uint32
		QPN    uint32
		Src    uint32
	}
	if err := l.roundTrip(request{"do": "poll", "n": n, "seconds": within.Seconds()}, within, &got); err != nil {
		return nil, err
	}
	wcs := make([]verbs.WC, 0, n)
	for _, g := range got {
		wcs = append(wcs, verbs.WC{WRID: g.ID, Status: g.Status, Opcode: g.Opcode, ByteLen: g.Bytes, Flags: g.Flags, Imm: g.Imm, QPN: g.QPN, SrcQPN: g.Src})
	}
	return wcs, nil
}

// Arm implements Side.
func (l *Linux) Arm(solicited bool) error {
	return l.roundTrip(request{"do": "arm", "solicited": solicited}, 0, nil)
}

// Event implements Side.
func (l *Linux) Event(within time.Duration) (arrived bool, err error) {
	err = l.roundTrip(request{"do": "event", "seconds": within.Seconds()}, within, &arrived)
	return arrived, err
}

// Limit implements Side.
func (l *Linux) Limit(n int) error { return l.roundTrip(request{"do": "limit", "limit": n}, 0, nil) }

// AsyncEvent implements Side.
func (l *Linux) AsyncEvent(within time.Duration) (verbs.EventType, bool, error) {
	var kind int
	if err := l.roundTrip(request{"do": "async_event", "seconds": within.Seconds()}, within, &kind); err != nil || kind < 0 {
		return 0, false, err
	}
	return verbs.EventType(kind), true, nil
}

// Fail implements Side.
func (l *Linux) Fail(qp int) error { return l.roundTrip(request{"do": "fail", "qp": qp}, 0, nil) }

// State implements Side.
func (l *Linux) State(qp int) (s verbs.QPState, err error) {
	err = l.roundTrip(request{"do": "state", "qp": qp}, 0, &s)
	return s, err
}

// SGE implements Side.
func (l *Linux) SGE(off, n int) []verbs.SGE {
	return []verbs.SGE{{Addr: l.Addr(off), Length: uint32(n), LKey: l.opened.LKey}}
}

// Addr implements Side.
func (l *Linux) Addr(off int) uint64 { return l.opened.Addr + uint64(off) }

// RKey implements Side.
func (l *Linux) RKey() uint32 { return l.opened.RKey }

// Fill implements Side.
func (l *Linux) Fill(off, n int, seed uint32) error {
	return l.roundTrip(request{"do": "fill", "off": off, "n": n, "seed": seed}, 0, nil)
}

// Sum implements Side.
func (l *Linux) Sum(off, n int) (sum uint32, err error) {
	err = l.roundTrip(request{"do": "sum", "off": off, "n": n}, 0, &sum)
	return sum, err
}

// Put implements Side.
func (l *Linux) Put(off int, data []byte) error {
	return l.roundTrip(request{"do": "put", "off": off, "data": base64.StdEncoding.EncodeToString(data)}, 0, nil)
}

// Get implements Side.
func (l *Linux) Get(off, n int) (data []byte, err error) {
	err = l.roundTrip(request{"do": "get", "off": off, "n": n}, 0, &data) // encoding/json encodes bytes in base64
	return data, err
}

// Close closes the connection. It is idempotent.
func (l *Linux) Close() error {
	if err := l.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
