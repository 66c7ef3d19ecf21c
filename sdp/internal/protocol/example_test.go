package protocol_test

import (
	"fmt"

	"github.com/softrnic/softrnic/internal/bsdh"
	"github.com/softrnic/softrnic/internal/flow"
	"github.com/softrnic/softrnic/sdp/internal/protocol"
	"github.com/softrnic/softrnic/verbs"
)

// memory represents a registered region.
func memory(n int) protocol.Memory { return protocol.Memory{Bytes: make([]byte, n)} }

// One end of a connection by credits. The operations of the queue pair are written out.
func Example() {
	cfg := protocol.Config{FlowControl: flow.Credit, Buffers: 4, BufferBytes: 1024, Queue: 16, Receives: 16, MaxAdverts: 1}
	cfg.Send, cfg.Slots = memory(cfg.SendBytes()), memory(cfg.SlotBytes())
	c := protocol.New(cfg)
	receives := append([]verbs.RecvWR(nil), c.Receives()...) // qp.PostRecv
	c.ClearPosted()
	c.Start(protocol.Peer{FlowControl: flow.Credit, Bufs: 6, BufferBytes: 1040, MaxAdverts: 1})

	n := c.Write([]byte("hello"))
	for _, wr := range c.Sends() { // qp.PostSend
		s := wr.SGList[0]
		message := cfg.Send.Bytes[s.Addr:][:s.Length]
		h, _ := bsdh.ParseHeader(message)
		fmt.Printf("%d bytes written: %v, number %d, %d receives, %q\n", n, h.MID, h.Seq, h.Bufs, h.Payload(message))
	}
	c.ClearPosted()

	// The peer's reply arrives in the first receive.
	answer := bsdh.Header{MID: bsdh.MIDData, Bufs: 5, Len: bsdh.HeaderBytes + 2, Seq: 1, Ack: 1}.Append(nil)
	copy(cfg.Slots.Bytes[receives[0].SGList[0].Addr:], append(answer, "ok"...))
	c.HandleCompletion(&verbs.WC{WRID: receives[0].WRID, Opcode: verbs.WCRecv, ByteLen: 18})
	buf := make([]byte, 100)
	fmt.Printf("read: %q\n", buf[:c.Read(buf)])

	// A message that is not permitted.
	copy(cfg.Slots.Bytes[receives[1].SGList[0].Addr:], bsdh.Header{MID: bsdh.MIDSendSm, Bufs: 5, Len: 16, Seq: 2, Ack: 1}.Append(nil))
	c.HandleCompletion(&verbs.WC{WRID: receives[1].WRID, Opcode: verbs.WCRecv, ByteLen: 16})
	fmt.Println(c.Err())

	// Output:
	// 5 bytes written: Data, number 1, 6 receives, "hello"
	// read: "ok"
	// sdp: protocol violation by peer: SendSm without a SrcAvail
}
