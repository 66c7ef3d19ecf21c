// Package capture records the packets of a link as pcapng files that Wireshark
// and tshark decode, without root: the adapter itself writes the packets that it
// sends and receives. A [Tap] wraps a link and passes its packets to Recorders
// such as a [File], which are added and removed at run time.
//
//	tap := capture.NewTap(conn, nil)
//	file, err := capture.Create("trace.pcapng.gz", func(err error) { log.Print(err) })
//	tap.Add(file)
//	...
//	tap.Remove(file)
//	err = file.Close()
//
// A UDP socket shows no headers, so they are made again: addresses, ports,
// lengths and traffic class as they were, DF set, TTL and flow label of the path
// (64 and 0 of received packets where the link does not show them), UDP checksum 0
// with IPv4 and right with IPv6. The IPv4 identification, which the ICRC covers, is
// the one a packet was sealed for; of received packets it is worked out from the
// ICRC where the link does not show it. Received packets whose ICRC is wrong have
// a comment that says so. Each tap is an interface of the file, named after its
// address, and packets are flagged as inbound or outbound.
//
// Wireshark takes UDP port 4791 for RoCE v2. For adapters on another port, say
// 5000, tell it with
//
//	tshark -o infiniband.rroce.port:5000 -r trace.pcapng
//
// Recording never delays or fails the traffic. A Recorder that cannot keep up
// drops packets and counts them; the number stands in the file as well.
package capture
