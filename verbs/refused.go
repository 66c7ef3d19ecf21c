package verbs

import (
	"fmt"
	"net/netip"
	"syscall"
)

// A RefusedError reports that the operating system did not send packets to a peer,
// or that the network sent an ICMP error back for them. It is the cause of failed
// completions (see Failure.Err) and of calls that connect. errors.Is finds the
// system's error number in it, for example syscall.ENETUNREACH.
type RefusedError struct {
	Peer netip.AddrPort // address and UDP port of the peer's adapter
	Err  syscall.Errno
	ICMP bool // a router or the peer's host sent an ICMP error; false: this system did not send
	Size int  // EMSGSIZE: bytes of the IP packet; 0 if unknown
	MTU  int  // EMSGSIZE: bytes that the path carries; 0 if unknown
}

// Error returns a text with the peer, the system's error and its usual cause.
func (e *RefusedError) Error() string { return e.describeEvent() + ": " + e.describeReason() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// Transient reports whether the error is a temporary shortage of the system
// (ENOBUFS, ENOMEM, EAGAIN): a retransmission may succeed.
func (e *RefusedError) Transient() bool {
	return e.Err == syscall.ENOBUFS || e.Err == syscall.ENOMEM || e.Err == syscall.EAGAIN
}

// TooLarge reports whether the packet exceeded the MTU of the path (EMSGSIZE).
func (e *RefusedError) TooLarge() bool { return e.Err == syscall.EMSGSIZE }

// Failure returns the description of a work request that failed with e.
func (e *RefusedError) Failure() *Failure {
	if e.ICMP {
		return &Failure{Event: fmt.Sprintf("no acknowledgement from %v", e.Peer), Cause: e.describeReason(), Err: e}
	}
	return &Failure{Event: e.describeEvent(), Cause: e.describeReason(), Err: e}
}

// describeEvent describes the failure without its reason.
func (e *RefusedError) describeEvent() string {
	if e.ICMP {
		return fmt.Sprintf("nothing is delivered to %v", e.Peer)
	}
	return fmt.Sprintf("the system refuses to send to %v", e.Peer)
}

// describeReason returns the system's error with advice.
func (e *RefusedError) describeReason() string {
	if e.ICMP {
		return "ICMP: " + e.Err.Error() + e.adviceText()
	}
	return e.Err.Error() + e.adviceText()
}

// adviceText returns advice for the error, behind a separator, or "".
func (e *RefusedError) adviceText() string {
	switch e.Err {
	case syscall.EMSGSIZE:
		return e.sizeText()
	case syscall.ECONNREFUSED:
		return "; no adapter is open at that port"
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH:
		if e.ICMP {
			return "; the address is wrong, or its host is down"
		}
		return "; no route leads there"
	}
	if e.ICMP {
		return ""
	}
	switch e.Err {
	case syscall.EINVAL:
		return "; a loopback address reaches this machine only, a blackhole route nothing"
	case syscall.EPERM, syscall.EACCES:
		return "; a firewall or a route forbids it"
	}
	return ""
}

// sizeText describes the two sizes of EMSGSIZE.
func (e *RefusedError) sizeText() string {
	switch {
	case e.Size > 0 && e.MTU > 0:
		return fmt.Sprintf("; the IP packet has %d bytes, the path carries %d; use a smaller MTU", e.Size, e.MTU)
	case e.MTU > 0:
		return fmt.Sprintf("; the path carries IP packets of %d bytes; use a smaller MTU", e.MTU)
	}
	return "; the packet is larger than the path's MTU; use a smaller one"
}
