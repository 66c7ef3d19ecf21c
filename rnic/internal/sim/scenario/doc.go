// Package scenario runs scripts that demonstrate and test the behavior of
// adapters: they post work, inject faults, let time pass, and print the packets.
// The scripts of testdata/scenario introduce RDMA on the wire, one rule of the
// transport each, and are tests at the same time.
//
// A script is a sequence of blocks: commands, a line "----", and the output of
// the commands up to the next blank line; "ok" stands for no output. Lines that
// begin with # are comments.
//
//	# A WRITE of 3000 bytes on a path of 1024 leaves as FIRST, MIDDLE and LAST.
//	device a
//	device b
//	connect rc a b mtu=1024 psn=100
//	write a wr=1 len=3000
//	run
//	trace
//	----
//	     0.000 ms  a > b    RC_WRITE_FIRST          psn 100  at 0 len 3000 key b  1024 bytes
//	     0.000 ms  a > b    RC_WRITE_MIDDLE         psn 101  1024 bytes
//	     0.000 ms  a > b    RC_WRITE_LAST           psn 102  952 bytes  ackreq
//	     0.001 ms  b > a    RC_ACKNOWLEDGE          psn 102  ACK with 0 credits, msn 1
//	     0.002 ms  a        wc 1 on a: RDMA_WRITE, 3000 bytes
//
// Words without "=" are names and flags, the others options. Adding the name of
// an end, as in psn.b=200, sets an option for that end only.
//
// # Creating objects
//
//	device NAME [buffer=BYTES] [delay=TIME] [mem=BYTES] [access=FLAGS]
//		an adapter with a completion queue and a region of its own name, 64 KiB
//		counted from address 0, which holds a pattern
//	region NAME on=DEVICE [len=BYTES] [access=FLAGS]
//	window NAME on=DEVICE
//	srq NAME on=DEVICE [max=N] [limit=N]
//	connect rc|uc A B [mtu=] [psn=] [timeout=] [retry=] [rnr=] [min_rnr=] [rd=] [dest_rd=]
//			[access=FLAGS] [srq=NAME] [credits=off] [known] [selective] [send_wr=] [recv_wr=] [recv_sge=]
//		two queue pairs, named after their devices: a, or a.2 for another one. Each
//		end hides its receive buffer from the other unless known or selective is given.
//	ud NAME [qkey=] [psn=]
//
// FLAGS are names of verbs.AccessFlags in small letters joined by "+".
//
// # Posting work
//
//	recv QP|SRQ wr=N [len=BYTES | sge=OFFSET:BYTES,...] [local=OFFSET] [count=N]
//	send|send_imm|send_inv|write|write_imm QP wr=N [len=BYTES] [local=OFFSET] [remote=OFFSET]
//			[imm=N] [inv=WINDOW] [in=REGION|WINDOW] [key=N] [count=N] [fence] [solicited] [unsignaled] [inline]
//	read QP wr=N [len=BYTES] [remote=OFFSET] [local=OFFSET]
//	fadd QP wr=N add=N [remote=OFFSET] [local=OFFSET]
//	cas QP wr=N compare=N swap=N [remote=OFFSET] [local=OFFSET]
//	bind QP wr=N window=NAME [region=NAME] [at=OFFSET] [len=BYTES] [access=FLAGS]
//	local_inv QP wr=N window=NAME
//		UD sends also take to=QP and qkey=N. count posts a list at once.
//
// # Events
//
//	fault DEVICE RULES...     faults from now on, in the grammar of link/impair; queue pairs by name
//	run [TIME]                until the last timer has gone off, even one that has nothing left to do,
//	                          or for some time
//	set REGION OFFSET VALUE   a 64-bit word
//	modify QP STATE
//	resize SRQ limit=N
//	arm DEVICE [solicited]
//	dereg REGION, destroy QP
//	inject DEVICE QP OPCODE psn=N [len=] [ackreq] [solicited] [pkey=] [remote= size= in= | key=]
//			[syndrome= msn=] [add= swap= compare=] [qkey= src=] [imm=]
//		a packet under the device's address, made by hand
//
// # Output and expectations
//
//	trace                     packets and completions since the last trace; time counts from there
//	counters QP               that are not zero
//	expect wc QP wr=N STATUS [op=] [len=] [imm=]   the next completion
//	expect nothing QP         no completion is left
//	expect state QP STATE
//	expect counters QP NAME=N ...
//	expect drops DEVICE REASON=N ...
//	expect copy A OFFSET B OFFSET BYTES            two pieces of memory are equal
//	expect untouched REGION OFFSET BYTES           still holds its pattern
//	expect word REGION OFFSET VALUE
//	expect event DEVICE TYPE                       the next asynchronous event
//	expect notified|quiet DEVICE                   the armed completion queue has fired or not
//
// A failed expectation is an error of the script, which -update does not change.
package scenario
