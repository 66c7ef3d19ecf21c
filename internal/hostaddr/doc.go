// Package hostaddr finds this host's addresses: those of its interfaces, the source address of
// the route to a peer, and those that a list such as SOFTRNIC_ADDR matches.
//
//	list, err := hostaddr.Parse("10.77.0.0/24:4791-4799, 127.0.0.1")
//	ip, err := hostaddr.Toward(netip.MustParseAddr("10.77.0.2")) // the source of the route
package hostaddr
