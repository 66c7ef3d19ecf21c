// Package dcbench runs the paper's two applications of DataCutter, the virtual
// microscope and iso-surface rendering, in several processes of this machine:
// over SDP with any of its flow controls, or over Go's TCP in the same way.
//
// A [DataSet] is what they work on, and the picture that comes of it without
// any of that. A [Cluster] is the processes. An experiment opens one for each
// subject and lets them take turns:
//
//	slide, err := dcbench.NewDataSet(dir, dcbench.Microscope, 8<<20, 1<<10)
//	tcp, err := dcbench.Open(ctx, dcbench.Config{Over: sdpbench.TCP})
//	defer tcp.Close()
//	nic, err := dcbench.Open(ctx, dcbench.Config{Over: sdpbench.NIC, Buffers: 8, BufferBytes: 8 << 10})
//	defer nic.Close()
//	v, err := measure.Alternate(ctx, 7, tcp.Rounds(slide, nil), nic.Rounds(slide, nil))
//
// # Placement
//
// As in the paper there are five groups of the microscope's five filters, and
// six groups of the four of iso-surface rendering. The paper has 13 and 12 nodes
// of two processors for them. Here the cores are few, and each process more
// makes them switch more often, which would be measured along with everything
// else. So there are two processes, unless Config says otherwise, and the
// filters of a group alternate between them: every unit goes over the network
// on each of its ways. A filter is a goroutine; the cores are shared by the
// system, for the filters of a group do not all compute the same amount.
//
// The last filters, which make the picture, are in the first process.
//
// # Time
//
// The figure is the time from the first unit to the end of the last work, on
// any process, without making connections and ending them. Data sets are in
// memory if the system has a file system there, as the paper's are.
//
// # Answers
//
// Every picture is compared with that of the data set: another one is an error.
package dcbench
