package link

import "golang.org/x/sys/unix"

func dontFragmentOption(v6 bool) socketOption {
	if v6 {
		return socketOption{"IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO}
	}
	return socketOption{"IP_MTU_DISCOVER", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO}
}
