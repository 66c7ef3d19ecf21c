package rnic

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/link"
	"github.com/softrnic/softrnic/internal/link/capture"
	"github.com/softrnic/softrnic/internal/link/impair"
	"github.com/softrnic/softrnic/verbs"
)

// StartCapture starts writing every packet to a pcapng file, as it is on the
// wire, compressed if the name ends in .gz, or in .zst if the program imports
// package rnicdebug (errors.ErrUnsupported otherwise). Wireshark decodes it. A
// capture that cannot keep up drops packets of the file, never of the link. A
// device has one capture at a time; ErrBusy while one runs.
func (d *Device) StartCapture(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.isClosed():
		return &verbs.OpError{Op: "start capture", Object: d.name, Err: verbs.ErrClosed}
	case d.capture != nil:
		return &verbs.OpError{Op: "start capture", Object: d.name, Err: verbs.ErrBusy, Detail: "stop the running capture first"}
	}
	if d.options.Wire == IWARP {
		return &verbs.OpError{Op: "start capture", Object: d.name, Err: verbs.ErrUnsupported, Detail: "captures are of packets, and iWARP uses TCP; see tcpdump(8)"}
	}
	f, err := capture.Create(path, func(err error) {
		d.log.Warn("capture failed", "device", d.name, "file", path, "err", err)
	})
	if err != nil {
		return fmt.Errorf("start capture: %w", err)
	}
	for _, s := range d.shards {
		if err := s.insertTap(); err != nil {
			f.Close()
			return err
		}
	}
	for _, s := range d.shards {
		s.tap.Add(f)
	}
	d.capture = f
	return nil
}

// StopCapture ends the capture, closes its file, and returns the first write
// error, such as ENOSPC. Without a capture it does nothing.
func (d *Device) StopCapture() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopCapture()
}

func (d *Device) stopCapture() error {
	f := d.capture
	if f == nil {
		return nil
	}
	d.capture = nil
	for _, s := range d.shards {
		s.tap.Remove(f)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("stop capture: %w", err)
	}
	return nil
}

// insertTap puts a tap directly around the socket, inside fault injection, when
// a capture is first started. It stays, and costs nothing while no capture
// runs.
func (s *shard) insertTap() error {
	if s.tap != nil {
		return nil
	}
	tap := capture.NewTap(s.socket, s.dev.options.hooks.Clock)
	faults := s.faults.Load()
	if faults != nil {
		rewrapped, err := impair.New(tap, faults.Spec(), s.dev.clock)
		if err != nil {
			return fmt.Errorf("start capture: %w", err)
		}
		faults = rewrapped
	}
	s.replaceConn(func(link.Conn) link.Conn {
		if faults != nil {
			return faults
		}
		return tap
	})
	s.tap = tap
	s.faults.Store(faults)
	return nil
}
