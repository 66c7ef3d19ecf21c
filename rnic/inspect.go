package rnic

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire"
)

// A Snapshot is the state of a device and its objects with their counters, at
// one moment. Its JSON names are stable.
type Snapshot struct {
	Device    DeviceInfo   `json:"device"`
	Now       int64        `json:"now_ns"`     // on the device's clock, as in histories
	Counters  Counters     `json:"counters"`   // the device's own, and the sums over all queue pairs
	ClosedQPs QPCounters   `json:"closed_qps"` // the part of closed queue pairs
	Link      LinkCounters `json:"link_counters"`
	Faults    *FaultInfo   `json:"faults,omitempty"` // once fault injection was used
	Drops     []DropInfo   `json:"drops"`            // every reason, also with a count of 0
	Objects   []ObjectInfo `json:"objects"`
	QPs       []QPInfo     `json:"qps"` // by number
	CQs       []CQInfo     `json:"cqs"` // by number
	Layers    []LayerInfo  `json:"layers,omitempty"`
}

// DeviceInfo describes an open device.
type DeviceInfo struct {
	Name         string   `json:"name"`
	Addr         string   `json:"addr"` // IP address and UDP port
	GID          string   `json:"gid"`
	FWVer        string   `json:"fw_ver"`
	State        string   `json:"state"`         // of the port, "PORT_ACTIVE"
	ActiveMTU    int      `json:"active_mtu"`    // RoCE path MTU, bytes of payload
	InterfaceMTU int      `json:"interface_mtu"` // bytes, 0 if unknown
	Shards       int      `json:"shards"`        // sockets with their engines
	Service      bool     `json:"service"`       // there is a service goroutine
	Link         LinkInfo `json:"link"`          // of the first shard
	Limits       Limits   `json:"limits"`        // of a queue pair; those of objects are in ObjectInfo
}

// LinkInfo describes the socket: its accelerations and effective buffer sizes.
type LinkInfo struct {
	Name       string `json:"name"` // "udp-linux", "udp-portable", "memory"
	GSO        bool   `json:"gso"`
	GRO        bool   `json:"gro"`
	MMsg       bool   `json:"mmsg"`
	RecvBuffer int    `json:"recv_buffer"` // bytes
	SendBuffer int    `json:"send_buffer"` // bytes
}

// Limits are the limits of one queue or request.
type Limits struct {
	MaxQPWR       int    `json:"max_qp_wr"`
	MaxSGE        int    `json:"max_sge"`
	MaxCQE        int    `json:"max_cqe"`
	MaxInlineData int    `json:"max_inline_data"` // bytes
	MaxQPRdAtom   int    `json:"max_qp_rd_atom"`
	MaxMsgSize    uint32 `json:"max_msg_sz"` // bytes
}

// FaultInfo describes the injected faults and their effects.
type FaultInfo struct {
	Spec     string        `json:"spec"` // as for SetImpair; "" after the faults have ended
	Held     int           `json:"held"` // packets delayed at present
	Counters FaultCounters `json:"counters"`
	Rules    []RuleInfo    `json:"rules,omitempty"`
}

// RuleInfo counts the packets of one fault rule.
type RuleInfo struct {
	Rule    string `json:"rule"`
	Matched uint64 `json:"matched"` // packets that match the rule
	Applied uint64 `json:"applied"` // matching packets that the rule was applied to
}

// DropInfo is the number of packets dropped for a reason.
type DropInfo struct {
	Reason      string `json:"reason"` // wire.Drop's name
	Packets     uint64 `json:"packets"`
	Description string `json:"description"` // a sentence
}

// ObjectInfo is the number of objects of a kind.
type ObjectInfo struct {
	Kind  string `json:"kind"` // "pd", "cq", "qp", "srq", "mr", "mw", "ah"
	InUse int    `json:"in_use"`
	Max   int    `json:"max"`
}

// QPInfo describes a queue pair.
type QPInfo struct {
	Num         uint32     `json:"qpn"`
	Type        string     `json:"type"`
	State       string     `json:"state"`
	Peer        string     `json:"peer,omitempty"`     // IP address and UDP port, if connected
	DestQPN     uint32     `json:"dest_qpn,omitempty"` // if connected
	PathMTU     int        `json:"path_mtu,omitempty"` // bytes, if connected
	Link        string     `json:"link"`               // "shm" or "udp": the way to the peer, if connected
	SQPSN       uint32     `json:"sq_psn"`             // of the next packet sent
	RQPSN       uint32     `json:"rq_psn"`             // of the next packet expected
	SendQueued  int        `json:"send_queued"`        // requests not complete
	SendMax     int        `json:"send_max"`           // requests the queue holds
	RecvQueued  int        `json:"recv_queued"`        // receives posted; 0 with a shared receive queue
	RecvMax     int        `json:"recv_max"`           // receives the queue holds
	SharedQueue bool       `json:"srq,omitempty"`      // receives come from a shared receive queue
	SendCQ      uint32     `json:"send_cqn"`           // CQInfo.Num
	RecvCQ      uint32     `json:"recv_cqn"`           // CQInfo.Num
	Counters    QPCounters `json:"counters"`
	History     []Record   `json:"history,omitempty"` // flight recorder, oldest first; see Device.Inspect
}

