package scenario

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// device is an adapter with what every script needs.
type device struct {
	*sim.Device
	pd     verbs.PD
	cq     verbs.CQ
	events []verbs.AsyncEvent // not yet expected
}

// region is a registered region.
type region struct {
	verbs.MR
	dev *device
}

type window struct {
	verbs.MW
	dev *device
}

type srq struct {
	verbs.SRQ
	dev *device
}

// qp is a queue pair.
type qp struct {
	verbs.QP
	name string
	dev  *device
	peer *qp // RC, UC
	qkey uint32
	wcs  []verbs.WC // not yet expected
}

const (
	regionSize = 64 << 10
	queueSize  = 128
	everything = verbs.AccessLocalWrite | verbs.AccessRemote | verbs.AccessMWBind
)

func (r *runner) device(w *words) error {
	name := w.name()
	link := memory.Options{
		NoGSO: true, NoGRO: true, // one packet a datagram, as most networks have it
		RecvBuffer: w.size("buffer", 0),
	}
	if t := w.text("delay", "", ""); t != "" {
		link.Delay = w.duration(t)
	}
	size := w.size("mem", regionSize)
	access := w.access("", everything)
	if err := w.done(); err != nil {
		return err
	}
	if r.devices[name] != nil || strings.Contains(name, ".") {
		return fmt.Errorf("%s cannot be the name of a new device", name)
	}
	dev, err := r.sim.AddDevice(sim.DeviceOptions{Name: name, Link: link, OneByOne: true})
	if err != nil {
		return err
	}
	d := &device{Device: dev}
	if d.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	if d.cq, err = dev.CreateCQ(4096); err != nil {
		return err
	}
	r.devices[name] = d
	dev.App = func() { r.poll(d) }
	return r.register(name, d, size, access)
}

// poll takes completions and events and notes them in the trace.
func (r *runner) poll(d *device) {
	var wc [1]verbs.WC
	for {
		n, err := d.cq.Poll(wc[:])
		if n == 0 || err != nil {
			break
		}
		r.trace.Completion(d.Device, wc[0])
		for _, q := range r.qps {
			if q.dev == d && q.Num() == wc[0].QPN {
				q.wcs = append(q.wcs, wc[0])
			}
		}
	}
	for _, ev := range d.Events() {
		r.trace.Note(d.Device, "event "+ev.Type.String())
		d.events = append(d.events, ev)
	}
}

func (r *runner) region(w *words) error {
	name := w.name()
	d := lookup(w, "device", r.devices, w.text("on", "", ""))
	size := w.size("len", regionSize)
	access := w.access("", everything)
	if err := w.done(); err != nil {
		return err
	}
	return r.register(name, d, size, access)
}

// register makes a region that counts from address 0 and fills it.
func (r *runner) register(name string, d *device, size int, access verbs.AccessFlags) error {
	buf := make([]byte, size)
	for i := range buf {
		buf[i] = pattern(name, i)
	}
	mr, err := d.pd.RegMR(buf, access|verbs.AccessZeroBased)
	if err != nil {
		return refusal{err}
	}
	r.regions[name] = &region{mr, d}
	if mr.RKey() != 0 {
		r.trace.NameKey(d.Device, mr.RKey(), name)
	}
	return nil
}

// pattern is what byte i of a region holds at first. It has no short period,
// and differs from region to region.
func pattern(name string, i int) byte {
	h := uint32(name[0])<<16 + uint32(i)
	h *= 0x9E3779B1
	return byte(h >> 24)
}

func (r *runner) window(w *words) error {
	name := w.name()
	d := lookup(w, "device", r.devices, w.text("on", "", ""))
	if err := w.done(); err != nil {
		return err
	}
	mw, err := d.pd.AllocMW()
	if err != nil {
		return refusal{err}
	}
	r.windows[name] = &window{mw, d}
	return nil
}

func (r *runner) srq(w *words) error {
	name := w.name()
	d := lookup(w, "device", r.devices, w.text("on", "", ""))
	attr := verbs.SRQInitAttr{MaxWR: w.size("max", queueSize), MaxSGE: 4, Limit: w.size("limit", 0)}
	if err := w.done(); err != nil {
		return err
	}
	q, err := d.pd.CreateSRQ(attr)
	if err != nil {
		return refusal{err}
	}
	r.srqs[name] = &srq{q, d}
	return nil
}

// create makes a queue pair; its name begins with that of its device.
func (r *runner) create(name string, typ verbs.QPType, w *words) (*qp, error) {
	if r.qps[name] != nil {
		return nil, fmt.Errorf("%s is there already", name)
	}
	owner, _, _ := strings.Cut(name, ".")
	d := lookup(w, "device", r.devices, owner)
	if w.err != nil {
		return nil, w.err
	}
	init := verbs.QPInitAttr{
		Type: typ, SendCQ: d.cq, RecvCQ: d.cq, SelectiveSignaling: true,
		NoCredits: w.text("credits", name, "on") == "off",
		Cap: verbs.QPCap{
			MaxSendWR: int(w.number("send_wr", name, queueSize)), MaxRecvWR: int(w.number("recv_wr", name, queueSize)),
			MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 256,
		},
	}
	if s := w.text("srq", name, ""); s != "" {
		init.SRQ = lookup(w, "SRQ", r.srqs, s).SRQ
	}
	made, err := d.pd.CreateQP(init)
	if err != nil {
		return nil, refusal{err}
	}
	q := &qp{QP: made, name: name, dev: d}
	r.qps[name] = q
	r.trace.NameQP(d.Device, made.Num(), name)
	return q, nil
}

func (r *runner) connect(w *words) error {
	typ := verbs.RC
	if t := w.name(); t == "uc" {
		typ = verbs.UC
	} else if t != "rc" {
		return fmt.Errorf("%s is no type of connection; want rc or uc", t)
	}
	var ends [2]sim.End
	var qps [2]*qp
	known := w.flag("known")
	for i := range ends {
		name := w.name()
		q, err := r.create(name, typ, w)
		if err != nil {
			return err
		}
		qps[i] = q
		o := verbs.ConnectOptions{
			Timeout: w.code("timeout", name), RetryCnt: w.code("retry", name), RNRRetry: w.code("rnr", name),
			MinRNRTimer: w.code("min_rnr", name), MaxRdAtomic: w.code("rd", name), MaxDestRdAtomic: w.code("dest_rd", name),
			Access: w.access(name, verbs.AccessRemote),
		}
		if o.Access == 0 {
			o.Access = verbs.Zero
		}
		if t := w.text("mtu", name, "1024"); o.MTU.UnmarshalText([]byte(t)) != nil {
			return fmt.Errorf("%s is no MTU", t)
		}
		ends[i] = sim.End{Device: q.dev.Device, QP: q.QP, PSN: uint32(w.number("psn", name, 0)), Options: o, Stranger: !known}
	}
	qps[0].peer, qps[1].peer = qps[1], qps[0]
	if err := w.done(); err != nil {
		return err
	}
	return r.sim.Connect(ends[0], ends[1])
}

func (r *runner) datagrams(w *words) error {
	name := w.name()
	q, err := r.create(name, verbs.UD, w)
	if err != nil {
		return err
	}
	q.qkey = uint32(w.number("qkey", name, 0x11))
	psn := uint32(w.number("psn", name, 0))
	if err := w.done(); err != nil {
		return err
	}
	return verbs.ActivateUD(q.QP, q.qkey, psn)
}
