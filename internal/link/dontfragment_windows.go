package link

import "golang.org/x/sys/windows"

func dontFragmentOption(v6 bool) socketOption {
	if v6 {
		return socketOption{"IPV6_DONTFRAG", windows.IPPROTO_IPV6, 14, 1}
	}
	return socketOption{"IP_DONTFRAGMENT", windows.IPPROTO_IP, 14, 1}
}
