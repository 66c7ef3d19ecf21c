// Package datacutter runs applications that are made of filters and streams, as
// the DataCutter of the University of Maryland does: each filter computes on a
// unit of data, sends the result on and starts on the next unit, so that
// computation and communication overlap, on as many hosts as there are.
//
// The words are DataCutter's:
//
//   - A [Filter] is a stage of the processing. Its [Instance] runs on a host,
//     possibly in several transparent copies.
//   - A [Stream] carries units one way, from the copies of a filter to the
//     copies of another; a [Policy] chooses the copy.
//   - A [Group] is filters and streams that together answer a query. There can
//     be several instances of the group, which answer different queries at the
//     same time.
//   - A [Work] is a query with the data that answer it, DataCutter's unit of
//     work. A unit is a piece of that data, of up to [Stream.UnitSize] bytes:
//     the granularity in which it is distributed and pipelined.
//   - A [Layout] places instances on hosts.
//
// # Use
//
// All hosts have the same [Job]:
//
//	job := datacutter.Job{
//		Group: datacutter.Group{
//			Filters: []datacutter.FilterDef{{Name: "read", New: newReader}, {Name: "count", New: newCounter}, {Name: "show", New: newShow}},
//			Streams: []datacutter.Stream{
//				{Name: "lines", From: "read", To: "count", UnitSize: 1024},
//				{Name: "sizes", From: "count", To: "show", UnitSize: 16},
//			},
//		},
//		Layout: datacutter.Layout{{Filter: "read", Host: "a"}, {Filter: "count", Host: "b", Copies: 2}, {Filter: "show", Host: "a"}},
//		Works:  [][]byte{[]byte("first.txt"), []byte("second.txt")},
//	}
//
// and each is a process that listens first, tells the others where by whatever
// means there are, and runs its part:
//
//	node, err := datacutter.Listen(ctx, network)
//	addrs := exchange("a", node.Addr())           // "a" and "b", and their addresses
//	report, err := node.Run(ctx, job, "a", addrs)
//
// [Run] does that for all hosts in one process. A [Network] is TCP, [Memory],
// or anything with the connections of package net. Between instances on one
// host data goes through memory; to have it go over a network give each
// instance a host of its own.
//
// # Writing a filter
//
// FilterDef.New makes the Filter of an instance, once for each copy. Its Process is called
// for one work after the other. A filter without inputs is where data begins: it finds in
// the query what to read, and returns when all is sent. Nothing else tells that the work
// ends.
//
//	func newReader(datacutter.Instance) (datacutter.Filter, error) { return datacutter.FilterFunc(read), nil }
//
//	func read(ctx context.Context, w *datacutter.Work) error {
//		f, err := os.Open(string(w.Query))
//		if err != nil {
//			return err
//		}
//		defer f.Close()
//		lines := bufio.NewScanner(f)
//		for lines.Scan() {
//			if err := w.Out("lines").Send(lines.Bytes()); err != nil { // a unit
//				return err
//			}
//		}
//		return lines.Err()
//	}
//
// Others loop over units. The loop ends when every copy of the producer has ended this
// work; with [Input.Next] that is io.EOF. What counts for one work is a variable of
// Process, what counts for all of them a field of the Filter, which its instance has to
// itself:
//
//	func newCounter(datacutter.Instance) (datacutter.Filter, error) { return new(counter), nil }
//
//	type counter struct{ lines int } // of all works
//
//	func (c *counter) Process(ctx context.Context, w *datacutter.Work) error {
//		bytes := 0 // of this one
//		for unit, err := range w.In("lines").Units() {
//			if err != nil {
//				return err // it names the stream and the peer
//			}
//			c.lines++
//			bytes += len(unit)
//		}
//		return w.Out("sizes").Send(fmt.Append(nil, bytes)) // behind the last unit
//	}
//
// A unit that was sent arrives as one, so who counts units counts what DataCutter calls
// buffers. With copies each has its part of them. The runtime counts as well: in
// [Report.Instances] stands how many units and bytes each instance took and sent, in all
// works together.
//
// # Who owns what
//
// A unit that [Input.Next] returned is the filter's until it asks that input
// for the next; one that it gave to [Output.Send] is its again when Send
// returns. Steady streams allocate nothing.
//
// # Order
//
// Units from one copy to one copy arrive in the order in which they were sent.
// Between copies there is no order, so a filter whose producers or
// predecessors have copies should not need one. Works do not mix: the units of
// the next are held back until all producers have ended this.
//
// A filter with several inputs whose data come from one producer should take
// them at the same time, each input in a goroutine: a producer waits when a
// stream is full.
//
// # Failure
//
// The first error, or the end of the context, ends everything on all hosts.
// Errors name the instance ([FilterError]) and the stream ([StreamError]), and
// hosts tell one another the reason ([RemoteError]). Run returns nil on a host
// only when all instances that take its data, directly or through others, are
// done too. A host that never comes is waited for until the context ends.
//
// What arrives is checked, frames, lengths and counts, and who connects must
// know the digest of the job; but nothing is encrypted, so the network should
// be one to trust.
package datacutter
