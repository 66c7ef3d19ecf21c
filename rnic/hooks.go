package rnic

import (
	"github.com/softrnic/softrnic/internal/rnichook"
	"github.com/softrnic/softrnic/reliability"
)

func init() {
	rnichook.SetHooks = func(options any, h rnichook.Hooks) { options.(*Options).hooks = h }
	rnichook.NextTimer = func(device any) int64 { return int64(device.(*Device).nextDeadline()) }
}

// nextDeadline returns the time on the device's clock at which Progress has
// work even if no packet arrives, or 0 for never.
func (d *Device) nextDeadline() reliability.Time {
	var t reliability.Time
	for _, s := range d.shards {
		t = reliability.Earlier(t, reliability.Time(s.nextTimer.Load()))
		if f := s.faults.Load(); f != nil {
			t = reliability.Earlier(t, reliability.Time(f.NextDue()))
		}
	}
	return t
}
