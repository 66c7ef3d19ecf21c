// Package hostaddr finds this host's own addresses: those of its interfaces, the one
// that leads to a peer, and those that a text such as SOFTRNIC_ADDR names.
//
//	list, err := hostaddr.Parse("10.77.0.0/24:4791-4799, 127.0.0.1")
//	ip, err := hostaddr.Toward(netip.MustParseAddr("10.77.0.2")) // the source of the route
package hostaddr