// Record is one entry of a queue pair's flight recorder.
type Record struct {
	At   int64  `json:"at_ns"` // on the device's clock
	Text string `json:"text"`  // "-> RC_SEND_ONLY psn 7", "<- RC_ACKNOWLEDGE psn 7 ACK", "state RTS"
}

// CQInfo describes a completion queue.
type CQInfo struct {
	Num     uint32 `json:"cqn"` // counted from 1 by device
	Depth   int    `json:"depth"`
	Used    int    `json:"used"`  // completions waiting
	Armed   string `json:"armed"` // "no", "solicited", "any"
	Overrun bool   `json:"overrun,omitempty"`
	Users   int    `json:"users"` // send and receive queues that report to it

	Unsignaled uint64 `json:"unsignaled,omitempty"` // requests of its queue pairs that succeeded without a completion
	Hint       string `json:"hint,omitempty"`       // why no completion was possible during a wait
}

// kindNames are the names of the kinds in a snapshot, as in rdma-resource(8).
var kindNames = [kinds]string{"pd", "cq", "qp", "srq", "mr", "mw", "ah"}

// Inspect returns a snapshot of the device. It visits one queue pair after the
// other, so it does not stop the engine. The flight recorder is included for
// failed queue pairs; InspectQP returns it for any.
func (d *Device) Inspect() Snapshot {
	s := Snapshot{Device: d.info(), Now: int64(d.now()), Drops: d.dropInfo(), Objects: d.objects(), CQs: d.inspectCQs()}
	s.QPs, s.ClosedQPs = d.inspectQPs()
	for _, q := range s.QPs {
		if i, ok := slices.BinarySearchFunc(s.CQs, q.SendCQ, func(c CQInfo, n uint32) int { return cmp.Compare(c.Num, n) }); ok {
			s.CQs[i].Unsignaled += q.Counters.Unsignaled
		}
	}
	s.Counters = d.deviceCounters(s.ClosedQPs)
	for i := range s.QPs {
		counters.Add(&s.Counters.QPCounters, s.QPs[i].Counters)
	}
	s.Link, s.Faults, s.Layers = d.linkCounters(), d.faultInfo(), d.layers.inspect()
	return s
}

// InspectQP describes one queue pair with its flight recorder, and reports
// whether it exists.
func (d *Device) InspectQP(num uint32) (QPInfo, bool) {
	q := d.qps.lookup(num)
	if q == nil {
		return QPInfo{}, false
	}
	return q.info(true)
}

func (d *Device) info() DeviceInfo {
	attr := d.QueryDevice()
	port, _ := d.QueryPort(1)
	caps := d.shards[0].socket.Caps()
	return DeviceInfo{
		Name: d.name, Addr: d.addr.String(), GID: verbs.GIDFromAddr(d.addr.Addr()).String(), FWVer: attr.FWVer,
		State: port.State.String(), ActiveMTU: port.ActiveMTU.Bytes(), InterfaceMTU: d.port.state.Load().MTU,
		Shards: len(d.shards), Service: !d.options.NoService,
		Link: LinkInfo{Name: caps.Name, GSO: caps.GSO, GRO: caps.GRO, MMsg: caps.MMsg, RecvBuffer: caps.RecvBuffer, SendBuffer: caps.SendBuffer},
		Limits: Limits{
			MaxQPWR: attr.MaxQPWR, MaxSGE: attr.MaxSGE, MaxCQE: attr.MaxCQE, MaxInlineData: attr.MaxInlineData,
			MaxQPRdAtom: attr.MaxQPRdAtom, MaxMsgSize: port.MaxMsgSize,
		},
	}
}

func (d *Device) dropInfo() []DropInfo {
	list := make([]DropInfo, 0, wire.NumDrops-1)
	for r := wire.Drop(1); r < wire.NumDrops; r++ {
		list = append(list, DropInfo{Reason: r.String(), Packets: d.drops.n[r].Load(), Description: r.Description()})
	}
	return list
}

func (d *Device) objects() []ObjectInfo {
	list := make([]ObjectInfo, kinds)
	for k := range kinds {
		list[k] = ObjectInfo{Kind: kindNames[k], InUse: d.quota.inUse(k), Max: int(d.quota.max[k])}
	}
	return list
}

