package scenario

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/softrnic/softrnic/internal/counters"
	"github.com/softrnic/softrnic/verbs"
)

// expect runs one expectation.
func (r *runner) expect(w *arguments) error {
	switch what := w.nextName(); what {
	case "wc":
		return r.expectWC(w)
	case "nothing":
		q := r.nextQP(w)
		if len(q.wcs) > 0 {
			return fmt.Errorf("unexpected completion: wc %d %v", q.wcs[0].WRID, q.wcs[0].Status)
		}
		return w.finish()
	case "state":
		q, want := r.nextQP(w), w.nextName()
		if err := w.finish(); err != nil {
			return err
		}
		return expectEqual(want, q.State().String())
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

func expectEqual(want, is string) error {
	if want != is {
		return fmt.Errorf("got %s", is)
	}
	return nil
}

// expectWC consumes the next completion of a queue pair.
func (r *runner) expectWC(w *arguments) error {
	q, status := r.nextQP(w), w.nextName()
	if w.err != nil {
		return w.err
	}
	if len(q.wcs) == 0 {
		return fmt.Errorf("no completion")
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
		if want := w.option(field.name, "", ""); want != "" && want != field.is {
			return fmt.Errorf("%s is %s; the completion is %+v", field.name, field.is, wc)
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	if wc.Status.String() != status {
		return fmt.Errorf("status is %v", wc.Status)
	}
	return nil
}

func (r *runner) expectCounters(w *arguments) error {
	q := r.nextQP(w)
	if w.err != nil {
		return w.err
	}
	info, _ := q.dev.InspectQP(q.QP.Num())
	v := reflect.ValueOf(info.Counters)
	for i := range v.NumField() {
		name := counters.Snake(v.Type().Field(i).Name)
		if want := w.option(name, "", ""); want != "" && want != fmt.Sprint(v.Field(i).Uint()) {
			return fmt.Errorf("%s is %d", name, v.Field(i).Uint())
		}
	}
	return w.finish()
}

func (r *runner) expectDrops(w *arguments) error {
	d := findNext(w, "device", r.devices)
	if w.err != nil {
		return w.err
	}
	drops := d.Stats().Drops
	for name := range w.options {
		if want := w.numberOption(name, "", 0); want != drops[name] {
			return fmt.Errorf("%s is %d, of all drops %v", name, drops[name], drops)
		}
	}
	return w.finish()
}

func (r *runner) expectMemory(what string, w *arguments) error {
	name := w.nextName()
	a, offset := lookup(w, "region", r.regions, name), int(w.nextNumber())
	if w.err != nil {
		return w.err
	}
	switch what {
	case "word":
		want := w.nextNumber()
		if err := w.finish(); err != nil {
			return err
		}
		return expectEqual(fmt.Sprint(want), fmt.Sprint(a.LoadUint64(offset)))
	case "untouched":
		n := int(w.nextNumber())
		for i := offset; i < offset+n; i++ {
			if a.Bytes()[i] != pattern(name, i) {
				return fmt.Errorf("byte %d has changed", i)
			}
		}
		return w.finish()
	}
	b, other, n := findNext(w, "region", r.regions), int(w.nextNumber()), int(w.nextNumber())
	if err := w.finish(); err != nil {
		return err
	}
	if !bytes.Equal(a.Bytes()[offset:offset+n], b.Bytes()[other:other+n]) {
		return fmt.Errorf("the memory differs")
	}
	return nil
}

// expectEvent consumes the next asynchronous event of a device.
func (r *runner) expectEvent(w *arguments) error {
	d, want := findNext(w, "device", r.devices), w.nextName()
	if err := w.finish(); err != nil {
		return err
	}
	if want == "none" {
		if len(d.events) > 0 {
			return fmt.Errorf("unexpected event %v", d.events[0].Type)
		}
		return nil
	}
	if len(d.events) == 0 {
		return fmt.Errorf("no event")
	}
	is := d.events[0].Type.String()
	d.events = d.events[1:]
	return expectEqual(want, is)
}

// expectNotified checks whether the armed completion queue has fired.
func (r *runner) expectNotified(w *arguments, want bool) error {
	d := findNext(w, "device", r.devices)
	if err := w.finish(); err != nil {
		return err
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if fired := d.cq.Wait(ended) == nil; fired != want {
		return fmt.Errorf("fired: %t", fired)
	}
	return nil
}

func (r *runner) armCQ(w *arguments) error {
	d := findNext(w, "device", r.devices)
	solicited := w.takeFlag("solicited")
	if err := w.finish(); err != nil {
		return err
	}
	return d.cq.ReqNotify(solicited)
}

// setWord stores a word in memory.
func (r *runner) setWord(w *arguments) error {
	m, offset, value := findNext(w, "region", r.regions), int(w.nextNumber()), w.nextNumber()
	if err := w.finish(); err != nil {
		return err
	}
	binary.NativeEndian.PutUint64(m.Bytes()[offset:], value)
	return nil
}

// modifyQP changes the state of a queue pair.
func (r *runner) modifyQP(w *arguments) error {
	q, name := r.nextQP(w), w.nextName()
	if err := w.finish(); err != nil {
		return err
	}
	for s := verbs.StateReset; s <= verbs.StateErr; s++ {
		if strings.EqualFold(s.String(), name) {
			if err := q.Modify(verbs.QPAttr{State: s}, verbs.AttrState); err != nil {
				return adapterError{err}
			}
			return nil
		}
	}
	return fmt.Errorf("%s: want a state", name)
}

// resizeSRQ changes size and limit of a shared receive queue.
func (r *runner) resizeSRQ(w *arguments) error {
	s := findNext(w, "SRQ", r.srqs)
	var attr verbs.SRQAttr
	var mask verbs.SRQAttrMask
	if attr.Limit = w.sizeOption("limit", -1); attr.Limit >= 0 {
		mask |= verbs.SRQLimit
	}
	if attr.MaxWR = w.sizeOption("max", -1); attr.MaxWR >= 0 {
		mask |= verbs.SRQMaxWR
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := s.Modify(attr, mask); err != nil {
		return adapterError{err}
	}
	return nil
}

func (r *runner) deregRegion(w *arguments) error {
	m := findNext(w, "region", r.regions)
	if err := w.finish(); err != nil {
		return err
	}
	if err := m.Close(); err != nil {
		return adapterError{err}
	}
	return nil
}

func (r *runner) destroyQP(w *arguments) error {
	q := r.nextQP(w)
	if err := w.finish(); err != nil {
		return err
	}
	return q.Close()
}
