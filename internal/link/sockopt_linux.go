package link

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// requiredOptions are those without which packets would be wrong: an IPv4
// identification of 0 takes an unconnected socket with don't-fragment, and
// peers like rdma_rxe send IPv6 datagrams without a checksum. With RECVERR the
// kernel tells which packets drew ICMP errors, and does not hide that a queue of
// the interface was full (ENOBUFS).
func requiredOptions(v6, noTOS bool) []socketOption {
	if v6 {
		return []socketOption{
			dontFragmentOption(v6),
			{"IPV6_RECVERR", unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1},
			{"IPV6_V6ONLY", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
			receiveTOSOption(v6, noTOS),
			{"UDP_NO_CHECK6_RX", unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1},
		}
	}
	return []socketOption{
		dontFragmentOption(v6),
		{"IP_RECVERR", unix.IPPROTO_IP, unix.IP_RECVERR, 1},
		receiveTOSOption(v6, noTOS),
	}
}

// receiveTOSOption returns the option that makes received datagrams show their traffic class.
func receiveTOSOption(v6, noTOS bool) socketOption {
	wantTOS := 1
	if noTOS {
		wantTOS = 0
	}
	if v6 {
		return socketOption{"IPV6_RECVTCLASS", unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, wantTOS}
	}
	return socketOption{"IP_RECVTOS", unix.IPPROTO_IP, unix.IP_RECVTOS, wantTOS}
}

func setRequiredOptions(fd int, v6 bool, tos uint8, noTOS bool) error {
	options := requiredOptions(v6, noTOS)
	if tos != 0 {
		level, option := tosOption(v6)
		options = append(options, socketOption{"traffic class", level, option, int(tos)})
	}
	for _, o := range options {
		if err := o.apply(uintptr(fd)); err != nil {
			return fmt.Errorf("link: %w", err)
		}
	}
	return nil
}

// tosOption returns the socket option, and the control message, of the traffic
// class.
func tosOption(v6 bool) (level, option int) {
	if v6 {
		return unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	return unix.IPPROTO_IP, unix.IP_TOS
}

// hopsOption returns the socket option of the hop limit of unicasts,
// hopsMessage the control message of the hop limit.
func hopsOption(v6 bool) (level, option int) {
	if v6 {
		return unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
	}
	return unix.IPPROTO_IP, unix.IP_TTL
}

func hopsMessage(v6 bool) (level, option int) {
	if v6 {
		return unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT
	}
	return unix.IPPROTO_IP, unix.IP_TTL
}

// setHops sets the hop limit of the socket to HopLimit and returns the
// effective one.
func setHops(fd int, v6 bool) uint8 {
	level, option := hopsOption(v6)
	unix.SetsockoptInt(fd, level, option, HopLimit)
	is, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return 0 // then each packet carries a control message
	}
	return uint8(is)
}

// hasGSO reports whether the kernel supports UDP_SEGMENT (Linux 4.18). An older
// one ignores the control message and would send a group as one datagram.
func hasGSO(fd int) bool {
	_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	return err == nil
}

// setGRO switches the receipt of merged datagrams (Linux 5.0) on or off and reports whether
// it is on.
func setGRO(fd int, on bool) bool {
	value := 0
	if on {
		value = 1
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, value) == nil && on
}

// setBuffers sets the sizes of the socket's buffers, preferably by the options
// that CAP_NET_ADMIN allows and that ignore rmem_max and wmem_max, and returns
// the effective sizes. SystemDefault keeps a buffer as it is.
func setBuffers(fd, recv, send int) (int, int) {
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, recv)
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, send)
	return bufferSizes(uintptr(fd))
}

func setBuffer(fd, force, plain, bytes int) {
	if bytes != SystemDefault && unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, bytes) // capped at the limit, never refused
	}
}
