package ud

import "github.com/softrnic/softrnic/reliability/nack"

// Flush implements fabric.Fabric.
func (f *Fabric) Flush() {
	f.sentSinceFlush = false
	if f.unsent > 0 {
		f.transmit(f.clock())
	}
}

// transmit sends the packets of the NACK core, as far as the send queue has room.
func (f *Fabric) transmit(now nack.Time) {
	f.unsent = 0
	f.port.SendPending(now)
	f.armTimer(now)
}
