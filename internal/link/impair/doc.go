// Package impair makes a link fail in chosen ways: it wraps a link.Conn and
// loses, delays, reorders, duplicates, damages, marks and slows down packets.
// The same Spec does the same on UDP and in a simulation, and one seed is one
// sequence of faults.
//
//	spec, err := impair.Parse("loss 1% delay 2ms 0.5ms seed 7; drop 3rd READ_RESPONSE of qp 7")
//	conn, err := impair.New(inner, spec, nil)
//	...
//	err = conn.SetSpec(impair.Spec{}) // the network has recovered
//	fmt.Printf("%+v\n", conn.Counts())
//
// A capture that is to show what is really on the wire goes inside: impair
// around capture around the socket.
//
// # Grammar
//
// A text is a list of clauses with semicolons between them. A clause is either
// a sequence of netem's words or one rule. Words are separated by blanks, case
// matters. In the following, [ ] may be left out and | separates choices.
//
//	text   = clause { ";" clause }
//	clause = { netem } | rule
//
// # Words of netem
//
// They mean what they mean in tc-netem(8), apply to packets on their way out,
// and each may be given once.
//
//	loss [random] P [CORRELATION]
//	loss gemodel P [R [1-H [1-K]]]            R: 100%-P, 1-H: 100%, 1-K: 0%
//	loss state P13 [P31 [P32 [P23 [P14]]]]    P31: 100%-P13, P32: 0%, P23: 100%, P14: 0%
//	ecn                                       mark what would be lost, if it is ECN-capable
//	delay TIME [JITTER [CORRELATION]] [distribution uniform|normal|pareto|paretonormal]
//	reorder P [CORRELATION] [gap N]           send without the delay; needs one
//	duplicate P [CORRELATION]
//	corrupt P [CORRELATION]                   invert one random bit
//	rate RATE                                 IP and UDP headers are counted
//	limit N                                   packets held back at once, 1000
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
// The words "of" and "with" may be left out; in, out and when may change places.
// Direction is seen from the link; without one a rule looks at packets on their
// way out. Without when it is always, but once with a psn: the packet is meant,
// not its retransmissions.
//
// PACKETS is the name of an opcode of package wire, such as RC_SEND_LAST, and
// means that opcode only; or such a name from which parts were left out, and
// means all that have the rest: SEND, RC_WRITE, READ_RESPONSE, SEND_LAST (also
// with immediate data or invalidate), FIRST, IMM, UD, CNP. Besides there are ACK,
// NAK and RNR, the acknowledgements by what they say, where ACKNOWLEDGE is any of
// them; and ATOMIC for COMPARE_SWAP and FETCH_ADD. Names are in capitals: "drop
// FIRST" is about opcodes, "drop first" about the first packet.
//
// "qp 7" is the destination QPN in the packet, in decimal or with 0x. "psn 7" is
// the PSN in the packet, as Wireshark shows it; "psn +7" is seven after the first
// one seen of its stream: same direction, peer and destination QPN, and either
// requests or responses. (The first response seen may well acknowledge several
// requests, so +N is at its best with requests.)
//
// Every rule sees every packet that the adapter or its peer sent, also those
// that another rule drops, and counts those it matches. A packet that rules
// drop is gone; what they do otherwise adds up and comes on top of netem.
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
// Packets held back leave when they are due and somebody calls WriteBatch,
// ReadBatch, Wait or Flush. In a simulation the driver asks NextDue, moves its
// clock there, and calls Flush. In real time a goroutine in Wait is woken.
package impair
