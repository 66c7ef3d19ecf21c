package verbs

import (
	"cmp"
	"fmt"
	"time"
)

// RetryForever as ConnectOptions.RNRRetries means no limit.
const RetryForever = 7

// ConnectOptions are the options of a connection. The zero value of a field is
// its default. A value out of range is refused with ErrInvalid before the queue
// pair changes.
type ConnectOptions struct {
	// Access is the remote access of the peer through this queue pair. The
	// default is AccessRemote, or the present access of a queue pair in
	// StateInit. AccessLocalWrite alone grants none.
	Access AccessFlags

	// MTU is the path MTU. The default is the largest that fits the ports of
	// both ends and, as far as the system knows it, the path from here. Both
	// ends must use the same, so set it if the two directions of the path
	// differ. An MTU that does not fit is an ErrLimit.
	MTU MTU

	// The following fields apply to RC only. UC ignores them.

	// AckTimeout is the time without an acknowledgement after which a request is
	// retransmitted, rounded up to 4.096 us * 2^n, with n from 1 to 31, and by
	// rnic to at least 16.8 ms. The default is 67 ms; a negative value is none.
	AckTimeout time.Duration

	// Retries is the number of retries after a timeout or a sequence NAK, up to
	// 7, the default; -1 is none.
	Retries int

	// RNRRetries is the number of retries after an RNR NAK, up to 6 or
	// RetryForever, the default; -1 is none.
	RNRRetries int

	// RNRDelay is the time that the peer waits after an RNR NAK, rounded up to
	// one of the 32 values of the standard between 10 us and 655.36 ms. The
	// default is 0.64 ms.
	RNRDelay time.Duration

	// MaxRdAtomic is the maximum number of outstanding reads and atomics. The
	// default is 16, or RdAtomic of the remote endpoint if that is less; more
	// than that is refused. With selective retransmission 16 times as many may be
	// outstanding. -1 is none.
	MaxRdAtomic int

	// MaxDestRdAtomic is the maximum number of reads and atomics of the peer that
	// are served at a time. The default is RdAtomic of the local endpoint, which
	// the peer relies on, or 16. -1 is none.
	MaxDestRdAtomic int

	// Fields of the address vector, by default 0, and 64 for HopLimit. Only the
	// low 20 bits of FlowLabel are used. RoCE v2 does not transfer the SL.
	SL, TrafficClass, HopLimit uint8
	FlowLabel                  uint32
}

// Defaults of ConnectOptions.
const (
	defaultTimeout     = 14 // code of 67 ms
	defaultRetries     = 7
	defaultMinRNRTimer = 12 // code of 0.64 ms
	defaultRdAtomic    = 16
)

// QPAttr returns the attributes of a queue pair of type typ that o selects, in
// the codes of QPAttr and with the defaults of unset fields: access, timers,
// counts, path MTU and address vector. PathMTU is 0 if o.MTU is. For types other
// than RC, the fields that apply to RC only have their defaults.
//
// Connect calls it. It is for programs that modify a queue pair themselves.
func (o ConnectOptions) QPAttr(typ QPType) (QPAttr, error) {
	a := QPAttr{
		PathMTU:     o.MTU,
		AccessFlags: cmp.Or(o.Access, AccessRemote),
		AV:          AHAttr{PortNum: 1, SL: o.SL, TrafficClass: o.TrafficClass, HopLimit: o.HopLimit, FlowLabel: o.FlowLabel},
		PortNum:     1,
	}
	const known = AccessLocalWrite | AccessRemote | AccessMWBind | AccessZeroBased | AccessOnDemand | AccessFlushGlobal |
		AccessFlushPersistent | AccessOptional
	if o.Access&^known != 0 {
		return a, fmt.Errorf("%w: ConnectOptions.Access: unknown flags in %v", ErrInvalid, o.Access)
	}
	if o.MTU > MTU4096 {
		return a, fmt.Errorf("%w: ConnectOptions.MTU: %d out of range [0, %d]", ErrInvalid, uint8(o.MTU), uint8(MTU4096))
	}
	if typ != RC {
		o = ConnectOptions{}
	}
	for _, f := range []struct {
		name       string
		value      int
		max, unset int
		code       *uint8
	}{
		{"Retries", o.Retries, 7, defaultRetries, &a.RetryCnt},
		{"RNRRetries", o.RNRRetries, 7, RetryForever, &a.RNRRetry},
		{"MaxRdAtomic", o.MaxRdAtomic, 255, defaultRdAtomic, &a.MaxRdAtomic},
		{"MaxDestRdAtomic", o.MaxDestRdAtomic, 255, defaultRdAtomic, &a.MaxDestRdAtomic},
	} {
		if f.value < -1 || f.value > f.max {
			return a, fmt.Errorf("%w: ConnectOptions.%s: %d out of range [-1, %d]", ErrInvalid, f.name, f.value, f.max)
		}
		*f.code = uint8(max(cmp.Or(f.value, f.unset), 0))
	}
	if longest := AckTimeout(31); o.AckTimeout > longest {
		return a, fmt.Errorf("%w: ConnectOptions.AckTimeout: %v out of range [0, %v]", ErrInvalid, o.AckTimeout, longest)
	}
	if longest := rnrDelay(0); o.RNRDelay < 0 || o.RNRDelay > longest {
		return a, fmt.Errorf("%w: ConnectOptions.RNRDelay: %v out of range [0, %v]", ErrInvalid, o.RNRDelay, longest)
	}
	a.Timeout, a.MinRNRTimer = defaultTimeout, defaultMinRNRTimer
	if o.AckTimeout != 0 {
		a.Timeout = ackTimeoutCode(o.AckTimeout)
	}
	if o.RNRDelay != 0 {
		a.MinRNRTimer = rnrTimerCode(o.RNRDelay)
	}
	return a, nil
}

