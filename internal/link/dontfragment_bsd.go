//go:build darwin || freebsd

package link

import "golang.org/x/sys/unix"

func dontFragmentOption(v6 bool) socketOption {
	if v6 {
		return socketOption{"IPV6_DONTFRAG", unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1}
	}
	return socketOption{"IP_DONTFRAG", unix.IPPROTO_IP, unix.IP_DONTFRAG, 1}
}
