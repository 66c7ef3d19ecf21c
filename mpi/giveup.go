package mpi

import "time"

// The time after which a rank without a sign of life is lost, Options.GiveUp, has two
// parts: a rank that is waited for is asked at least once in a fifth of it, and the fabric
// waits for the answer for three quarters.
const (
	defaultGiveUp = 10 * time.Second
	minGiveUp     = time.Second
	retryTime     = 640 * time.Millisecond // between two tries to connect over RDMA
)

// fillTimeouts gives the fabrics what is theirs of GiveUp.
func (o *Options) fillTimeouts() {
	if o.GiveUp <= 0 {
		o.GiveUp = defaultGiveUp
	}
	o.GiveUp = max(o.GiveUp, minGiveUp)
	silence := o.GiveUp * 3 / 4
	if o.UD.GiveUp <= 0 {
		o.UD.GiveUp = silence
	}
	if o.TCP.GiveUp <= 0 {
		o.TCP.GiveUp = silence
	}
	if o.RDMA.Retries <= 0 {
		o.RDMA.Retries = min(15, max(1, int(silence/retryTime)))
	}
	if o.RDMA.Connect.Timeout == 0 {
		o.RDMA.Connect.Timeout = connectTimeout(silence)
	}
}

// connectTimeout is the greatest verbs.ConnectOptions.Timeout by which a rank is lost
// after no more than silence: with seven retries each doubles the time, and 16 takes 7 s.
func connectTimeout(silence time.Duration) uint8 {
	const known, takes = 16, 7 * time.Second
	t, d := uint8(known), takes
	for ; d > silence && t > 8; t-- {
		d /= 2
	}
	for ; 2*d <= silence && t < 31; t++ {
		d *= 2
	}
	return t
}

// maxProbeInterval is the longest time between two questions for signs of life of one rank.
func (o *Options) maxProbeInterval() time.Duration { return max(o.GiveUp/5, sampleInterval) }
