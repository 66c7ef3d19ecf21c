package rnic

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/verbs"
)

// SetImpair replaces the faults that are injected into the device's link; an
// empty text ends them. The text has the options of netem and rules about RoCE
// packets, separated by semicolons:
//
//	loss 1% delay 2ms 0.5ms reorder 5% duplicate 1% corrupt 0.1% rate 1gbit seed 7
//	loss gemodel 1% 30%; drop 3rd READ_RESPONSE of qp 7; drop every 2nd ACK; corrupt icrc of first WRITE
//
// docs/faults.md has the whole grammar. Packets are impaired on their way out,
// unless a rule says "in".
func (d *Device) SetImpair(text string) error {
	const op = "set faults"
	if err := d.checkUsable(op); err != nil {
		return err
	}
	spec, err := impair.Parse(text)
	if err != nil {
		return &verbs.OpError{Op: op, Object: d.name, Err: verbs.ErrInvalid, Detail: err.Error()}
	}
	if d.options.Wire == IWARP && !spec.Idle() {
		return &verbs.OpError{Op: op, Object: d.name, Err: verbs.ErrUnsupported, Detail: "faults are for packets, and iWARP uses TCP; see tc-netem(8)"}
	}
	for _, s := range d.shards {
		if err := s.setImpair(spec); err != nil {
			return err
		}
	}
	return nil
}

// Impair returns the faults in force, as text.
func (d *Device) Impair() string {
	if f := d.shards[0].faults.Load(); f != nil {
		return f.Spec().String()
	}
	return ""
}

// setImpair changes the faults, and wraps the link in an impair.Conn the first
// time.
func (s *shard) setImpair(spec impair.Spec) error {
	if f := s.faults.Load(); f != nil {
		return f.SetSpec(spec)
	}
	if spec.Idle() {
		return nil
	}
	f, err := impair.New(s.conn, spec, s.dev.clock)
	if err != nil {
		return fmt.Errorf("impair: %w", err)
	}
	s.replaceConn(func(link.Conn) link.Conn { return f })
	s.faults.Store(f)
	return nil
}

// replaceConn replaces the link while no goroutine reads or writes it.
func (s *shard) replaceConn(wrap func(link.Conn) link.Conn) {
	s.seizeToken()
	s.mu.Lock()
	s.conn = wrap(s.conn)
	s.mu.Unlock()
	s.releaseToken()
}