func (d *Device) inspectCQs() []CQInfo {
	d.mu.Lock()
	list := make([]CQInfo, 0, len(d.cqs))
	for c := range d.cqs {
		list = append(list, c.info())
	}
	d.mu.Unlock()
	slices.SortFunc(list, func(a, b CQInfo) int { return cmp.Compare(a.Num, b.Num) })
	return list
}

func (c *completionQueue) info() CQInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	armed := [...]string{disarmed: "no", armedSolicited: "solicited", armedAny: "any"}
	i := CQInfo{Num: c.num, Depth: c.depth, Used: c.queued.Len(), Armed: armed[c.armed], Overrun: c.overrun, Users: c.users}
	if cause := c.hint.Load(); cause != nil {
		i.Hint = *cause
	}
	return i
}

// inspectQPs describes the live queue pairs and sums the counters of the
// closed ones. A queue pair closed meanwhile counts once, because a
// falling sum would look like a restart of the device; this is given up after 8
// attempts.
func (d *Device) inspectQPs() (list []QPInfo, closed QPCounters) {
	const looks = 8
	for range looks {
		before := d.retired.sum()
		list = []QPInfo{}
		d.qps.forEach(func(q *queuePair) {
			if info, ok := q.info(false); ok {
				list = append(list, info)
			}
		})
		d.quiesceShards() // removed queue pairs have added their counters to retired
		after := d.retired.sum()
		closed = after
		if after == before {
			break
		}
	}
	slices.SortFunc(list, func(a, b QPInfo) int { return cmp.Compare(a.Num, b.Num) })
	return list, closed
}

// info describes the queue pair, and reports false if it is closed. The
// flight recorder is included if history is set or the queue pair has failed.
func (q *queuePair) info(history bool) (QPInfo, bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.closed {
		return QPInfo{}, false
	}
	c := q.core
	attr, size := c.Query(), c.Cap()
	i := QPInfo{
		Num: q.num, Type: c.Type().String(), State: attr.State.String(), SQPSN: attr.SQPSN, RQPSN: attr.RQPSN,
		SendMax: size.MaxSendWR, RecvMax: size.MaxRecvWR, SharedQueue: q.srq != nil,
		SendCQ: q.sendCQ.num, RecvCQ: q.recvCQ.num, Counters: QPCounters(c.Counters()),
	}
	i.SendQueued, i.RecvQueued = c.Queued()
	if peer := c.PeerPath().Dst; peer.IsValid() {
		i.Peer, i.DestQPN, i.PathMTU = peer.String(), attr.DestQPN, attr.PathMTU.Bytes()
		i.Link = routeOf(q.shard.socket, peer, attr.DestQPN)
	}
	if history || attr.State == verbs.StateErr || attr.State == verbs.StateSQE {
		i.History = q.records()
	}
	return i, true
}

// routeOf returns the name of the way of a link to a queue pair of a peer, or "" on other links than
// sockets and shared memory.
func routeOf(c link.Conn, peer netip.AddrPort, qpn uint32) string {
	if r, ok := c.(interface {
		Route(dst netip.AddrPort, qpn uint32) string
	}); ok {
		return r.Route(peer, qpn)
	}
	if strings.HasPrefix(c.Caps().Name, "udp") {
		return "udp"
	}
	return ""
}

// records returns the flight recorder. The shard's lock is held.
func (q *queuePair) records() []Record {
	var list []Record
	for _, r := range q.core.Records() {
		list = append(list, Record{At: int64(r.At), Text: r.Text})
	}
	return list
}

// linkCounters returns the sums of the socket counters.
func (d *Device) linkCounters() LinkCounters {
	var sum LinkCounters
	for _, sh := range d.shards {
		counters.Add(&sum, link.StatsOf(sh.socket))
	}
	return sum
}

// faultInfo returns the sums over all shards, or nil if faults were never
// injected.
func (d *Device) faultInfo() *FaultInfo {
	var info *FaultInfo
	for _, sh := range d.shards {
		faults := sh.faults.Load()
		if faults == nil {
			continue
		}
		if info == nil {
			info = &FaultInfo{Spec: faults.Spec().String()}
		}
		c := faults.Counts()
		info.Held += c.Held
		counters.Add(&info.Counters, faultCountersOf(c))
		for i, r := range c.Rules {
			if i == len(info.Rules) {
				info.Rules = append(info.Rules, RuleInfo{Rule: r.Rule.String()})
			}
			info.Rules[i].Matched += r.Matched
			info.Rules[i].Applied += r.Applied
		}
	}
	return info
}

func faultCountersOf(c impair.Counts) FaultCounters {
	return FaultCounters{
		Lost: c.Lost, Dropped: c.Dropped, Overflow: c.Overflow, Duplicated: c.Duplicated,
		Corrupted: c.Corrupted, Delayed: c.Delayed, Reordered: c.Reordered, Marked: c.Marked,
	}
}
