package scenario

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/verbs"
)

// expect checks something.
func (r *runner) expect(w *words) error {
	switch what := w.name(); what {
	case "wc":
		return r.expectWC(w)
	case "nothing":
		q := r.qp(w)
		if len(q.wcs) > 0 {
			return fmt.Errorf("there is a completion: wc %d %v", q.wcs[0].WRID, q.wcs[0].Status)
		}
		return w.done()
	case "state":
		q, want := r.qp(w), w.name()
		if err := w.done(); err != nil {
			return err
		}
		return equal(want, q.State().String())
	case "counters":
		return r.expectCounters(w)
	case "drops":
		return r.expectDrops(w)
	case "copy", "untouched", "word":
		return r.expectMemory(what, w)
	case "event":
		return r.expectEvent(w)
	case "notified", "quiet":
		return r.expectNotified(w, what == "notified")
	default:
		return fmt.Errorf("cannot expect %q", what)
	}
}

func equal(want, is string) error {
	if want != is {
		return fmt.Errorf("it is %s", is)
	}
	return nil
}

// expectWC takes the next completion of a queue pair.
func (r *runner) expectWC(w *words) error {
	q, status := r.qp(w), w.name()
	if w.err != nil {
		return w.err
	}
	if len(q.wcs) == 0 {
		return fmt.Errorf("there is no completion")
	}
	wc := q.wcs[0]
	q.wcs = q.wcs[1:]
	for _, field := range []struct {
		name string
		is   string
	}{
		{"wr", fmt.Sprint(wc.WRID)}, {"op", wc.Opcode.String()}, {"len", fmt.Sprint(wc.ByteLen)},
		{"imm", fmt.Sprint(wc.Imm)}, {"flags", wc.Flags.String()},
	} {
		if want := w.text(field.name, "", ""); want != "" && want != field.is {
			return fmt.Errorf("%s is %s; the completion is %+v", field.name, field.is, wc)
		}
	}
	if err := w.done(); err != nil {
		return err
	}
	if wc.Status.String() != status {
		return fmt.Errorf("it is %v", wc.Status)
	}
	return nil
}

func (r *runner) expectCounters(w *words) error {
	q := r.qp(w)
	if w.err != nil {
		return w.err
	}
	v := reflect.ValueOf(q.QP.(*rnic.QP).Counters())
	for i := range v.NumField() {
		name := snake(v.Type().Field(i).Name)
		if want := w.text(name, "", ""); want != "" && want != fmt.Sprint(v.Field(i).Uint()) {
			return fmt.Errorf("%s is %d", name, v.Field(i).Uint())
		}
	}
	return w.done()
}

func (r *runner) expectDrops(w *words) error {
	d := find(w, "device", r.devices)
	if w.err != nil {
		return w.err
	}
	drops := d.Stats().Drops
	for name := range w.options {
		if want := w.number(name, "", 0); want != drops[name] {
			return fmt.Errorf("%s is %d, of all drops %v", name, drops[name], drops)
		}
	}
	return w.done()
}

func (r *runner) expectMemory(what string, w *words) error {
	name := w.name()
	a, offset := lookup(w, "region", r.regions, name), int(w.next())
	if w.err != nil {
		return w.err
	}
	switch what {
	case "word":
		want := w.next()
		if err := w.done(); err != nil {
			return err
		}
		return equal(fmt.Sprint(want), fmt.Sprint(a.LoadUint64(offset)))
	case "untouched":
		n := int(w.next())
		for i := offset; i < offset+n; i++ {
			if a.Bytes()[i] != pattern(name, i) {
				return fmt.Errorf("byte %d has changed", i)
			}
		}
		return w.done()
	}
	b, other, n := find(w, "region", r.regions), int(w.next()), int(w.next())
	if err := w.done(); err != nil {
		return err
	}
	if !bytes.Equal(a.Bytes()[offset:offset+n], b.Bytes()[other:other+n]) {
		return fmt.Errorf("the memory differs")
	}
	return nil
}

// expectEvent takes the next asynchronous event of a device.
func (r *runner) expectEvent(w *words) error {
	d, want := find(w, "device", r.devices), w.name()
	if err := w.done(); err != nil {
		return err
	}
	if want == "none" {
		if len(d.events) > 0 {
			return fmt.Errorf("there is %v", d.events[0].Type)
		}
		return nil
	}
	if len(d.events) == 0 {
		return fmt.Errorf("there is no event")
	}
	is := d.events[0].Type.String()
	d.events = d.events[1:]
	return equal(want, is)
}

// expectNotified asks whether the armed completion queue has fired.
func (r *runner) expectNotified(w *words, want bool) error {
	d := find(w, "device", r.devices)
	if err := w.done(); err != nil {
		return err
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if fired := d.cq.Wait(ended) == nil; fired != want {
		return fmt.Errorf("fired: %t", fired)
	}
	return nil
}

func (r *runner) arm(w *words) error {
	d := find(w, "device", r.devices)
	solicited := w.flag("solicited")
	if err := w.done(); err != nil {
		return err
	}
	return d.cq.ReqNotify(solicited)
}

// set stores a word in memory.
func (r *runner) set(w *words) error {
	m, offset, value := find(w, "region", r.regions), int(w.next()), w.next()
	if err := w.done(); err != nil {
		return err
	}
	binary.NativeEndian.PutUint64(m.Bytes()[offset:], value)
	return nil
}

// modify brings a queue pair into another state, by name.
func (r *runner) modify(w *words) error {
	q, name := r.qp(w), w.name()
	if err := w.done(); err != nil {
		return err
	}
	for s := verbs.StateReset; s <= verbs.StateErr; s++ {
		if strings.EqualFold(s.String(), name) {
			if err := q.Modify(verbs.QPAttr{State: s}, verbs.AttrState); err != nil {
				return refusal{err}
			}
			return nil
		}
	}
	return fmt.Errorf("%s is no state", name)
}

// resize changes size and limit of a shared receive queue.
func (r *runner) resize(w *words) error {
	s := find(w, "SRQ", r.srqs)
	var attr verbs.SRQAttr
	var mask verbs.SRQAttrMask
	if attr.Limit = w.size("limit", -1); attr.Limit >= 0 {
		mask |= verbs.SRQLimit
	}
	if attr.MaxWR = w.size("max", -1); attr.MaxWR >= 0 {
		mask |= verbs.SRQMaxWR
	}
	if err := w.done(); err != nil {
		return err
	}
	if err := s.Modify(attr, mask); err != nil {
		return refusal{err}
	}
	return nil
}

func (r *runner) dereg(w *words) error {
	m := find(w, "region", r.regions)
	if err := w.done(); err != nil {
		return err
	}
	if err := m.Dereg(); err != nil {
		return refusal{err}
	}
	return nil
}

func (r *runner) destroy(w *words) error {
	q := r.qp(w)
	if err := w.done(); err != nil {
		return err
	}
	return q.Destroy()
}
