// Package datacutter runs applications that consist of filters and streams, after
// DataCutter of the University of Maryland: each filter processes a unit of data,
// sends the result and starts on the next unit, so that computation and
// communication overlap, on any number of hosts.
//
// The terms are DataCutter's:
//
//   - A [Filter] is a stage of the processing. Its [Instance] runs on a host,
//     possibly in several transparent copies.
//   - A [Stream] carries units in one direction, from the copies of a filter to
//     the copies of another one. A [Policy] selects the copy.
//   - A [Group] is a set of filters and streams that together answer a query.
//     Several instances of the group can answer different queries concurrently.
//   - A [Work] is a query with its data, DataCutter's unit of work. A unit is a
//     part of that data, of up to [Stream.UnitSize] bytes: the granularity in
//     which it is distributed and pipelined.
//   - A [Layout] assigns instances to hosts.
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
// Each host is a process that listens, exchanges addresses with the other hosts by
// means of its own, and runs its part:
//
//	node, err := datacutter.Listen(ctx, network)
//	addrs := exchange("a", node.Addr())           // "a" and "b", and their addresses
//	report, err := node.Run(ctx, job, "a", addrs)
//
// [Run] does that for all hosts in one process. A [Network] is TCP ([NewTCP]), memory
// ([NewMemory]), or any other source of net.Conn connections. Data between instances on
// one host goes through memory; to send it over a network, assign each instance to a
// different host.
//
// # Writing a filter
//
// FilterDef.New creates the Filter of an instance, once for each copy. Its Process is called
// for one work after the other. A filter without inputs is a source: it reads the data that
// the query names, and the work ends when its Process returns.
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
// Other filters loop over units. The loop ends when every copy of the producer has ended
// this work; [Input.Next] returns io.EOF then. The state of one work is a variable of
// Process, the state of all works a field of the Filter, which belongs to one instance:
//
//	func newCounter(datacutter.Instance) (datacutter.Filter, error) { return new(counter), nil }
//
//	type counter struct{ lines int } // of all works
//
//	func (c *counter) Process(ctx context.Context, w *datacutter.Work) error {
//		bytes := 0 // of this one
//		for unit, err := range w.In("lines").Units() {
//			if err != nil {
//				return err // names the stream and the peer
//			}
//			c.lines++
//			bytes += len(unit)
//		}
//		return w.Out("sizes").Send(fmt.Append(nil, bytes)) // behind the last unit
//	}
//
// A unit arrives as it was sent, so units correspond to DataCutter's buffers. The units
// are distributed over the copies of a filter. [Report.Instances] contains the number of
// units and bytes that each instance received and sent in all works.
//
// # Ownership of units
//
// A unit returned by [Input.Next] belongs to the filter until its next call on
// that input. A unit passed to [Output.Send] belongs to the filter again when
// Send returns. Streams do not allocate in the steady state.
//
// # Order
//
// Units from one copy to one copy arrive in the order in which they were sent.
// Units of different copies are unordered, so a filter whose producers or
// predecessors have copies must not depend on their order. Works do not mix: the
// units of the next work are held back until all producers have ended this one.
//
// A filter with several inputs from the same producer should read them
// concurrently, each in a goroutine: the producer blocks while a stream is full
// (backpressure), so reading one input after the other can deadlock.
//
// # Failure
//
// The first error, or the end of the context, ends the run on all hosts. Errors
// name the instance ([FilterError]) and the stream ([StreamError]), and a host
// sends the reason to the other hosts ([RemoteError]). Run returns nil on a host
// only when all instances downstream of its instances are finished as well. A
// host that does not connect is awaited until the context ends.
//
// Frames, lengths and counts are checked on arrival, and a peer must know the
// digest of the job. Data is not encrypted, so the network must be trusted.
package datacutter
