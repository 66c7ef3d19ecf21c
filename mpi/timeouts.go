package mpi

import (
	"cmp"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Options.GiveUp has two parts: the deadlock detector probes a rank at least once in a fifth of
// it, and the fabric waits three quarters of it for the acknowledgement.
const (
	defaultGiveUp = 10 * time.Second
	minGiveUp     = time.Second
	retryTime     = 640 * time.Millisecond // between two attempts to connect over RDMA
)

// fillTimeouts derives the timeouts of the fabrics from GiveUp.
func (o *Options) fillTimeouts() {
	o.GiveUp = cmp.Or(o.GiveUp, defaultGiveUp)
	silence := o.GiveUp * 3 / 4
	o.UD.GiveUp = cmp.Or(o.UD.GiveUp, silence)
	o.TCP.GiveUp = cmp.Or(o.TCP.GiveUp, silence)
	o.RDMA.Retries = cmp.Or(o.RDMA.Retries, min(15, max(1, int(silence/retryTime))))
	if o.RDMA.Connect.AckTimeout == 0 {
		o.RDMA.Connect.AckTimeout = ackTimeout(silence)
	}
}

// ackTimeout returns the greatest verbs.ConnectOptions.AckTimeout with which a peer fails within
// silence. With seven retries, a timeout of 0.27 s takes 7 s, and both double alike.
func ackTimeout(silence time.Duration) time.Duration {
	t, d := verbs.AckTimeout(16), 7*time.Second
	for ; d > silence && t > verbs.AckTimeout(8); t /= 2 {
		d /= 2
	}
	for ; 2*d <= silence && t < verbs.AckTimeout(31); t *= 2 {
		d *= 2
	}
	return t
}

// maxProbeInterval is the maximum time between two liveness probes of a rank.
func (o *Options) maxProbeInterval() time.Duration { return max(o.GiveUp/5, sampleInterval) }
