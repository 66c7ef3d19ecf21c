package verbs

import "fmt"

// A PathProber knows the MTU of paths, as far as the system does: that of the
// route, or a smaller one learned from an ICMP message.
type PathProber interface {
	// PathMTU returns the largest MTU that fits the path to the adapter at av,
	// and the maximum size in bytes of an IP packet on the path; 0 and 0 if
	// unknown.
	PathMTU(av AHAttr) (MTU, int)
}

// CheckPathMTU returns an error (ErrLimit) if packets of mtu are known not to
// fit the path from p to the adapter at av. p is a device or queue pair; the
// path of one that is no PathProber is unknown.
func CheckPathMTU(p any, av AHAttr, mtu MTU) error {
	fits, carries := pathMTU(p, av)
	if carries == 0 || mtu <= fits {
		return nil
	}
	return fmt.Errorf("%w: path MTU %v to %v, which carries IP packets of %d bytes: %s",
		ErrLimit, mtu, av.DGID.Addr(), carries, largestFit(fits))
}

func largestFit(fits MTU) string {
	if fits == 0 {
		return "less than the smallest MTU needs"
	}
	return fmt.Sprintf("use MTU %v at both ends", fits)
}

// FitPathMTU returns the largest MTU up to mtu that fits the path from p to the
// adapter at av, as far as known.
func FitPathMTU(p any, av AHAttr, mtu MTU) MTU {
	if fits, carries := pathMTU(p, av); carries > 0 && fits > 0 {
		return min(mtu, fits)
	}
	return mtu
}

func pathMTU(p any, av AHAttr) (MTU, int) {
	if prober, ok := p.(PathProber); ok {
		return prober.PathMTU(av)
	}
	return 0, 0
}
