package ud

import "github.com/softrnic/softrnic/reliability/nack"

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.recent = false
	if f.kept > 0 {
		f.drain(f.now())
	}
}

// drain sends what the core has to send, as far as the send queue has room.
func (f *Fabric) drain(now nack.Time) {
	f.kept = 0
	f.port.Drain(now)
	f.arm(now)
}