// ackTimeoutCode returns the Timeout code of the shortest time that is at least
// d, 0 (no timeout) if d is negative.
func ackTimeoutCode(d time.Duration) uint8 {
	if d < 0 {
		return 0
	}
	code := uint8(1)
	for code < 31 && AckTimeout(code) < d {
		code++
	}
	return code
}

// rnrDelays are the times of the MinRNRTimer codes in units of 10 us (IBTA volume
// 1, section 9.7.5.2.8, table 45). That of code 0 is the longest.
var rnrDelays = [32]uint32{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}

// rnrDelay returns the time of a MinRNRTimer code.
func rnrDelay(code uint8) time.Duration {
	return time.Duration(rnrDelays[code&31]) * 10 * time.Microsecond
}

// rnrTimerCode returns the MinRNRTimer code of the shortest time that is at least
// d.
func rnrTimerCode(d time.Duration) uint8 {
	for code := uint8(1); code < 32; code++ {
		if rnrDelay(code) >= d {
			return code
		}
	}
	return 0
}

// qpAttr returns the attributes of a queue pair of type typ connected with these
// options.
func (o ConnectOptions) qpAttr(typ QPType, local, remote Endpoint) (QPAttr, error) {
	if err := local.validate(); err != nil {
		return QPAttr{}, fmt.Errorf("local endpoint: %w", err)
	}
	err := remote.validate()
	if remote.GID.Addr().IsUnspecified() {
		err = remote.invalidError("no address; use the result of LocalEndpoint at the peer")
	}
	if err != nil {
		return QPAttr{}, fmt.Errorf("remote endpoint: %w", err)
	}
	if from, to := local.GID.Addr(), remote.GID.Addr(); from.Is4() != to.Is4() {
		return QPAttr{}, fmt.Errorf("%w: addresses %v and %v are of different families", ErrInvalid, from, to)
	}
	if typ == RC {
		o.MaxRdAtomic = cmp.Or(o.MaxRdAtomic, min(defaultRdAtomic, cmp.Or(int(remote.RdAtomic), defaultRdAtomic)))
		o.MaxDestRdAtomic = cmp.Or(o.MaxDestRdAtomic, int(local.RdAtomic))
	}
	o.MTU = cmp.Or(o.MTU, commonMTU(local.MTU, remote.MTU))
	a, err := o.QPAttr(typ)
	if err != nil {
		return a, err
	}
	if limit := remote.RdAtomic; typ == RC && limit != 0 && a.MaxRdAtomic > limit {
		return a, fmt.Errorf("%w: ConnectOptions.MaxRdAtomic: %d out of range [-1, %d], the reads and atomics that the peer serves at a time; raise RdAtomic of the endpoint that the peer gives away",
			ErrInvalid, a.MaxRdAtomic, limit)
	}
	if a.PathMTU == 0 {
		return a, fmt.Errorf("%w: ConnectOptions.MTU: required, because neither end knows its MTU", ErrInvalid)
	}
	a.RQPSN, a.SQPSN, a.DestQPN = remote.PSN, local.PSN, remote.QPN
	a.AV.DGID, a.AV.UDPPort, a.AV.PeerBuffer = remote.GID, remote.UDPPort, remote.RecvBuffer
	a.AV.Selective = typ == RC && local.Selective && remote.Selective
	return a, nil
}
