// Package impair injects faults: it wraps a link.Conn and drops, delays, reorders,
// duplicates, corrupts, marks and paces packets. A Spec has the same effect on UDP
// and in a simulation, and its seed determines the sequence of faults.
//
//	spec, err := impair.Parse("loss 1% delay 2ms 0.5ms seed 7; drop 3rd READ_RESPONSE of qp 7")
//	conn, err := impair.New(inner, spec, nil)
//	...
//	err = conn.SetSpec(impair.Spec{}) // the network has recovered
//	fmt.Printf("%+v\n", conn.Counts())
//
// To capture the packets on the wire, wrap the capture by impair: impair around
// capture around the socket.
//
// # Grammar
//
// A text is a list of clauses separated by semicolons. A clause is either a
// sequence of netem options or one rule. Words are separated by blanks and
// case-sensitive. In the following, [ ] is optional and | separates choices.
//
//	text   = clause { ";" clause }
//	clause = { netem } | rule
//
// # Options of netem
//
// They have the meaning of tc-netem(8), apply to outgoing packets, and each may
// be given once.
//
//	loss [random] P [CORRELATION]
//	loss gemodel P [R [1-H [1-K]]]            R: 100%-P, 1-H: 100%, 1-K: 0%
//	loss state P13 [P31 [P32 [P23 [P14]]]]    P31: 100%-P13, P32: 0%, P23: 100%, P14: 0%
//	ecn                                       mark ECN-capable packets instead of losing them
//	delay TIME [JITTER [CORRELATION]] [distribution uniform|normal|pareto|paretonormal]
//	reorder P [CORRELATION] [gap N]           send without the delay; needs one
//	duplicate P [CORRELATION]
//	corrupt P [CORRELATION]                   invert one random bit
//	rate RATE                                 IP and UDP headers are counted
//	limit N                                   maximum number of delayed packets, 1000
//	seed N
//
// Probabilities have a percent sign, times one of ns, us, ms and s, rates, in
// bits a second, one of bit, kbit, mbit, gbit and tbit. Unlike tc, units may
// not be left out.
//
// # Rules
//
//	rule = action [in|out] [when] [PACKETS] [of qp N] [with psn N | with psn +N]
//
//	action = drop                  when = 3rd         that one; "first" is 1st
//	       | duplicate                  | every 2nd   the 2nd, 4th, 6th and so on
//	       | delay TIME                 | first 5     the first five
//	       | corrupt                    | 25%         each with this probability
//	       | corrupt icrc [of]          | always      each
//	       | mark ecn
//
// The words "of" and "with" are optional; in or out and when may be swapped. The
// direction is seen from the link; the default is out. The default of when is
// always, but once with a psn, which selects the packet and not its
// retransmissions.
//
// PACKETS is the name of an opcode of package wire, such as RC_SEND_LAST, and
// selects that opcode only; or parts of such a name, which select all opcodes with
// these parts: SEND, RC_WRITE, READ_RESPONSE, SEND_LAST (also with immediate data
// or invalidate), FIRST, IMM, UD, CNP. ACK, NAK and RNR select acknowledgements by
// syndrome, ACKNOWLEDGE all of them, ATOMIC both COMPARE_SWAP and FETCH_ADD. Names
// are in capitals: "drop FIRST" selects opcodes, "drop first" the first packet.
//
// "qp 7" is the destination QPN in the packet, in decimal or with 0x. "psn 7" is
// the PSN in the packet, as Wireshark shows it; "psn +7" is seven after the first
// one seen of its stream: same direction, peer and destination QPN, and either
// requests or responses. (The first response seen may well acknowledge several
// requests, so +N is at its best with requests.)
//
// Every rule sees every packet that the adapter or its peer sent, also those
// that another rule drops, and counts those it matches. Effects of several rules
// add up, and are applied in addition to netem; a drop overrides them.
//
// Examples:
//
//	drop 3rd READ_RESPONSE of qp 7
//	drop every 2nd ACK
//	drop psn +2
//	drop first SEND_LAST
//	corrupt icrc of 1st WRITE_ONLY
//	duplicate 2nd FETCH_ADD
//	delay 5ms every 10th RC_SEND_ONLY
//	mark ecn every 4th WRITE
//	drop in 50% NAK
//
// # Time
//
// Delayed packets are sent when they are due and WriteBatch, ReadBatch, Wait or
// Flush is called. In a simulation the driver moves its clock to NextDue and calls
// Flush. In real time a goroutine in Wait is woken.
package impair
