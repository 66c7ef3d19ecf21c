package verbs

import "fmt"

// A PathProber is a device or queue pair that knows the MTU of paths, as far as the
// system does: that of the route, or a smaller one from an ICMP message.
type PathProber interface {
	// PathMTU returns the largest MTU that fits the path to the adapter at av,
	// and the maximum size in bytes of an IP packet on the path; 0 and 0 if
	// unknown.
	PathMTU(av AHAttr) (MTU, int)
}

// CheckPathMTU returns an ErrLimit if packets of mtu are known to exceed the path from
// p, a device or queue pair, to the adapter at av. Without a PathProber the path is
// unknown.
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

// FitPathMTU returns the largest MTU up to mtu that fits the path from p, a device or
// queue pair, to the adapter at av, as far as it is known.
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
