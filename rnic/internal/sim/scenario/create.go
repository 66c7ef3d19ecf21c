package scenario

import (
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/link/memory"
	"github.com/softrnic/softrnic/rnic/internal/sim"
	"github.com/softrnic/softrnic/verbs"
)

// A device is an adapter with the objects that every script needs.
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
	everything = verbs.AccessLocalWrite | verbs.AccessRemote | verbs.AccessFlushGlobal | verbs.AccessMWBind
)

func (r *runner) createDevice(w *arguments) error {
	name := w.nextName()
	link := memory.Options{
		NoGSO: true, NoGRO: true, // one packet a datagram, as most networks have it
		RecvBuffer: w.sizeOption("buffer", 0),
	}
	if t := w.option("delay", "", ""); t != "" {
		link.Delay = w.parseDuration(t)
	}
	size := w.sizeOption("mem", regionSize)
	access := w.accessOption("", everything)
	if err := w.finish(); err != nil {
		return err
	}
	if r.devices[name] != nil || strings.Contains(name, ".") {
		return fmt.Errorf("%s: not valid as the name of a new device", name)
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
	dev.App = func() { r.pollDevice(d) }
	return r.registerRegion(name, d, size, access)
}

// pollDevice polls completions and events and notes them in the trace.
func (r *runner) pollDevice(d *device) {
	var wc [1]verbs.WC
	for {
		n, err := d.cq.Poll(wc[:])
		if n == 0 || err != nil {
			break
		}
		r.trace.NoteCompletion(d.Device, wc[0])
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

func (r *runner) createRegion(w *arguments) error {
	name := w.nextName()
	d := lookup(w, "device", r.devices, w.option("on", "", ""))
	size := w.sizeOption("len", regionSize)
	access := w.accessOption("", everything)
	if err := w.finish(); err != nil {
		return err
	}
	return r.registerRegion(name, d, size, access)
}

// registerRegion makes a region that counts from address 0 and fills it.
func (r *runner) registerRegion(name string, d *device, size int, access verbs.AccessFlags) error {
	buf := make([]byte, size)
	for i := range buf {
		buf[i] = pattern(name, i)
	}
	mr, err := d.pd.RegMR(buf, access|verbs.AccessZeroBased)
	if err != nil {
		return adapterError{err}
	}
	r.regions[name] = &region{mr, d}
	if mr.RKey() != 0 {
		r.trace.NameKey(d.Device, mr.RKey(), name)
	}
	return nil
}

// pattern returns the initial value of byte i of a region. It has no short
// period, so that misplaced data is detected.
func pattern(name string, i int) byte {
	h := uint32(name[0])<<16 + uint32(i)
	h *= 0x9E3779B1
	return byte(h >> 24)
}

func (r *runner) createWindow(w *arguments) error {
	name := w.nextName()
	d := lookup(w, "device", r.devices, w.option("on", "", ""))
	if err := w.finish(); err != nil {
		return err
	}
	mw, err := d.pd.AllocMW()
	if err != nil {
		return adapterError{err}
	}
	r.windows[name] = &window{mw, d}
	return nil
}

func (r *runner) createSRQ(w *arguments) error {
	name := w.nextName()
	d := lookup(w, "device", r.devices, w.option("on", "", ""))
	attr := verbs.SRQInitAttr{MaxWR: w.sizeOption("max", queueSize), MaxSGE: 4, Limit: w.sizeOption("limit", 0)}
	if err := w.finish(); err != nil {
		return err
	}
	q, err := d.pd.CreateSRQ(attr)
	if err != nil {
		return adapterError{err}
	}
	r.srqs[name] = &srq{q, d}
	return nil
}

// createQP makes a queue pair; its name begins with that of its device.
func (r *runner) createQP(name string, typ verbs.QPType, w *arguments) (*qp, error) {
	if r.qps[name] != nil {
		return nil, fmt.Errorf("%s exists already", name)
	}
	owner, _, _ := strings.Cut(name, ".")
	d := lookup(w, "device", r.devices, owner)
	if w.err != nil {
		return nil, w.err
	}
	init := verbs.QPInitAttr{
		Type: typ, SendCQ: d.cq, RecvCQ: d.cq, SelectiveSignaling: true,
		NoCredits: w.option("credits", name, "on") == "off",
		Cap: verbs.QPCap{
			MaxSendWR: int(w.numberOption("send_wr", name, queueSize)), MaxRecvWR: int(w.numberOption("recv_wr", name, queueSize)),
			MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 256,
		},
	}
	if s := w.option("srq", name, ""); s != "" {
		init.SRQ = lookup(w, "SRQ", r.srqs, s).SRQ
	}
	made, err := d.pd.CreateQP(init)
	if err != nil {
		return nil, adapterError{err}
	}
	q := &qp{QP: made, name: name, dev: d}
	r.qps[name] = q
	r.trace.NameQP(d.Device, made.Num(), name)
	return q, nil
}

func (r *runner) connectQPs(w *arguments) error {
	typ := verbs.RC
	if t := w.nextName(); t == "uc" {
		typ = verbs.UC
	} else if t != "rc" {
		return fmt.Errorf("%s: unknown type of connection; want rc or uc", t)
	}
	var ends [2]sim.Endpoint
	var qps [2]*qp
	selective := w.takeFlag("selective")
	known := w.takeFlag("known") || selective
	for i := range ends {
		name := w.nextName()
		q, err := r.createQP(name, typ, w)
		if err != nil {
			return err
		}
		qps[i] = q
		o := verbs.ConnectOptions{
			AckTimeout: w.codeOption("timeout", name, verbs.AckTimeout), Retries: w.countOption("retry", name), RNRRetries: w.countOption("rnr", name),
			RNRDelay: w.codeOption("min_rnr", name, rnrDelay), MaxRdAtomic: w.countOption("rd", name), MaxDestRdAtomic: w.countOption("dest_rd", name),
			Access: w.accessOption(name, verbs.AccessRemote|verbs.AccessFlushGlobal),
		}
		if o.Access == 0 {
			o.Access = verbs.AccessLocalWrite // none for the peer
		}
		if t := w.option("mtu", name, "1024"); o.MTU.UnmarshalText([]byte(t)) != nil {
			return fmt.Errorf("%s: want an MTU", t)
		}
		ends[i] = sim.Endpoint{Device: q.dev.Device, QP: q.QP, PSN: uint32(w.numberOption("psn", name, 0)), Options: o, HideRecvBuffer: !known, Selective: selective}
	}
	qps[0].peer, qps[1].peer = qps[1], qps[0]
	if err := w.finish(); err != nil {
		return err
	}
	return r.sim.Connect(ends[0], ends[1])
}

func (r *runner) createUD(w *arguments) error {
	name := w.nextName()
	q, err := r.createQP(name, verbs.UD, w)
	if err != nil {
		return err
	}
	q.qkey = uint32(w.numberOption("qkey", name, 0x11))
	psn := uint32(w.numberOption("psn", name, 0))
	if err := w.finish(); err != nil {
		return err
	}
	return verbs.ActivateUD(q.QP, q.qkey, psn)
}
